"""Files that strangers have: people named in several ways, scales written in several ways, and nothing to compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.backend.commands.crowd import Shell
from tests.backend.commands.test_case_kinds import annotation, as_csv, flat
from tests.backend.commands.test_cases import agreement, value

ANN = {"id": 1, "email": "ann@example.org"}


def tasks_of(people: list[tuple[object, object]], labels: tuple[str, str] = ("x", "y")) -> list[dict[str, Any]]:
    return [{"id": at, "data": {"text": "t"}, "annotations": [
        annotation(10 * at, one, labels[0]), annotation(10 * at + 1, other, labels[1])]}
        for at, (one, other) in enumerate(people, 1)]


@pytest.mark.parametrize("form", ["json", "min", "csv"])
@pytest.mark.parametrize("people", [
    [(ANN, 2), ("ann@example.org", 2), ({"email": "Ann@Example.org"}, 2), (1, "2")],
    [("ann@example.org", 2), ("ANN@example.org", 2), ({"email": "ann@example.org"}, 2), ("ann@example.org", 2)],
    [({"user": {"id": 7}}, {"id": 2}), (7, 2), ({"user": ANN | {"id": 7}}, 2), ("ann@example.org", 2)],
    [({"first_name": "Ann", "last_name": "Lee"}, {"username": "bo"})] * 4,
], ids=["id and address", "capitals", "inside", "names"])
def test_a_person_is_one_however_an_annotation_names_them(shell: Shell, form: str, people: Any) -> None:
    tasks = tasks_of(people)
    path = shell.write("p.json", json.dumps(tasks if form == "json" else flat(tasks)))
    if form == "csv":
        path = as_csv(shell.folder / "p.csv", flat(tasks))
    agreement(shell, path)
    pairs = json.loads((shell.folder / "found.json").read_text())["pairs"]
    assert [pair["common"] for pair in pairs] == [4]


def test_an_address_beside_two_ids_is_neither(shell: Shell) -> None:
    agreement(shell, shell.write("p.json", json.dumps(tasks_of([
        (ANN, {**ANN, "id": 2}), ("ann@example.org", 2), (1, 2)]))))
    pairs = json.loads((shell.folder / "found.json").read_text())["pairs"]
    assert sorted(pair["common"] for pair in pairs) == [1, 2]


def test_the_newer_of_one_person_counts_where_regions_name_them_in_two_ways(shell: Shell) -> None:
    def drawn(number: int, who: object, x: int) -> dict[str, Any]:
        box = {"x": x, "y": 10, "width": 20, "height": 20, "rotation": 0, "rectanglelabels": ["A"]}
        return {**annotation(number, who, "x"), "result": [
            {"id": f"r{number}", "from_name": "b", "to_name": "i", "type": "rectanglelabels", "value": box}]}

    tasks = [{"id": 1, "data": {}, "annotations": [
        drawn(3, "ann@example.org", 10), drawn(1, ANN, 70), drawn(2, 2, 10)]}]
    shell("agreement", shell.write("r.json", json.dumps(tasks)), "--regions", "--out", shell.folder / "r-found.json")
    found = json.loads((shell.folder / "r-found.json").read_text())
    assert len(found["pairs"]) == 1 and found["overall"][0]["F1"] == 1.0


@pytest.mark.parametrize("scale", [("08", "09", "10"), ("\u22122", "\u22121", "10"), (".5", "1.5", "10")])
def test_numbers_of_a_scale_in_other_spellings(shell: Shell, scale: tuple[str, ...]) -> None:
    votes = [(0, 0, 1), (2, 2, 1), (0, 1, 0), (2, 0, 2)]
    found = []
    for names in (scale, ("1", "2", "3")):
        path = shell.write("s.csv", "task,annotator,label\n" + "".join(
            f"{task},{who},{names[at]}\n" for task, row in enumerate(votes)
            for who, at in zip("abc", row, strict=True)))
        found.append(agreement(shell, path, "--level", "ordinal"))
    assert list(found[0]["classes"]) == list(scale)
    assert value(found[0], "Krippendorff alpha (ordinal)") == value(found[1], "Krippendorff alpha (ordinal)")


def test_the_id_of_annotations_settles_in_folders_too(shell: Shell) -> None:
    folder = shell.folder / "set"
    folder.mkdir()
    rows = [{"task": 1, "annotator": "a", "label": label, "annotation_id": number, "time": time}
            for label, number, time in (("new", 5, None), ("old", 4, 1600000000))]
    rows += [{"task": 1, "annotator": "b", "label": "new"}]
    (folder / "annotations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert value(agreement(shell, folder), "percent agreement") == 1.0


def test_true_is_one_class_in_json_and_in_the_spelling_of_python(shell: Shell) -> None:
    tasks = [{"id": at, "data": {}, "annotations": [annotation(10 * at, 1, one), annotation(10 * at + 1, 2, other)]}
             for at, (one, other) in enumerate([(True, "True"), ("true", True), (False, "False")], 1)]
    xml = shell.write("c.xml", '<View><Text name="t" value="$text"/><Choices name="c" toName="t">'
                               '<Choice value="True"/><Choice value="False"/></Choices></View>')
    path = shell.write("b.json", json.dumps(tasks))
    for more in ((), ("--label-config", xml)):
        rows = agreement(shell, path, *more)
        assert value(rows, "votes") == 6 and value(rows, "percent agreement") == 1.0


@pytest.mark.parametrize("told", [True, False], ids=["config", "bare"])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_control_named_agreement_where_the_export_has_no_such_column(shell: Shell, told: bool, form: str) -> None:
    rows = [{key.replace("c", "agreement") if key == "c" else key: each for key, each in row.items()}
            for row in flat(tasks_of([(1, 2)] * 3))]
    path = shell.write("a.json", json.dumps(rows)) if form == "json" else as_csv(shell.folder / "a.csv", rows)
    xml = shell.write("c.xml", '<View><Text name="t" value="$text"/><Choices name="agreement" toName="t">'
                               '<Choice value="x"/><Choice value="y"/></Choices></View>')
    found = agreement(shell, path, *(("--label-config", xml) if told else ()))
    assert value(found, "votes") == 6 and value(found, "percent agreement") == 0.0


@pytest.mark.parametrize("command", ["agreement", "identify"])
@pytest.mark.parametrize(("name", "text", "says"), [
    ("w.csv", "task,annotator,label,weight\n1,a,x,0\n1,b,x,0\n", "2 of weight 0"),
    ("m.json", '[{"id": 1, "annotator": 1, "annotation_id": 1}]', "no column with answers"),
])
def test_nothing_to_compare_is_told_with_exit_status_2(
    shell: Shell, command: str, name: str, text: str, says: str
) -> None:
    assert says in shell(command, shell.write(name, text), expect=2)


def test_votes_outside_of_the_configuration_alone_are_none(shell: Shell) -> None:
    xml = shell.write("c.xml", '<View><Text name="t" value="$text"/><Choices name="c" toName="t">'
                               '<Choice value="a"/><Choice value="b"/></Choices></View>')
    path = shell.write("o.json", json.dumps(tasks_of([(1, 2)])))
    for command in ("agreement", "identify"):
        assert "No vote with c" in shell(command, path, "--label-config", xml, expect=2) or "no votes" in shell.err
    flat_path = shell.write("f.json", '[{"text": "x", "id": 1, "annotator": 1, "annotation_id": 1}]')
    assert "no column of the controls c" in shell("agreement", flat_path, "--label-config", xml, expect=2)


def test_empty_sets_alone_are_told(shell: Shell) -> None:
    path = shell.write("e.jsonl", '{"task": 1, "annotator": "a", "label": []}\n{"task": 1, "annotator": "b", '
                                  '"label": []}\n')
    assert "empty sets" in shell("agreement", path, expect=2)


def test_annotations_taken_for_gold_are_no_riddle(shell: Shell) -> None:
    task = {"id": 1, "data": {}, "annotations": [{**annotation(1, 1, "x"), "ground_truth": True}]}
    path: Path = shell.write("g.json", json.dumps([task]))
    assert "1 taken for gold labels" in shell("agreement", path, "--trust-ground-truth", expect=2)


def test_sets_cannot_be_judged_one_by_one(shell: Shell) -> None:
    path = shell.write("s.jsonl", '{"task": 1, "annotator": "a", "label": ["x", "y"]}\n')
    assert "needs single classes" in shell("identify", path, expect=2)


@pytest.mark.parametrize(("text", "said"), [
    ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
    ('[{"id":' + "9" * 5000 + ',"data":{},"annotations":[]}]', "too many digits"),
    ('{"0": {"1": ' + "9" * 400 + "}}", "neither a number nor text"),
])
def test_what_python_cannot_hold_is_refused_in_a_sentence(shell: Shell, text: str, said: str) -> None:
    assert said in shell("convert", shell.write("p.json", text), shell.folder / "p.csv", expect=1)
    assert not (shell.folder / "p.csv").exists()
