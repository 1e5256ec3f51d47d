"""What is said of people: habits with counts, faults only where they are named, and what is missing to say anything.

Nobody is badged. A habit is a way to label; a fault is said as what was counted, with how often such a finding comes up
where nothing is wrong. `WORDS` are the few words for a table.
"""

from __future__ import annotations

from backend.report.words import count, known, number, percent
from backend.services.statistics.documents import Judgement
from model.quality.grounds import FEWEST_OTHERS, FEWEST_TASKS, MET

WORDS = {
    "constant": "one answer nearly always", "inverter": "two classes swapped", "drifter": "agrees less than before",
    "spammer": "labels not explained",
}
LEAST = 1e-3  # smaller chances are said as this one: how the tests are made is not exact beyond
_SETS = ("absent", "present")


def judged(figures: Judgement, name: str = "") -> list[str]:
    """Everything that may be said of somebody's way to label."""
    said = missing(figures) + habits(figures, name)
    if figures.fault:
        return [*said, f"{finding(figures, name)}. {false_alarm(figures)}"]
    if not figures.unrelated:
        return said
    return [*said, f"What the others say of a task does not tell what {name or 'this annotator'} says of it: a rule of "
            "their own, or labels given without a look at the task. Votes alone cannot tell which, so it counts as no "
            "fault."]


def missing(figures: Judgement) -> list[str]:
    """What is missing before anything can be said of faults; nothing where nothing is."""
    tasks, people = figures.common_tasks, figures.common_people
    if tasks >= FEWEST_TASKS and people >= FEWEST_OTHERS:
        return []
    if not tasks:
        return ["No task in common with others yet, so nothing is said of how they label."]
    has = f"{number(tasks)} of {FEWEST_TASKS} common tasks" if tasks < FEWEST_TASKS else count(tasks, "common task")
    who = ("no other person of two", "one other person of two")[people] if people < FEWEST_OTHERS else \
        count(people, "other", "others")
    return [f"So far {has} and {who} (with {MET} tasks in common or more), so nothing is said of habits or faults yet."]


def habits(figures: Judgement, name: str = "") -> list[str]:
    """"Calls Impolite what others call Neutral: 31 of 40 (usual: 9 %)."."""
    said = []
    for each in figures.habits:
        if (each.others_say, each.says) == _SETS:
            what = "chooses what the others do not choose"
        elif (each.says, each.others_say) == _SETS:
            what = "leaves out what the others choose"
        else:
            what = f"calls \u201c{each.says}\u201d what the others call \u201c{each.others_say}\u201d"
        said.append(f"{_of(name, what)}: {number(each.count)} of {number(each.of)} (usual: {percent(each.usual)}).")
    return said


def finding(figures: Judgement, name: str = "") -> str:
    """What was counted, without the full stop; "" where no fault is named."""
    if figures.fault == "constant":
        share, usual = percent(figures.top_share), percent(figures.expected_share)
        return _of(name, f"gives \u201c{figures.top_class}\u201d nearly always: in {share} of the votes on common "
                         f"tasks, where {usual} would be usual for these tasks")
    if figures.fault == "inverter":
        names = _swapped(figures)
        what = f"\u201c{names[0]}\u201d and \u201c{names[1]}\u201d" if names else "Two classes"
        return f"{what} are the other way round than with the others; perhaps they were mixed up"
    if figures.fault == "drifter":
        fell = f": in {percent(figures.drift_before)} of the votes before, in {percent(figures.drift_after)} after" \
            if known(figures.drift_before) else ""
        return (f"{_of(name, 'agrees')} with the rest less than before{fell}. What the others say of these tasks does "
                "not explain the change")
    if figures.fault == "spammer":
        return (f"Neither what the others say of a task nor what the model sees in it tells what {name or 'they'} "
                "said. It may be a rule that the model cannot see, or labels given without a look at the task: ask, or "
                "look at some of the tasks")
    return ""


def false_alarm(figures: Judgement) -> str:
    """How often such a finding comes up where nothing is wrong."""
    p = figures.false_alarm
    if p is None:
        return ""
    at_most = f"at most {percent(p)}" if p >= 0.01 else f"fewer than 1 in {number(100 if p >= LEAST else 1 / LEAST)}"
    return f"By chance, anybody would be found so in {at_most} of the projects where nothing is wrong."


def _of(name: str, what: str) -> str:
    """A clause with its subject, or without one where the name stands before it."""
    return f"{name} {what}" if name else what[:1].upper() + what[1:]


def _swapped(figures: Judgement) -> tuple[str, str] | None:
    pairs = {(each.others_say, each.says) for each in figures.habits}
    both = sorted(pair for pair in pairs if pair[::-1] in pairs)
    return both[0] if both else None
