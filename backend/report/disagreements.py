"""Why votes differ, in sentences for people: of a control, of a task, of one vote. Names are those that are shown."""

from __future__ import annotations

from backend.report.names import Names
from backend.report.words import count, number
from backend.services.statistics.documents import DifferingVote, TaskLists, TaskRow

CAUSES = {
    "agreed": "agreed", "habit": "habit of one person", "readings": "can be read in two ways",
    "slip": "probably a slip", "cannot-tell": "cannot tell",
}
_SAID = {"habit": "habit of {}", "readings": "two readings", "slip": "slip of {}", "cannot-tell": "cannot tell"}
_NAMED = 5  # people in the sentence of a control


def causes(control: str, lists: TaskLists, names: Names) -> str:
    """Why votes differ on a control."""
    whole = sum(lists.causes.values())
    if not whole:
        return f"No task has votes on {control} yet."
    if not lists.split:
        return f"No task has different votes on {control} yet."
    found = {cause: lists.causes.get(cause, 0) for cause in ("habit", "readings", "slip")}
    untold = lists.split - sum(found.values())
    parts = []
    if found["habit"]:
        parts.append(f"on {number(found['habit'])} the difference is a habit of one person ({_people(lists, names)})")
    if found["readings"]:
        parts.append(f"{number(found['readings'])} can be read in two ways")
    if found["slip"]:
        parts.append(f"{number(found['slip'])} {'looks like a slip' if found['slip'] == 1 else 'look like slips'}")
    if untold:
        parts.append(_untold(untold, lists.few))
    return (f"Of {count(whole, 'task')} with votes on {control}, {number(lists.split)} got different labels: "
            f"{'; '.join(parts)}.")


def _people(lists: TaskLists, names: Names) -> str:
    """"Ada 7, Ben 5"."""
    ranked = sorted(lists.habits.items(), key=lambda item: (-item[1], names.name(item[0])))
    said = [f"{names.name(who)} {number(n)}" for who, n in ranked[:_NAMED]]
    rest = sum(n for _, n in ranked[_NAMED:])
    return ", ".join([*said, *([f"others {number(rest)}"] if rest else [])])


def _untold(untold: int, few: int) -> str:
    if few == untold:
        return f"for {number(untold)} there are too few votes to tell"
    why = f", for {number(few)} of them because there are too few votes" if few else ""
    return f"for {number(untold)} it cannot be told{why}"


def cause(row: TaskRow, names: Names) -> str:
    """"habit of Ada; slip of Ben": the causes of a task's votes, the main one first; "agreed" where there are none."""
    if not row.differing or row.cause == "cannot-tell":
        return CAUSES.get(row.cause, row.cause)
    said: dict[str, list[str]] = {}
    for vote in sorted(row.differing, key=lambda vote: (vote.cause != row.cause, vote.cause == "cannot-tell")):
        said.setdefault(vote.cause, []).append(names.name(vote.annotator))
    told = [_SAID.get(kind, kind).format(" and ".join(who)) for kind, who in said.items() if kind != "cannot-tell"]
    return "; ".join(told) or CAUSES.get(row.cause, row.cause)


def why(row: TaskRow, names: Names) -> str:
    """A sentence for every vote whose difference is explained."""
    said = [_vote(vote, names) for vote in row.differing if vote.cause in ("habit", "slip")]
    if row.cause == "readings":
        labels = sorted({vote.given for vote in row.differing if vote.cause == "readings"})
        others = next((vote.instead for vote in row.differing if vote.cause == "readings"), row.label)
        if labels:
            said.insert(0, f"It can be read as {others} and as {' or '.join(labels)}.")
    return " ".join(said)


def _vote(vote: DifferingVote, names: Names) -> str:
    who = names.name(vote.annotator)
    says, said, where, others = _words(vote)
    if vote.cause == "slip":
        return f"{who} {said}, which looks like a slip: {others}."
    times, of = round(vote.times), round(vote.of)
    often = "usually" if vote.times >= 0.5 * vote.of else "often" if vote.times >= 0.2 * vote.of else "sometimes"
    share = f" ({number(times)} of {number(of)})" if 0 < times <= of else ""
    return f"{who} {often} {says} where others {where}{share}."


def _words(vote: DifferingVote) -> tuple[str, str, str, str]:
    """What somebody says and said, what others say and come to; with several choices, the one in question."""
    if vote.given.startswith("with ") and vote.instead == f"without {vote.given[5:]}":
        return f"chooses {vote.given[5:]}", f"chose {vote.given[5:]}", "do not", "most others did not"
    if vote.given.startswith("without ") and vote.instead == f"with {vote.given[8:]}":
        return f"leaves out {vote.given[8:]}", f"left out {vote.given[8:]}", "choose it", "most others chose it"
    return f"says {vote.given}", f"said {vote.given}", f"say {vote.instead}", f"most others say {vote.instead}"
