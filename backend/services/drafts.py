"""Own pre-annotations as drafts, where Label Studio's settings cannot be changed and annotators gave their tokens.

A draft is preselected over any prediction, and the editor shows it to its owner only. So for each annotator with a
token the next `draft_next_tasks` gaps get a draft, made with that token; its regions keep `origin: "prediction"`, their
score and a mark in `meta`, so that a vote that comes of it is known as an echo, and an export says what made it.

Invariants: only what changed is written; what left the window, was labelled or has nothing to say any more is taken
away, if it is untouched (`draft_writer`); tasks in the control arm get none; that drafts can be seen is remembered
before they are written. One write at a time with a pause after it, nearest tasks first, for `BUDGET_S` at most: the
next run goes on with the rest. A token that is refused stops its annotator's drafts, nobody else's.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.errors import LabelStudioError
from backend.labeling import LabelConfig
from backend.ports import Clock, Desk, LabelStudio, OpenDesk, Progress, Store
from backend.records import Draft, Project
from backend.registry import Loaded
from backend.services import delivery_plan as plan
from backend.services.annotator_tokens import AnnotatorTokens, Opened
from backend.services.draft_writer import DraftWriter, Outcome
from backend.services.features import Features
from backend.services.overrides import settings_of
from backend.services.prediction import Prediction
from backend.services.ready_tasks import ready_tasks
from backend.settings import Settings

PAUSE_S = 0.2  # after each write: at most five a second, since each of them locks SQLite for a moment
BUDGET_S = 60.0
CHUNK = 256  # tasks in one forward
Pair = tuple[int, str]  # task id, annotator


@dataclass(frozen=True, slots=True)
class Wish:
    """The draft that a pair should have; `result` None takes ours away."""

    pair: Pair
    result: Sequence[Mapping[str, Any]] | None
    digest: str = ""


class Drafts:
    """Makes the drafts of one project at a time, as a part of its delivery."""

    def __init__(
        self, *, store: Store, label_studio: LabelStudio, features: Features, prediction: Prediction,
        tokens: AnnotatorTokens, open_desk: OpenDesk, settings: Settings,
        clock: Clock, wait: Callable[[float], None] = time.sleep,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._label_studio = label_studio
        self._features = features
        self._prediction = prediction
        self._tokens = tokens
        self._open_desk = open_desk
        self._settings = settings
        self._clock = clock
        self._wait = wait
        self._seconds = seconds
        self._writer = DraftWriter(store)

    def run(self, project: Project, loaded: Loaded, config: LabelConfig, progress: Progress) -> dict[str, Any]:
        """Bring the drafts up to date; {} where there is nothing to do with drafts. Figures count what was done.

        Raises LabelStudioError when Label Studio is down, SettingsError when the key of the tokens cannot be used.
        """
        known = self._store.drafts.of(project.key)
        if settings_of(self._settings, project).middleware and not known:
            return {}
        opened = {each.stored.annotator: each for each in self._tokens.of(project.key)}
        if not opened:
            return {}
        wanted, voted = self._wanted(project, loaded, config, list(opened))
        self._forget_voted(project, known, voted)
        wishes, unchanged = self._wishes(known, wanted, opened)
        to_write = sorted({wish.pair[0] for wish in wishes if wish.result is not None})
        self._prediction.remember(project, to_write, [], name=loaded.version.name)
        counts = self._work(project, loaded, wishes, known, opened, progress)
        return {f"drafts_{name}": number for name, number in counts.items()} | {"drafts_unchanged": unchanged}

    def _wanted(
        self, project: Project, loaded: Loaded, config: LabelConfig, annotators: Sequence[str],
    ) -> tuple[dict[Pair, dict[str, Any]], plan.Voted]:
        """The prediction that each pair should have a draft of, nearest tasks first; and who voted on what."""
        settings, key = settings_of(self._settings, project), project.key
        ids, voted = self._store.tasks.ids(key), plan.Voted.of(self._store.votes.current(key))
        if settings.middleware:
            return {}, voted
        about = self._label_studio.project(project.label_studio_id)
        activity, now = self._store.votes.activity(key), self._clock()
        active = plan.active_annotators(activity, now=now, days=settings.own_active_days)
        chosen = [annotator for annotator in active if annotator in annotators][: settings.own_max_annotators]
        gaps = plan.next_gaps(
            ids, voted, chosen, limit=settings.draft_next_tasks, wanted_votes=int(about.get("maximum_annotations") or 1)
        )
        made = self._predictions(project, loaded, config, gaps)
        ranked = sorted((rank, who, task) for who, tasks in gaps.items() for rank, task in enumerate(tasks))
        return {(task, who): made[task, who] for _, who, task in ranked if (task, who) in made}, voted

    def _predictions(
        self, project: Project, loaded: Loaded, config: LabelConfig, gaps: Mapping[str, Sequence[int]],
    ) -> dict[Pair, dict[str, Any]]:
        """Own predictions that say something. Those of tasks in the control arm are left out by `compute`."""
        annotators_of: dict[int, list[str]] = {}
        for annotator, tasks in gaps.items():
            for task in tasks:
                annotators_of.setdefault(task, []).append(annotator)
        ids, found = sorted(annotators_of), {}
        for begin in range(0, len(ids), CHUNK):
            known = self._store.tasks.get(project.key, ids[begin : begin + CHUNK])
            ready = ready_tasks(self._features, loaded, config, known, annotators_of)
            votes = self._store.votes.of_tasks(project.key, [task.id for task in ready])
            for made in self._prediction.compute(project, loaded, config, ready, votes):
                found.update({(made.task_id, who): one for who, one in made.own.items() if one["result"]})
        return found

    def _forget_voted(self, project: Project, known: dict[Pair, Draft], voted: plan.Voted) -> None:
        """A draft that became the annotator's own is of no interest once they labelled the task."""
        done = [pair for pair, entry in known.items()
                if entry.theirs and pair[0] in voted.tasks_of.get(pair[1], frozenset())]
        if done:
            self._store.drafts.forget(project.key, done)
        for pair in done:
            del known[pair]

    def _wishes(
        self, known: Mapping[Pair, Draft], wanted: Mapping[Pair, dict[str, Any]], opened: Mapping[str, Opened],
    ) -> tuple[list[Wish], int]:
        """What has to be done, in order, and how many drafts are as they should be."""
        wishes, unchanged = [], 0
        for pair, prediction in wanted.items():
            entry, digest = known.get(pair), plan.digest(prediction)
            if entry is not None and not entry.theirs and not entry.pending and entry.digest == digest:
                unchanged += 1
            elif entry is None or not entry.theirs:
                wishes.append(Wish(pair, marked(prediction), digest))
        wishes += [Wish(pair, None) for pair, entry in sorted(known.items())
                   if pair not in wanted and not entry.theirs and pair[1] in opened]
        return wishes, unchanged

    def _work(
        self, project: Project, loaded: Loaded, wishes: Sequence[Wish], known: Mapping[Pair, Draft],
        opened: Mapping[str, Opened], progress: Progress,
    ) -> dict[str, int]:
        counts: Counter[str] = Counter({"made": 0, "changed": 0, "removed": 0, "left": 0})
        desks: dict[str, Desk] = {}
        refused: set[str] = set()
        until = self._seconds() + BUDGET_S
        for number, wish in enumerate(wishes):
            if self._seconds() > until:
                counts["left"] = sum(each.pair[1] not in refused for each in wishes[number:])
                break
            progress(0.95 + 0.05 * number / len(wishes), f"looked after {number} of {len(wishes)} drafts")
            who = opened[wish.pair[1]]
            if who.stored.annotator in refused:
                continue
            desk = desks.setdefault(who.stored.annotator, self._open_desk(who.token))
            try:
                outcome = self._fulfil(project, loaded, wish, known.get(wish.pair), desk, who)
            except LabelStudioError as error:
                if error.http_status in (401, 403):
                    refused.add(who.stored.annotator)
                    self._tokens.report(who.stored, refusal(who))
                elif error.retry and not self._is_gone(project, wish.pair[0], error):
                    raise
                counts["failed"] += 1
                continue
            self._tokens.report(who.stored, "")
            counts[outcome.value] += 1
            if outcome in (Outcome.MADE, Outcome.CHANGED, Outcome.REMOVED):
                self._wait(PAUSE_S)
        return dict(counts)

    def _is_gone(self, project: Project, task_id: int, error: LabelStudioError) -> bool:
        """Label Studio answers 500, as if it were ill, when a draft is made on a task that was deleted."""
        if error.http_status != 500 or self._label_studio.tasks_by_id(project.label_studio_id, [task_id]):
            return False
        self._store.tasks.mark_dirty(project.key, [task_id])  # so that Polyvox notices as well
        return True

    def _fulfil(
        self, project: Project, loaded: Loaded, wish: Wish, entry: Draft | None, desk: Desk, who: Opened,
    ) -> Outcome:
        email = who.stored.email
        if wish.result is None:
            assert entry is not None  # only what is known is taken away
            return self._writer.take_away(project.key, desk, email, entry)
        wanted = Draft(task_id=wish.pair[0], annotator=wish.pair[1], draft_id=None, version=loaded.version.name,
                       digest=wish.digest, written="")
        return self._writer.put(project.key, desk, email, entry, wanted=wanted, result=wish.result)


def marked(prediction: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The regions of a prediction with a mark of who made them; Label Studio keeps it through editing and exports."""
    mark = {"polyvox": prediction["model_version"]}
    return [{**region, "meta": {**region.get("meta", {}), **mark}} for region in prediction["result"]]


def refusal(who: Opened) -> str:
    """What to tell people when Label Studio does not take a token any more."""
    return (f"Label Studio refuses the token of {who.stored.email}, so they get no drafts: ask them for a new one "
            "and store it with `python -m backend annotator-token add`.")
