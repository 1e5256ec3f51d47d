"""Answers on regions from annotations to predictions: learned from the words of spans, each annotator's own, and nobody
is shown what others drew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from backend.bootstrap import Services
from backend.jobs import RUNNERS
from backend.labeling import parse_config, read_task
from backend.records import Job, JobKind
from backend.services import region_answers
from backend.services.prediction import Predictions
from backend.services.regions import OURS, known_regions, region_contents
from backend.services.training import Material
from model.data.spaces import Value
from model.data.splits import task_of
from tests.backend.services.politeness import KEY, LABEL_STUDIO_ID
from tests.backend.services.workshop import LEARNING, Workshop, workshop

XML = """<View><Labels name="span" toName="t"><Label value="Claim"/>
<Label value="Fact"/></Labels><TextArea name="why" toName="t" perRegion="true"/><Text name="t" value="$text"/>
<Choices name="tone" toName="t" perRegion="true"><Choice value="soft"/><Choice value="harsh"/></Choices>
<Rating name="force" toName="t" perRegion="true" maxRating="3"/></View>"""
CONFIG = parse_config(XML)
KIND, UNKIND = ("please kindly thanks", "lovely gentle dear"), ("stupid rude nonsense", "awful idiot shut")
LABELLED = 28
QUICK = replace(LEARNING, network=replace(LEARNING.network, epochs=12))
CAME, BY_HAND, UNANSWERED, AGREED, FRESH, BAD = range(LABELLED + 1, LABELLED + 7)
EDITED, REMARKED = LABELLED + 7, LABELLED + 8
REMARK = "a private remark"


def words(task: int) -> tuple[str, str]:
    """A kind span and an unkind one."""
    return KIND[task // 2 % 2], UNKIND[task // 4 % 2]


def data(task: int) -> dict[str, Any]:
    kind, unkind = words(task)
    return {"text": f"{kind} {unkind}" if task % 2 else f"{unkind} {kind}"}


def span(task: int, said: str, *, origin: str = "manual", **beside: Any) -> list[dict[str, Any]]:
    """A region on some words of a task, and answers on it."""
    start = data(task)["text"].index(said)
    where = {"start": start, "end": start + len(said), "text": said}
    made = [{"id": f"s{start}", "from_name": "span", "to_name": "t", "type": "labels", "origin": origin,
             "value": {**where, "labels": ["Claim"]}}]
    return made + [{"id": f"s{start}", "from_name": name, "to_name": "t", "type": kind, "origin": "manual",
                    "value": {**where, kind: value}} for name, (kind, value) in beside.items()]


def renamed(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With another label on the region."""
    return [{**entry, "value": {**entry["value"], "labels": ["Fact"]}} if entry["from_name"] == "span" else entry
            for entry in made]


