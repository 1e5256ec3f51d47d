"""The overview as four questions, each with one figure, one plot and what to do: done, agreement, trust, next.

Pure functions of documents. One accuracy is shown, and the words beside it say why it is the one to believe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from backend.report import disagreements, sentences
from backend.report.charts import Bar, Part, bars, columns, stacked
from backend.report.links import Links
from backend.report.words import DASH, count, decimal, number, percent
from backend.services.gaps.documents import GapFigures
from backend.services.statistics.documents import (
    MOST_COUNTED,
    ClassAgreement,
    ControlOverview,
    Coverage,
    LadderFigures,
    ModelScore,
    Overview,
    TaskLists,
)
from model.base_models.registry import NAIVE

MOST_CLASSES = 6  # bars of one plot


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something to do, and where."""

    words: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One question with what is known of it."""

    name: str  # for an id
    question: str
    figure: str
    about: str  # what the figure is
    plot: Markup | None
    under: str  # what the plot shows
    says: Sequence[str]
    steps: Sequence[Step] = ()
    parts: Sequence[Part] = ()  # the key of a stacked plot


def done(document: Overview, found: GapFigures | None, links: Links) -> Answer:
    """How much of the work is done."""
    cover = document.coverage
    labelled = cover.tasks - cover.votes_per_task[0] if cover.votes_per_task else 0
    single = cover.votes_per_task[1] if len(cover.votes_per_task) > 1 else 0
    says = [sentences.lead(document)]
    if single:
        says.append(f"{count(single, 'task has', 'tasks have')} a single vote, so nothing can be compared there.")
    if found is not None and cover.tasks:
        figure, about = percent(found.done / cover.tasks), (
            f"of {count(cover.tasks, 'task')} need no further vote: another one would hardly change the consensus")
    else:
        figure = percent(labelled / cover.tasks) if cover.tasks else DASH
        about = f"of {count(cover.tasks, 'task')} have a vote"
    return Answer(name="done", question="Is it done?", figure=figure, about=about, says=says,
                  plot=_per_task(cover), under="Tasks by number of votes",
                  steps=[Step(words="What is labelled, and what is missing", address=links.page("gaps"))])


def agree(control: ControlOverview, links: Links) -> Answer:
    """How far annotators agree."""
    found = control.agreement
    shown = _least_agreed(found.classes)
    under = "If one of two annotators gives this label, how often the other does too"
    if len(shown) < len(found.classes):
        under += f" (the {len(shown)} least agreed of {len(found.classes)} labels)"
    return Answer(
        name="agree", question="Do they agree?", figure=decimal(found.alpha.value),
        about="Krippendorff’s α: agreement beyond chance. 1 is perfect, 0 is what guessing would reach",
        plot=bars([Bar(each.name, each.agreement) for each in shown], title="Agreement by label") if shown else None,
        under=under, says=[sentences.agreement(control.name, found)],
        steps=[Step(words="Who agrees with whom", address=links.page("annotators"))])


def trust(control: ControlOverview, links: Links) -> Answer:
    """Whether the model can be trusted."""
    question, under = "Can the model be trusted?", "Predicted right, on the same held-out votes"
    ladder = control.ladder
    served = _served(ladder)
    if ladder is None or served is None:
        says = ("No version has been published yet, so there are no predictions to judge." if ladder is None else
                sentences.ladder(control.name, ladder))
        return Answer(name="trust", question=question, figure=DASH, about="of held-out votes predicted right",
                      plot=None, under="", says=[says])
    shown = [served, *(each for each in ladder.heldout if each.name in NAIVE)]
    plot = bars([Bar(sentences.way(each.name), each.accuracy, kind="fill" if each is served else "calm")
                 for each in shown], title="Predicted right")
    return Answer(
        name="trust", question=question, figure=percent(served.accuracy),
        about=f"of {count(served.votes, 'held-out vote')} predicted right, annotator by annotator", plot=plot,
        under=under, says=[sentences.ladder(control.name, ladder), sentences.BELIEVE],
        steps=[Step(words="Whom it knows, and whom not yet", address=links.page("annotators"))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What waits for somebody, for the last question."""

    flags: int  # open ones
    people: int  # annotators whose figures ask for a look


def following(document: Overview, lists: TaskLists | None, found: GapFigures | None, waiting: Waiting,
              links: Links) -> Answer:
    """What to do next."""
    steps = []
    left = document.coverage.tasks - found.done if found is not None else None
    if found is not None and found.asks:
        steps.append(Step(words=f"Ask for the {count(len(found.asks), 'vote')} that would help most",
                          address=links.page("gaps")))
    if waiting.flags:
        steps.append(Step(words=f"Check {count(waiting.flags, 'vote')} that may be slips", address=links.page("flags")))
    if waiting.people:
        steps.append(Step(words=f"Look at {count(waiting.people, 'annotator')} first",
                          address=links.page("annotators")))
    causes = lists.causes if lists is not None else {}
    parts = cause_parts(causes)
    if sum(causes.values()):
        steps.append(Step(words="Read the most divided tasks, and make the instructions clear on them",
                          address=links.page("tasks", list="divided")))
    figure, about = (number(left), "tasks may still change with another vote") if left is not None else (
        number(waiting.flags), "votes may be slips and are not checked yet")
    return Answer(
        name="next", question="What next?", figure=figure, about=about, says=() if steps else ["Nothing waits."],
        plot=stacked(parts, title="Why the votes on a task differ") if sum(causes.values()) else None,
        under="Why the votes on a task differ", steps=steps, parts=parts)


def cause_parts(causes: Mapping[str, int]) -> list[Part]:
    """Tasks by why their labels differ."""
    return [Part(disagreements.CAUSES.get(cause, cause), amount, f"cause-{cause}") for cause, amount in causes.items()]


def _served(ladder: LadderFigures | None) -> ModelScore | None:
    """What is served on held-out votes, where it could be judged."""
    ways = {each.name: each for each in (ladder.heldout if ladder is not None else ())}
    served = ways.get("served")
    return served if served is not None and served.accuracy is not None else None


def _per_task(cover: Coverage) -> Markup:
    labels = [f"{n}+" if n == MOST_COUNTED else str(n) for n in range(len(cover.votes_per_task))]
    return columns(cover.votes_per_task, labels, title="Tasks by number of votes", axis="Votes: tasks", tall=110)


def _least_agreed(classes: Sequence[ClassAgreement]) -> list[ClassAgreement]:
    """In the order of the configuration; of many, those with the least agreement."""
    known = [each for each in classes if each.agreement is not None]
    if len(known) <= MOST_CLASSES:
        return known
    return sorted(known, key=lambda each: each.agreement or 0.0)[:MOST_CLASSES]
