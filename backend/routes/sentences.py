"""The state in sentences for people: which version answers, how good it is beside the naive answers, what waits.

Pure functions of the records of `overview`. Numbers are exact; where they rest on little, the sentence says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from backend.instants import CLOCKS_DIFFER_S
from backend.prediction_names import consensus_version
from backend.records import Job, JobKind, JobState, Verdict
from backend.report.people_sentences import WORDS
from backend.report.sentences import predicted
from backend.routes.overview import AnnotatorScore, ControlFigures, Overview, ProjectView
from backend.routes.problems import interrupted, the
from backend.services.statistics.documents import ALONE
from backend.services.trigger_rules import rejected_in_a_row
from model.base_models.registry import NAIVE

NAMED = 5  # annotators in one sentence
_FORMER = ("dawid-skene", "median")  # what documents of an older release name instead of `ALONE`


def connection(shown: Overview) -> str:
    """What is connected."""
    if not shown.connected:
        return "Polyvox is not connected to a Label Studio: it answers, but cannot read votes."
    if shown.away:
        return (f"Label Studio at {shown.label_studio_url} {shown.away}; until then no votes are read and nothing is "
                "delivered.")
    read = [view.sync.last_success for view in shown.projects if view.sync.last_success]
    when = f", last read {ago(max(read), shown.at)}" if read else ""
    if not shown.works:
        return (f"Label Studio at {shown.label_studio_url} answers, but Polyvox cannot read it; the projects below say "
                "why.")
    if not read:
        return f"Label Studio at {shown.label_studio_url} answers; nothing was read from it yet."
    return f"Polyvox works for Label Studio at {shown.label_studio_url}{when}."


def of_project(view: ProjectView, now: datetime) -> list[str]:
    """Everything there is to say of one project, the most important first."""
    said = [answering(view, now), *(quality(each) for each in view.figures)]
    ordered = [] if view.published is None else orders(view.published.figures)
    said += ordered
    if view.published and not view.figures and not ordered:
        said.append("How good it is could not be measured yet: no vote was held out.")
    said += [*learned(view), *crowd(view)]
    return said + waiting(view, now) + list(view.notes)


def answering(view: ProjectView, now: datetime) -> str:
    """Which version answers, and where its predictions are."""
    if view.published is None:
        missing = view.min_votes - view.votes.total
        if missing > 0:
            return f"No version answers yet: the first training starts at {view.min_votes} votes, {missing} to go."
        same = view.votes.classes == 1
        return "No version answers yet" + (": all votes say the same." if same else ".")
    name = view.published.name
    if view.answering is None:
        return (f"No version answers, since the checkpoint of {name} is missing or damaged and there is no earlier "
                "one; until the next training only votes count.")
    if view.answering.number != view.published.number:
        return f"Version {view.answering.name} answers, since the checkpoint of {name} is missing or damaged."
    return f"Version {name} answers, published {ago(view.published.created_at, now)}{_delivered(view, name)}."


def _delivered(view: ProjectView, name: str) -> str:
    if view.settings.shadow_mode:
        return ", in shadow mode: its predictions are scored and not shown"
    if not view.delivers:
        return ", when Label Studio asks for a task; nothing is delivered in bulk"
    if view.delivery is None or view.delivery.finished_at is None:
        return "; its predictions are on their way to Label Studio" if view.delivery else "; nothing is delivered yet"
    same = view.delivery.version == consensus_version(name)
    return ", and is delivered" if same else f"; {view.delivery.version} is delivered, the newer one follows"


def quality(figures: ControlFigures) -> str:
    """How good a version is at one control, beside simple guesses on the same votes."""
    ways = {way.name: way for way in figures.ways}
    served = ways.get("served")
    if served is None or served.accuracy is None:
        return f"How good it is at {figures.control} is not known: no votes were held out that could judge it."
    naive = [ways[name] for name in NAIVE if name in ways and ways[name].accuracy is not None]
    return predicted("The model", figures.control, served, naive)


def orders(figures: Mapping[str, Any]) -> list[str]:
    """How good a version is at rankings, beside equal chances for all orders; whatever does not have the expected shape
    is left out."""
    said = []
    stored = figures.get("rankings")
    for control, about in (stored if isinstance(stored, Mapping) else {}).items():
        parts = []
        for name, where in (("unseen", "on tasks without a ranking"), ("gap", "on tasks with some")):
            part = about.get(name) if isinstance(about, Mapping) else None
            if isinstance(part, Mapping) and isinstance(part.get("gain"), float):
                shown = "predicted" if part.get("helps") else "not predicted, since that is not beyond chance"
                parts.append(f"{where} a log-loss of {part['loss']:.2f} a ranking against {part['uniform']:.2f} of "
                             f"equal chances for all orders ({part['scored']} cross-validated; lower is better): "
                             f"{shown}")
        if parts:
            said.append(f"Orders of {control}: {'; '.join(parts)}.")
    return said


def crowd(view: ProjectView) -> list[str]:
    """What the crowd says: the consensus, how far annotators agree, who labels unlike the others."""
    said = []
    for each in view.crowd:
        if not each.tasks:
            continue
        sure = "" if each.confidence is None else f" with an average confidence of {_percent(each.confidence)} %"
        alpha = ("" if each.alpha is None else
                 f"; annotators agree with Krippendorff's alpha {each.alpha:.2f} (1 is perfect, 0 is guessing)")
        tasks = f"{each.tasks} task{' has' if each.tasks == 1 else 's have'}"
        by = "From votes alone" if each.method in (ALONE, *_FORMER) else f"By version {each.method}"
        said.append(f"{by}, {tasks} a consensus on {each.control}{sure}{alpha}.")
    odd = {(score.name, WORDS.get(score.fault, score.fault)) for score in view.scores if score.fault}
    if odd:
        named = "; ".join(f"{name}: {words}" for name, words in sorted(odd)[:NAMED])
        more = f"; and {len(odd) - NAMED} more" if len(odd) > NAMED else ""
        said.append(f"Worth asking about: {named}{more}.")
    return said


_LEARNED = {"learned": "Learned so far on {}: {}.", "learning": "Still learning on {}, with too few votes to tell: {}.",
            "cannot foresee yet": "On {} the model cannot foresee yet: {}."}


def learned(view: ProjectView) -> list[str]:
    """Whom the published version has learned, control by control."""
    said = []
    for control in dict.fromkeys(score.control for score in view.scores if score.learned):
        for badge, sentence in _LEARNED.items():
            mine = [score for score in view.scores if score.control == control and score.learned == badge]
            if mine:
                said.append(sentence.format(control, _named(mine)))
    return said


def _named(scores: Sequence[AnnotatorScore]) -> str:
    names = ", ".join(score.name for score in scores[:NAMED])
    return names + (f" and {len(scores) - NAMED} more" if len(scores) > NAMED else "")


def waiting(view: ProjectView, now: datetime) -> list[str]:
    """What is about to happen, and what it waits for."""
    said = []
    if view.dirty:
        said.append(f"{view.dirty} task{'' if view.dirty == 1 else 's'} changed and will be read again.")
    if view.sync.last_success is None and not view.jobs and not view.sync.last_error and not view.tasks:
        said.append("It was not read from Label Studio yet; a job process does that.")
    new = view.votes.changes - max((version.changes for version in view.versions), default=0)
    trains = any(job.kind is JobKind.TRAIN for job in view.jobs)
    if view.published and new > 0 and not trains:
        after, quiet_s = view.settings.train_after_votes, view.settings.train_after_quiet_s
        rejected = rejected_in_a_row(view.versions)
        later = f"; it waits longer, since the last {rejected} tried were not published" if rejected > 1 else ""
        missing = view.min_votes - view.votes.total
        if missing > 0:
            when = f"at {view.min_votes} votes, {missing} to go"
        elif view.votes.classes < 2:
            when = "when votes do not all say the same"
        else:
            when = f"after {after}, or {quiet_s:g} seconds without a new one{later}"
        said.append(f"{new} vote{'' if new == 1 else 's'} changed since the last training; the next one comes {when}.")
    return said + [again(job, now) for job in view.jobs if job.error]


def again(job: Job, now: datetime) -> str:
    """An open job that was begun before. One that was cut off may have failed since: its last error is called that."""
    begun = f"{the(job)} failed" if job.interrupted_at is None else interrupted(job)
    error = f": {job.error}" if job.interrupted_at is None else f"; its last error: {job.error}"
    if job.state is JobState.RUNNING:
        return f"{begun} and runs again{error}"
    wait_s = max((job.not_before - now).total_seconds(), 0.0)
    return f"{begun} and is tried again{f' in {wait_s:.0f} s' if wait_s >= 1 else ''}{error}"


def newest_verdict(view: ProjectView) -> str:
    """What became of the newest version when it was not published, else ""."""
    latest = view.versions[0] if view.versions else None
    if latest is None or latest.verdict is Verdict.PUBLISHED:
        return ""
    kept = f"{view.published.name} stays" if view.published else "nothing is published yet"
    return f"{latest.name} was not published, {kept}: {latest.reason}"


def ago(moment: datetime, now: datetime) -> str:
    """"3 minutes ago"; of a moment ahead of the clock nobody knows how long ago it was."""
    seconds = (now - moment).total_seconds()
    if seconds < -CLOCKS_DIFFER_S:
        return "by a clock that was ahead of this one"
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def _percent(share: float) -> str:
    return f"{share * 100:.0f}"
