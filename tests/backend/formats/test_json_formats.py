"""JSON formats: malformed files name their line, pieces cut anywhere are put together, tasks without votes stay."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.formats import FormatError, ReadOptions, detect, json_stream, open_dataset, open_votes
from backend.formats.dataset import quiet
from tests.backend.formats.samples import rows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(JSON, max_size=5), st.integers(1, 7), st.sampled_from([None, 1]), st.booleans())
def test_elements_are_the_same_however_the_file_is_cut(
    tmp_path_factory: pytest.TempPathFactory, items: list[object], chunk: int, indent: int | None, ascii: bool
) -> None:
    path = tmp_path_factory.mktemp("x") / "x.json"
    path.write_text(json.dumps(items, indent=indent, ensure_ascii=ascii), encoding="utf-8", errors="surrogatepass")
    was = json_stream._CHUNK
    json_stream._CHUNK = chunk
    try:
        try:
            path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a lone surrogate cannot be in a file
            return
        assert [item for _, item in json_stream.elements(path, quiet)] == items
    finally:
        json_stream._CHUNK = was


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_numbers_cut_in_two_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    (tmp_path / "x.json").write_text("[10.25, -3e2, 0.0, 7,1.5e-3]")
    assert [item for _, item in json_stream.elements(tmp_path / "x.json", quiet)] == [10.25, -300.0, 0.0, 7, 0.0015]


def test_lines_of_elements_and_members(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('\n[ {"a":\n1},\n\n 2 ]\n')
    assert [line for line, _ in json_stream.elements(path, quiet)] == [2, 5]
    path.write_text('{\n"a": 1,\n"b": [\n2]}')
    assert [(line, key) for line, key, _ in json_stream.members(path, quiet)] == [(2, "a"), (3, "b")]


def peerannot(tmp_path: Path, answers: str, **metadata: object) -> Path:
    (tmp_path / "answers.json").write_text(answers, encoding="utf-8")
    if metadata:
        (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    return tmp_path


def test_peerannot_as_the_paper_has_it(tmp_path: Path) -> None:
    folder = peerannot(tmp_path, '{"0": {"0": 1, "3": 0}, "1": {"1": 1.0}, "2": {}, "3": {"0": null}}',
                       name="toy-data", n_classes=2, n_workers=4, n_tasks=4)
    np.save(folder / "ground_truth.npy", np.array([1, 0, 1, 1]))
    dataset = open_dataset(folder)
    assert rows(dataset.votes) == [("0", "0", "label", "class", '"1"'), ("0", "3", "label", "class", '"0"'),
                                   ("1", "1", "label", "class", '"1"')]
    assert dataset.votes.units == ("0", "1", "2", "3")
    assert dataset.gold == {"label": {"0": "1", "1": "0", "2": "1", "3": "1"}}
    assert (dataset.name, dataset.classes) == ("toy-data", {"label": ("0", "1")})


def test_peerannot_with_the_ids_it_fails_on_itself(tmp_path: Path) -> None:
    votes = open_votes(peerannot(tmp_path, '{"17": {"305": "cat"}, "b/c": {"é@x.org": "dog", "9001": 3}}'))
    assert votes.units == ("17", "b/c") and set(votes.annotators) == {"305", "é@x.org", "9001"}
    assert {value.data for value in votes.values} == {"cat", "dog", "3"}


@pytest.mark.parametrize(("answers", "says"), [
    ('{\n"0": {"0": 1},\n"1": {"0": [1]}\n}', "answers.json, line 3: a label of this task is neither"),
    ('{\n"0": {"0": 1},\n"1": 3\n}', "line 3: a task must hold an object"),
    ('{\n"0": {"0": 1},\n"1": {"0": }\n}', "line 3: it is not valid JSON"),
    ('{\n"0": {"0": 1}\n"1": {}}', "line 3: , or } was expected"),
    ('{\n"0": {"0": 1', "line 2: it is not valid JSON"),
    ('{"0": {}}\n x', "line 2: there is more after"),
    ('{"0": {"": 1}}', "an annotator has an empty id"),
    ("[]", "an object was expected"),
])
def test_a_malformed_answers_file_names_the_line(tmp_path: Path, answers: str, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        open_votes(peerannot(tmp_path, answers))


def test_truth_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    folder = peerannot(tmp_path, '{"0": {"0": 1}, "1": {"0": 1}}')
    for array, says in ((np.array([1]), "do not fit"), (np.array([[1]]), "one class number"),
                        (np.array([0.5, 1.0]), "one class number")):
        np.save(folder / "ground_truth.npy", array)
        with pytest.raises(FormatError, match=says):
            open_votes(folder)
    (folder / "ground_truth.npy").write_bytes(b"junk")
    with pytest.raises(FormatError, match="not a NumPy array"):
        open_votes(folder)


TASKS = '{"id": "a", "data": {"text": "x"}, "gold": "yes"}\n{"id": 2, "data": {}}\n'
VOTES = ('{"task": "a", "annotator": 5, "label": "yes", "note": "ignored"}\n\n'
         '{"task": 2, "annotator": "b", "label": 3}\n')


def folder(tmp_path: Path, tasks: str = TASKS, votes: str = VOTES, meta: str = '{"name": "n"}') -> Path:
    for name, text in (("tasks.jsonl", tasks), ("annotations.jsonl", votes), ("meta.json", meta)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_benchmark_folder(tmp_path: Path) -> None:
    dataset = open_dataset(folder(tmp_path, meta='{"classes": ["yes", 3], "label_level": "ordinal"}'))
    assert rows(dataset.votes) == [("2", "b", "label", "class", '"3"'), ("a", "5", "label", "class", '"yes"')]
    assert dataset.gold == {"label": {"a": "yes"}} and dataset.ordinal
    assert dataset.classes_of("label") == ("yes", "3")
    assert rows(open_votes(tmp_path / "annotations.jsonl")) == rows(dataset.votes)


@pytest.mark.parametrize(("tasks", "votes", "says"), [
    (TASKS, VOTES + '{"task": "zz", "annotator": "b", "label": "x"}\n', "line 4: the task zz is not in tasks.jsonl"),
    (TASKS, VOTES + '{"task": "a", "label": "x"}\n', "line 4: it has no annotator; its keys are task, label"),
    (TASKS, VOTES + '{"task": "a", "annotator": "b"}\n', "line 4: it has no label"),
    (TASKS, VOTES + '{"task": "a", "annotator": "b", "label": {}}\n', "line 4: its label is neither"),
    (TASKS, VOTES + '{"task": "a", "annotator": "b", "label": 1, "weight": -1}\n', "line 4: its weight"),
    (TASKS, VOTES + '{"task": \n', "line 4: it is not valid JSON"),
    (TASKS, VOTES + "[1]\n", "line 4: an object was expected"),
    (TASKS + '{"id": "a"}\n', VOTES, "tasks.jsonl, line 3: the task a is there already"),
    (TASKS + '{"data": {}}\n', VOTES, "tasks.jsonl, line 3: it has no id"),
])
def test_a_malformed_folder_names_file_and_line(tmp_path: Path, tasks: str, votes: str, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        open_votes(folder(tmp_path, tasks, votes))


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    seen: list[float] = []
    options = ReadOptions(progress=lambda done, _: seen.append(done))
    open_dataset(peerannot(tmp_path, '{"0": {"0": 1}}'), options=options)
    assert seen[-1] == 1.0


@pytest.mark.parametrize(("content", "says"), [
    (b"", "is empty"), (b"[1, 2]", "not of Label Studio tasks"), (b'[{"a": 1}]', "has a"),
    (b'{"a": 1}', "neither votes nor an object"), (b"PK\x03\x04rest", "compressed"),
])
def test_what_is_no_data_set_is_said(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FormatError, match=says):
        detect(tmp_path / "x")
    with pytest.raises(FormatError, match=r"neither answers\.json nor annotations\.jsonl, but x"):
        detect(tmp_path)
    with pytest.raises(FormatError, match="no file or folder"):
        open_votes(tmp_path / "nowhere")
