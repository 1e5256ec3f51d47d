"""Documents -> what the templates need, one function a page. The same functions serve the site and the report file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.records import Check, Project
from backend.report import answers, disagreements, sentences
from backend.report.answers import Waiting, cause_parts
from backend.report.asked import Asked, choice
from backend.report.attention import UNKNOWN, by_concern, first_looks
from backend.report.charts import Line, Point
from backend.report.columns import ANNOTATORS, judged
from backend.report.links import Links
from backend.report.matrix import rows_of
from backend.report.names import Names
from backend.report.region_columns import REGION_PAIRS
from backend.report.task_columns import ASKS, FLAGS, Flagged
from backend.report.task_lists import Differing, listed, matching
from backend.report.texts import Texts
from backend.report.words import day
from backend.services.explanation.documents import AnnotatorAttributions
from backend.services.gaps.documents import Gaps
from backend.services.statistics.documents import (
    Alike,
    Annotators,
    Consensus,
    ControlProfile,
    Flag,
    Flags,
    Overview,
    Profile,
    ReasonKind,
    Regions,
    Tasks,
)
from backend.services.statistics.subject import label_text
from model.quality.agreement_map import COMMON

IN_TABLE = ("name", "votes", "accuracy", "predicted")
MORE_COLUMNS = ("kappa", "spammer_score", "ability", "self_consistency", "drift_p", "accepted", "seconds")
STATES = ("open", "fine", "slip", "all")
PAIRS_ON_PAGE = 15
ON_MAP = 200  # most active annotators; more is a cloud


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What every page of a project is made with."""

    project: Project
    names: Names
    links: Links
    texts: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the overview reads beside its own document; each may be missing."""

    tasks: Tasks | None = None
    flags: Flags | None = None
    checks: Sequence[Check] = ()
    people: Annotators | None = None
    gaps: Gaps | None = None
    drawn: Regions | None = None


def overview(look: Look, document: Overview, query: Mapping[str, str], beside: Beside) -> dict[str, Any]:
    """Four questions on one control, and below them what the answers rest on."""
    names = tuple(each.name for each in document.controls)
    chosen = chosen_control(query, names)
    control = next((each for each in document.controls if each.name == chosen), None)
    gaps = beside.gaps.controls.get(chosen) if beside.gaps else None
    lists = beside.tasks.controls.get(chosen) if beside.tasks else None
    waiting = Waiting(
        flags=sum(not each.checked for each in flagged(beside.flags, beside.checks)) if beside.flags else 0,
        people=len(first_looks(judged(beside.people, chosen))) if beside.people else 0,
    )
    published = [run for run in reversed(document.training) if run.log_loss is not None]
    return {
        "document": document, "controls": names, "control": control, "say": sentences, "drawn": beside.drawn,
        "answers": [
            answers.done(document, gaps, look.links), *((answers.agree(control, look.links),
            answers.trust(control, look.links)) if control else ()),
            answers.following(document, lists, gaps, waiting, look.links),
        ],
        "losses": [Line("held-out log-loss", [run.log_loss for run in published], "accent")],
        "versions": [run.version for run in published], "pair_columns": REGION_PAIRS, "most_pairs": PAIRS_ON_PAGE,
    }


def annotators(
    look: Look, document: Annotators, query: Mapping[str, str], asked: Asked, alike: Alike | None = None
) -> dict[str, Any]:
    """The table of annotators on one control, whoever deserves a look first, and their map."""
    control = chosen_control(query, _controls(document.rows))
    wanted, wide = query.get("q", "").strip().casefold(), choice(query, "columns", ("few", "all"), "few") == "all"
    looked = by_concern(judged(document, control))
    found = [each.item for each in looked
             if not wanted or wanted in look.names.name(each.item.row.annotator).casefold()]
    columns = {column.name: column for column in ANNOTATORS}
    matrix = alike.controls.get(control) if alike else None
    return {
        "document": document, "control": control, "controls": _controls(document.rows), "q": query.get("q", ""),
        "columns": [columns[name] for name in (*IN_TABLE, *(MORE_COLUMNS if wide else ()))], "wide": wide,
        "say": sentences, "shown": asked.of_rows(found, ANNOTATORS, look.names),
        "looks": {each.item.row.annotator: each for each in looked}, "points": points(document, look.names),
        "first": sum(each.level < UNKNOWN for each in looked),
        "matrix": rows_of(matrix), "matrix_left_out": matrix.left_out if matrix else 0, "map_common": COMMON,
    }


def profile(
    look: Look, document: Profile, everybody: Annotators | None, words: AnnotatorAttributions | None = None
) -> dict[str, Any]:
    """One annotator in detail; `words` are those that move their labels."""
    who, name = document.row.annotator, look.names.name(document.row.annotator)
    return {
        "document": document, "name": name, "slug": look.names.slug(who), "words": words,
        "said": {control: sentences.annotator(name, document.row, each.figures)
                 for control, each in document.controls.items()},
        "periods": {control: _periods(each) for control, each in document.controls.items()},
        "versions": {control: ([Line("predicted right", [point.accuracy for point in each.by_version], "accent")],
                               [point.version for point in each.by_version])
                     for control, each in document.controls.items()},
        "heat": {control: heat(each.confusion) for control, each in document.controls.items()},
        "points": points(everybody, look.names, strong=who) if everybody else [],
        "map_explained": everybody.map_explained if everybody else None,
    }


def tasks(
    look: Look, document: Tasks, query: Mapping[str, str], asked: Asked, *, every: Consensus | None = None,
    differing: Callable[[str], Differing] | None = None,
) -> dict[str, Any]:
    """One list of tasks of a control; `every` are all of them, `differing` finds those of two annotators."""
    control = chosen_control(query, tuple(document.controls))
    lists = document.controls.get(control)
    found = listed(lists, every.controls.get(control) if every else None, differing(control) if differing else None,
                   query, asked, look.names, look.texts)
    return {
        "document": document, "control": control, "controls": tuple(document.controls), "which": found.which,
        "lists": lists, "shown": found.shown, "columns": found.columns, "found": found, "say": disagreements,
        "causes_say": disagreements.causes(control, lists, look.names) if lists else "",
        "texts": look.texts(found.tasks), "q": query.get("q", ""), "label_text": label_text,
        "parts": cause_parts(lists.causes if lists else {}),
    }


def flags(
    look: Look, document: Flags, checks: Sequence[Check], query: Mapping[str, str], asked: Asked
) -> dict[str, Any]:
    """Votes worth a second look."""
    everything = flagged(document, checks)
    found = filtered(everything, query, look.names, look.texts)
    shown = asked.of_rows(found, FLAGS, look.names)
    return {
        "document": document, "shown": shown, "query": query, "state": query.get("state") or "open",
        "controls": sorted({each.flag.control for each in everything}), "kinds": [each.value for each in ReasonKind],
        "people": sorted({each.flag.annotator for each in everything}, key=look.names.name), "states": STATES,
        "texts": look.texts([each.flag.task for each in shown.rows]),
        "open": sum(not each.checked for each in everything), "listed": len(everything),
        "q": query.get("q", ""),
    }


def gaps(look: Look, document: Gaps | None, cover: Overview | None, people: Annotators | None,
         query: Mapping[str, str], asked: Asked) -> dict[str, Any]:
    """How the matrix is filled, and what to ask for next. Without its own document, from those on coverage."""
    controls = tuple(document.controls) if document else ()
    control = chosen_control(query, controls)
    found = document.controls.get(control) if document else None
    slug, every = query.get("annotator", ""), found.asks if found else ()
    asks = [each for each in every if not slug or look.names.slug(each.annotator) == slug]
    shown = asked.of_rows(matching(asks, lambda each: each.task, query.get("q", ""), look.texts), ASKS, look.names)
    return {
        "q": query.get("q", ""),
        "asked_people": sorted({each.annotator for each in every}, key=look.names.name),
        "document": document, "found": found, "control": control, "controls": controls, "shown": shown,
        "coverage": cover.coverage if cover else None, "people": people.rows[:ON_MAP] if people else (),
        "columns": [column for column in ASKS if column.name not in ("annotator", "unit")],
        "texts": look.texts([each.task for each in shown.rows]),
    }


def flagged(document: Flags, checks: Iterable[Check]) -> list[Flagged]:
    """The flags, each with what was said of it by now (the document may be older than the last check)."""
    said = {(each.unit, each.annotator, each.control): each for each in checks}
    found = []
    for flag in document.rows:
        check = said.get((flag.unit, flag.annotator, flag.control))
        checked = check.verdict if check is not None and check.value == flag.value else ""
        found.append(Flagged(id=flag_id(flag), flag=flag, checked=checked))
    return found


def flag_id(flag: Flag) -> str:
    """A short name of a vote as it was flagged; another one once the vote changes."""
    text = "\x1f".join((flag.unit, flag.annotator, flag.control, flag.value))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def filtered(rows: Sequence[Flagged], query: Mapping[str, str], names: Names, texts: Texts) -> list[Flagged]:
    """Those that ?q=&annotator=&control=&reason=&state= leave. Raises ClientError for words that do not exist."""
    reason = choice(query, "reason", [each.value for each in ReasonKind])
    state = choice(query, "state", STATES, "open")
    slug, control = query.get("annotator", ""), query.get("control", "")
    found = rows if state == "all" else [each for each in rows if each.checked == ("" if state == "open" else state)]
    if slug:
        found = [each for each in found if names.slug(each.flag.annotator) == slug]
    if control:
        found = [each for each in found if each.flag.control == control]
    if reason:
        found = [each for each in found if any(one.kind == reason for one in each.flag.reasons)]
    return matching(found, lambda each: each.flag.task, query.get("q", ""), texts)


def chosen_control(query: Mapping[str, str], controls: Sequence[str]) -> str:
    """The control that is looked at; the first one where none is named. Raises ClientError for an unknown one."""
    return choice(query, "control", controls, controls[0] if controls else "")


def points(document: Annotators, names: Names, *, strong: str = "") -> list[Point]:
    """The map of agreement: what people are called, and who is pointed at."""
    rows = [row for row in document.rows if row.position is not None]
    kept = rows[:ON_MAP] + [row for row in rows[ON_MAP:] if row.annotator == strong]
    return [
        Point(row.position[0], row.position[1], names.name(row.annotator),
              "strong" if row.annotator == strong else
              "suspect" if not strong and any(each.fault for each in row.controls.values()) else "")
        for row in kept if row.position is not None
    ]


def heat(confusion: Sequence[Sequence[float]]) -> list[list[int]]:
    """Colour steps 0..10 of a confusion matrix, by the share within its row."""
    return [[round(10 * cell / sum(row)) if sum(row) > 0 else 0 for cell in row] for row in confusion]


def _controls(rows: Iterable[Any]) -> tuple[str, ...]:
    """In order of appearance, most votes first."""
    votes: dict[str, int] = {}
    for row in rows:
        for control, figures in row.controls.items():
            votes[control] = votes.get(control, 0) + figures.votes
    return tuple(sorted(votes, key=lambda control: -votes[control]))


def _periods(found: ControlProfile) -> tuple[list[Line], list[str]]:
    """Lines of an annotator's rightness over time, and the days they begin."""
    values = found.over_time
    series = [Line("agrees with the rest", [each.accuracy for each in values], "accent")]
    if any(each.predicted is not None for each in values):
        series.append(Line("predicted right", [each.predicted for each in values], "calm"))
    return series, [day(each.start) for each in values]