def remarked(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With free text on the region."""
    return [*made, {**made[0], "from_name": "why", "type": "textarea",
                    "value": {**made[0]["value"], "text": [REMARK]}}]


def labels(result: list[dict[str, Any]]) -> list[str]:
    return [each["value"]["labels"][0] for each in result if each["from_name"] == "span"]


def answered(task: int, turned: bool, origin: str = "prediction") -> list[dict[str, Any]]:
    """Both spans, judged by whoever finds kind words soft, or (`turned`) harsh."""
    kind, unkind = words(task)
    return [entry for said, soft in ((kind, not turned), (unkind, turned)) for entry in span(
        task, said, origin=origin, tone=("choices", ["soft" if soft else "harsh"]), force=("rating", 1 if soft else 3))]


def task_json(task: int, **results: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": task, "data": data(task), "updated_at": "2026-11-02T00:00:00Z", "annotations": [
        {"id": 100 * task + int(who[1:]), "completed_by": int(who[1:]), "lead_time": 4.0, "result": result,
         "created_at": "2026-11-01T00:00:00Z"} for who, result in results.items()]}  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    shop = workshop(tmp_path_factory.mktemp("regions"), ladder=QUICK)
    shop.store.projects.ensure(KEY, title="Regions", label_config=XML)
    raw = [task_json(task, a1=answered(task, False), a2=answered(task, True)) for task in range(1, LABELLED + 1)]
    raw += [
        task_json(CAME, a3=answered(CAME, False)),
        task_json(BY_HAND, a3=answered(BY_HAND, False, "manual")),
        task_json(UNANSWERED, a1=span(UNANSWERED, words(UNANSWERED)[0])),
        task_json(AGREED, a3=answered(AGREED, False, "manual"), a4=answered(AGREED, False, "manual")),
        task_json(FRESH),
        task_json(BAD, a3=[{**entry, "value": {**entry["value"], "end": 999}} for entry in answered(BAD, False)]),
        task_json(EDITED, a3=renamed(span(EDITED, words(EDITED)[0], origin="prediction-changed")),
                  a4=span(EDITED, words(EDITED)[0], origin="prediction")),
        task_json(REMARKED, a3=remarked(renamed(span(REMARKED, words(REMARKED)[0]))),
                  a1=span(REMARKED, words(REMARKED)[0]), a4=remarked(span(REMARKED, words(REMARKED)[1],
                                                                          origin="prediction"))),
    ]  # fmt: skip
    shop.store.tasks.take_over(KEY, [
        read_task(CONFIG, each, project_id=LABEL_STUDIO_ID, control_arm_percent=0.0, shown_since=None,
                  known_annotators={}) for each in raw])
    outcome = shop.train()
    assert outcome["verdict"] == "published", outcome["reason"]
    yield shop
    shop.close()


def ask(shop: Workshop, task: int, **more: Any) -> dict[str, list[dict[str, Any]]]:
    """Who -> the result of their prediction; "consensus" too."""
    request = {"id": task, "data": data(task), "annotations": [], "predictions": more.pop("predictions", [])}
    (found,) = shop.prediction.answer(KEY, None, [request], deadline_s=60.0, **more)
    return by_name(found)


def by_name(found: Predictions) -> dict[str, list[dict[str, Any]]]:
    return {each["model_version"].partition("@")[0].removeprefix("annotator:"): each["result"] for each in found}


def tones(result: list[dict[str, Any]]) -> dict[str, str]:
    return {each["value"]["text"]: each["value"]["choices"][0] for each in result if each["from_name"] == "tone"}


def material(shop: Workshop) -> Material:
    project = shop.store.projects.get(KEY)
    assert project is not None
    return shop.training._read(project)


def test_contents_are_the_words_of_spans_and_a_span_beyond_its_text_is_a_sentence(shop: Workshop) -> None:
    tasks = shop.store.tasks.get(KEY, [1, BAD])
    contents, problems = region_contents(CONFIG, tasks, known_regions(shop.store, KEY, CONFIG, [1, BAD]))
    assert sorted(contents.values()) == sorted(words(1)) and all(task_of(unit) == "1" for unit in contents)
    (why,) = problems
    assert "ends beyond" in why and {task_of(unit) for unit in problems[why]} == {str(BAD)}
    assert material(shop).left_out == {"on regions that cannot be read (The region on a Text ends beyond it)": 4}


def test_regions_of_a_task_are_on_one_side_of_every_split(shop: Workshop) -> None:
    learned = material(shop)
    codes = shop.training._training_set(KEY, learned)
    sides: dict[str, set[bool]] = {}
    for unit in learned.texts:
        sides.setdefault(task_of(unit), set()).add(codes.heldout(unit))
    assert Counter(map(len, sides.values())) == {1: len(sides)} and {True} in sides.values()
    assert len(learned.texts) == 2 * (LABELLED + 3), "two regions a task, and no content for whole tasks"


def test_each_annotators_answer_on_each_region_stands_with_the_region(shop: Workshop) -> None:
    found = ask(shop, CAME)
    kind, unkind = words(CAME)
    assert tones(found["1"]) == {kind: "soft", unkind: "harsh"}
    assert tones(found["2"]) == {kind: "harsh", unkind: "soft"}
    assert set(tones(found["consensus"])) == {kind, unkind} and "3" not in found
    for _, result in sorted(found.items()):
        of_id: dict[str, set[str]] = {}
        places: dict[str, set[tuple[int, int]]] = {}
        for entry in result:
            of_id.setdefault(entry["id"], set()).add(entry["from_name"])
            places.setdefault(entry["id"], set()).add((entry["value"]["start"], entry["value"]["end"]))
        assert list(of_id.values()) == [{"span", "tone", "force"}] * 2 and all(len(at) == 1 for at in places.values())
        assert not any(identifier.startswith(OURS) for identifier in of_id)


def test_nobody_is_shown_what_others_drew(shop: Workshop) -> None:
    assert ask(shop, BY_HAND) == {} and ask(shop, AGREED) == {} and ask(shop, FRESH) == {} and ask(shop, BAD) == {}


def test_what_somebody_drew_is_answered_for_them_alone(shop: Workshop) -> None:
    loaded, project = shop.registry.published(KEY), shop.store.projects.get(KEY)
    assert loaded is not None and project is not None
    ready = shop.prediction._ready(loaded, CONFIG, [{"id": UNANSWERED, "data": data(UNANSWERED)}], [["1", "2"]],
                                   until=1e9)
    (made,) = shop.prediction.compute(project, loaded, CONFIG, list(ready.values()), [])
    assert made.consensus is None and set(made.own) == {"1"}
    assert tones(made.own["1"]["result"]) == {words(UNANSWERED)[0]: "soft"}
    assert all(entry["id"].startswith(OURS) for entry in made.own["1"]["result"])


def test_what_one_changed_is_shown_to_nobody_as_what_the_task_came_with(shop: Workshop) -> None:
    found = ask(shop, EDITED)
    assert set(found) == {"1", "2", "3", "4", "consensus"}, "nobody answered yet"
    assert {label for result in found.values() for label in labels(result)} == {"Claim"}


def test_free_text_on_a_region_is_shown_to_nobody_and_each_gets_the_region_as_they_drew_it(shop: Workshop) -> None:
    loaded, project = shop.registry.published(KEY), shop.store.projects.get(KEY)
    assert loaded is not None and project is not None
    ready = shop.prediction._ready(loaded, CONFIG, [{"id": REMARKED, "data": data(REMARKED)}], [["1", "2", "3"]],
                                   until=1e9)
    (made,) = shop.prediction.compute(project, loaded, CONFIG, list(ready.values()), [])
    drew, came = words(REMARKED)
    assert made.consensus is not None and REMARK not in repr(made)
    assert set(tones(made.own["1"]["result"])) == {drew, came} == set(tones(made.own["3"]["result"]))
    assert set(tones(made.own["2"]["result"])) == {came} == set(tones(made.consensus["result"]))
    assert sorted(labels(made.own["3"]["result"])) == ["Claim", "Fact"]
    assert labels(made.own["1"]["result"]) == ["Claim"] * 2


def test_what_is_drawn_while_asking_does_not_pass_for_what_the_task_came_with(shop: Workshop) -> None:
    mine = span(FRESH, words(FRESH)[0])
    given = ask(shop, FRESH, drawn=mine)["1"]
    assert given and all(entry["id"].startswith(OURS) for entry in given)
    assert ask(shop, FRESH, predictions=[{"result": given, "model_version": "annotator:1@r1"}]) == {}
    again = ask(shop, UNANSWERED, drawn=span(UNANSWERED, words(UNANSWERED)[0]))
    assert all(entry["id"].startswith(OURS) for result in again.values() for entry in result)


def test_no_more_than_a_piece_of_the_regions_is_held_at_once(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, texts = ask(shop, CAME), shop.features.texts_within
    asked: list[list[str]] = []

    def counted(contents: list[str], **more: Any) -> Any:
        asked.append(contents)
        return texts(contents, **more)

    monkeypatch.setattr(shop.features, "texts_within", counted)
    monkeypatch.setattr(region_answers, "AT_ONCE", 1)
    assert tones(ask(shop, CAME)["1"]) == tones(whole["1"])
    assert sorted(asked[-2:]) == sorted([said] for said in words(CAME))


def test_taking_over_ones_own_region_does_not_show_it_to_others(shop: Workshop) -> None:
    mine = [{**entry, "id": OURS + "x", "origin": "prediction"} for entry in span(FRESH, words(FRESH)[0])]
    assert ask(shop, FRESH, predictions=[{"result": mine, "model_version": "annotator:1@r1"}]) == {}


def test_the_setting_shows_places_that_two_others_agree_on(shop: Workshop) -> None:
    sharing = shop.having(shared_regions=True)
    assert set(tones(ask(sharing, AGREED)["1"])) == set(words(AGREED)) and ask(sharing, BY_HAND) == {}


def test_regions_in_the_request_are_answered_for(shop: Workshop) -> None:
    kind, unkind = words(FRESH)
    imported = [{"result": span(FRESH, kind, origin="x"), "model_version": "imported"}, {"result": None}, None]
    assert tones(ask(shop, FRESH, predictions=imported)["1"]) == {kind: "soft"}
    assert tones(ask(shop, FRESH, drawn=span(FRESH, unkind))["2"]) == {unkind: "soft"}
    odd = [{"to_name": "t", "value": {"start": "x"}}, {"to_name": "t", "value": None}, {}]
    assert ask(shop, FRESH, drawn=odd) == {}


def test_ones_own_vote_moves_nothing_for_oneself_there(shop: Workshop) -> None:
    loaded, project = shop.registry.published(KEY), shop.store.projects.get(KEY)
    assert loaded is not None and project is not None
    votes = shop.store.votes.of_tasks(KEY, [1])
    turned = [replace(vote, value=Value.of_class("harsh" if vote.value.data == "soft" else "soft"))
              if (vote.annotator, vote.control) == ("1", "tone") else vote for vote in votes]
    ready = list(shop.prediction._ready(loaded, CONFIG, [{"id": 1, "data": data(1)}], [["1", "2"]],
                                        until=1e9).values())
    one, other = (shop.prediction.compute(project, loaded, CONFIG, ready, given)[0] for given in (votes, turned))
    assert one.own["1"]["result"] == other.own["1"]["result"]
    assert one.own["2"]["result"] != other.own["2"]["result"], "for others it is evidence"


def test_the_encoding_job_encodes_regions_and_names_those_that_cannot_be_read(shop: Workshop) -> None:
    job = cast(Job, SimpleNamespace(project=KEY, payload={}))
    figures = RUNNERS[JobKind.ENCODE](cast(Services, SimpleNamespace(store=shop.store, features=shop.features)), job,
                                      lambda fraction, note: None)
    assert figures["left_out"] == {"The region on a Text ends beyond it.": [BAD]}
    assert figures["texts"] == REMARKED + 2 * (LABELLED + 3) + 4, "tasks, two regions each, and those without an answer"
    assert shop.features.cached([*words(UNANSWERED)[:1], *words(AGREED)]) == [True] * 3
