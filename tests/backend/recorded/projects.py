"""Small seeded projects of every kind, as Label Studio would hand them over: tasks, and annotations with raw results.

Each has 30 tasks; the first 20 have a vote of each of four annotators, 21 to 25 of some, the others of nobody. Answers
follow the words of a task and the habits of their giver, so that there is something to learn and people differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Result = list[dict[str, Any]]
Answer = Callable[[int, int], Result]  # (task, annotator) -> what they said; both count from 1

TASKS, LABELLED, PARTLY = 30, 20, 25
PEOPLE = (1, 2, 3, 4)
_WORDS = (("calm", "angry"), ("team", "client"), ("today", "later"), ("send", "keep"), ("file", "call"))
_TEXT = '<Text name="t" value="$text"/>'
_SHOWN = 'visibleWhen="choice-selected" whenTagName="tone" whenChoiceValue="B"'


@dataclass(frozen=True, kw_only=True)
class SeededProject:
    """A label config, and who said what."""

    config: str
    answer: Answer
    data: Callable[[int], Mapping[str, Any]]
    later: bool = False  # some more votes come after the first training, and it is trained again
    newcomer: bool = False  # somebody begins after the first training


def bits(task: int) -> tuple[int, ...]:
    """Five traits of a task that its words show."""
    return tuple(task * 7 // step % 2 for step in (1, 2, 4, 8, 16))


def text(task: int) -> str:
    return " ".join([*(pair[bit] for pair, bit in zip(_WORDS, bits(task), strict=True)), f"w{task % 5}"])


def texts(task: int) -> Mapping[str, Any]:
    return {"text": text(task)}


def pairs(task: int) -> Mapping[str, Any]:
    return {"text": text(task), "other": text(task + 11)}


def lists(task: int) -> Mapping[str, Any]:
    return {"text": text(task), "items": [{"id": name, "title": f"{name} {text(task)}"} for name in "abcd"]}


def _odd(task: int, who: int) -> bool:
    """A few answers that do not follow: about one in seven."""
    return (task * 31 + who * 17) % 7 == 0


def _side(task: int, who: int, bit: int = 0) -> int:
    """0 or 1; annotator 4 turns it round."""
    return (bits(task)[bit] + (who == 4) + _odd(task, who)) % 2


def _entry(kind: str, name: str, value: Any, key: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": f"{name}1", "from_name": name, "to_name": "t", "type": kind, "origin": "manual",
            "value": {key or kind: value, **more}}


def _choice(name: str, *labels: str) -> dict[str, Any]:
    return _entry("choices", name, list(labels))


def _choices(name: str, labels: str, more: str = "") -> str:
    inside = "".join(f'<Choice value="{label}"/>' for label in labels)
    return f'<Choices name="{name}" toName="t" {more}>{inside}</Choices>'


def _one(task: int, who: int) -> Result:
    return [_choice("tone", "ABC"[min(2, _side(task, who) + (bits(task)[1] and who < 3))])]


def _several(task: int, who: int) -> Result:
    said = [label for at, label in enumerate("XYZ") if _side(task, who, at)]
    return [_choice("kinds", *said)] if said else []


def _stars(task: int, who: int) -> Result:
    return [_entry("rating", "stars", 1 + _side(task, who) * 2 + bits(task)[1] + (who == 2))]


def _number(task: int, who: int) -> Result:
    return [_entry("number", "price", 10 * (1 + bits(task)[0]) + 3 * _side(task, who, 1) + who + task % 3)]


def _pair(task: int, who: int) -> Result:
    return [_entry("pairwise", "better", "left" if _side(task, who) else "right", "selected")]


def _paths(task: int, who: int) -> Result:
    path = ["Animal", "Dog" if _side(task, who, 1) else "Cat"] if _side(task, who) else ["Plant"]
    return [_entry("taxonomy", "tax", [path])]


def _order(task: int, who: int) -> Result:
    order = list("abcd" if who < 4 else "dcba")
    if _odd(task, who):
        order[:2] = order[1::-1]
    return [*_one(task, who), _entry("ranker", "rank", {"rank": order}, "ranker")]


def _regions(task: int, who: int) -> Result:
    """Everybody judges two spans that the task came with."""
    words, made = text(task).split(), []
    for at, bit in ((0, 0), (1, 1)):
        start = text(task).index(words[at])
        where = {"start": start, "end": start + len(words[at]), "text": words[at]}
        made.append({"id": f"s{at}", "from_name": "span", "to_name": "t", "type": "labels", "origin": "prediction",
                     "value": {**where, "labels": ["Claim"]}})
        made.append({"id": f"s{at}", "from_name": "mood", "to_name": "t", "type": "choices", "origin": "manual",
                     "value": {**where, "choices": ["soft" if _side(task, who, bit) else "harsh"]}})
    return made


def _two(task: int, who: int) -> Result:
    return [*_one(task, who), *_stars(task, who)]


def _shown(task: int, who: int) -> Result:
    said = _one(task, who)
    return [*said, _choice("why", "PQ"[_side(task, who, 2)])] if said[0]["value"]["choices"] == ["B"] else said


_TONE = _choices("tone", "ABC")
_STARS = '<Rating name="stars" toName="t" maxRating="5"/>'
PROJECTS: Mapping[str, SeededProject] = {
    "choices": SeededProject(config=_TEXT + _TONE, answer=_one, data=texts, later=True),
    "several choices": SeededProject(
        config=_TEXT + _choices("kinds", "XYZ", 'choice="multiple"'), answer=_several, data=texts),
    "rating": SeededProject(config=_TEXT + _STARS, answer=_stars, data=texts),
    "number": SeededProject(
        config=_TEXT + '<Number name="price" toName="t" min="0" max="60"/>', answer=_number, data=texts),
    "pairwise": SeededProject(
        config=_TEXT + '<Text name="u" value="$other"/><Pairwise name="better" toName="t,u"/>', answer=_pair,
        data=pairs),
    "taxonomy": SeededProject(
        config=_TEXT + '<Taxonomy name="tax" toName="t"><Choice value="Animal"><Choice value="Dog"/>'
        '<Choice value="Cat"/></Choice><Choice value="Plant"/></Taxonomy>', answer=_paths, data=texts),
    "ranker": SeededProject(
        config=_TEXT + _TONE + '<List name="l" value="$items"/><Ranker name="rank" toName="l"/>', answer=_order,
        data=lists),
    "per region": SeededProject(
        config=_TEXT + '<Labels name="span" toName="t"><Label value="Claim"/></Labels>'
        '<Choices name="mood" toName="t" perRegion="true"><Choice value="soft"/><Choice value="harsh"/></Choices>',
        answer=_regions, data=texts),
    "two controls": SeededProject(config=_TEXT + _TONE + _STARS, answer=_two, data=texts, newcomer=True),
    "visible when": SeededProject(config=_TEXT + _TONE + _choices("why", "PQ", _SHOWN), answer=_shown, data=texts),
}


def tasks_of(project: SeededProject) -> list[dict[str, Any]]:
    """Label Studio's JSON of all tasks, as they are before the first training."""
    return [task_json(project, task, _givers(task)) for task in range(1, TASKS + 1)]


def later_tasks(project: SeededProject) -> list[dict[str, Any]]:
    """The tasks that have more votes after it."""
    if project.newcomer:
        return [task_json(project, task, (*PEOPLE, 5)) for task in range(1, 7)]
    return [task_json(project, task, PEOPLE[:2]) for task in (26, 27)] if project.later else []


def task_json(project: SeededProject, task: int, people: tuple[int, ...]) -> dict[str, Any]:
    given = [(who, project.answer(task, who)) for who in people]
    return {"id": task, "data": dict(project.data(task)), "updated_at": f"2026-11-01T{len(people):02}:00:00Z",
            "annotations": [
                {"id": 100 * task + who, "completed_by": who, "lead_time": 2.0 + who, "result": result,
                 "created_at": f"2026-11-01T00:{task:02}:{who:02}Z", "updated_at": f"2026-11-01T00:{task:02}:{who:02}Z"}
                for who, result in given if result]}


def _givers(task: int) -> tuple[int, ...]:
    if task <= LABELLED:
        return PEOPLE
    return tuple(who for who in PEOPLE if (task + who) % 3 == 0) if task <= PARTLY else ()
