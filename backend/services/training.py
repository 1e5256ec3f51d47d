"""Training: the votes of a project in, a verdict out (and a published version when the gate lets it pass).

Invariants: what is held out is a pure function of project and task; votes outside the current label config and votes on
tasks without text are left out, counted and said; the count of changes is read before the votes, so that a vote that
arrives meanwhile makes the next training due; every run that could train ends in a recorded version, published or not.
After a rejected version the next run starts from scratch instead of going on from the published one; so it does when
more is held out than the published version was trained with, and then only what that one never saw judges the two.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import JobFailed
from backend.labeling import LabelConfig, parse_config
from backend.labeling.content import text_of
from backend.ports import Clock, Progress, Store
from backend.records import Project, Verdict, Version
from backend.registry import Loaded, Registry
from backend.services.features import Features
from backend.services.overrides import settings_of
from backend.services.prediction import trained_on
from backend.services.ranking_verdicts import (
    JudgedRankings,
    judged_rankings,
    learned_rankings,
    ranking_votes,
    rankings_alone,
)
from backend.services.regions import known_regions, region_contents
from backend.services.served import is_account, learned_of
from backend.services.statistics.checks import weighed
from backend.settings import Settings
from model.data.spaces import Space
from model.data.splits import is_heldout, task_of
from model.data.votes import Votes
from model.errors import CheckpointError, ModelError
from model.learners.classes import ClassesLearner, LearnedClasses
from model.learners.rankings import RankingsLearner
from model.learners.registry import CLASSES
from model.ranking_model import LEAST_VOTES, RankingModel

if TYPE_CHECKING:
    from model.ensemble.ladder import Fit, Judgement, Ladder, LadderConfig, TrainingSet
    from model.quality.evidence import Evidence

log = logging.getLogger(__name__)

_ENCODE_CHUNK = 512  # texts whose tokens are in memory at once while the cache is filled
_ENCODE_SHARE = 0.3  # of the progress bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a project gives to learn from."""

    votes: Votes  # those that can be learned from
    spaces: Mapping[str, Space]
    texts: Mapping[str, str]  # unit -> content
    left_out: Mapping[str, int]  # why -> votes
    changes: int  # VoteCounts.changes when the votes were read
    orders: Mapping[str, Votes]  # control -> its rankings
    rankings: Mapping[str, RankingModel]  # control -> what was learned of them
    rankings_alone: bool  # nothing else can be learned; then `votes` are these


class Training:
    """Trains one project at a time; the job queue sees to it that nobody else trains the same."""

    def __init__(
        self, *, store: Store, features: Features, registry: Registry, settings: Settings, clock: Clock,
        ladder: LadderConfig | None = None,
    ) -> None:
        """`ladder` is how to learn (by default the preset `polyvox`); its echo weight is that of the settings."""
        self._store = store
        self._features = features
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._ladder = ladder

    @property
    def _orders(self) -> RankingsLearner:
        return RankingsLearner(accepted_weight=self._settings.echo_weight)

    def run(self, project: str, progress: Progress, *, full: bool = False) -> dict[str, Any]:
        """Train, judge, record. Returns verdict, version, reason and counts; with `full` it starts from scratch.

        Raises JobFailed with a sentence when there is too little to learn from or the checkpoint cannot be written.
        """
        from model.ensemble.audit import audit_evidence  # torch is loaded by who trains
        from model.ensemble.scoring import by_annotator

        record = self._store.projects.get(project)
        if record is None:
            raise JobFailed("The project is unknown.")
        progress(0.0, "reading votes")
        material = self._read(record)
        self._require_enough(record, material)
        if material.rankings_alone:
            return self._publish_rankings(project, material, progress)
        self._encode(material.texts, progress)
        data = self._training_set(project, material)
        published = self._comparable(project, data.tokens(list(material.texts)[:1]))
        percent = self._settings.heldout_percent
        untouched = min(percent, _heldout_percent(published, percent))  # neither it nor the new one trained on these
        full = full or self._last_was_rejected(project) or untouched < percent
        learner = ClassesLearner(config=self._ladder_config())
        try:
            fitted = learner.fit(
                data, None if full or published is None else LearnedClasses(ladder=published.ladder),
                progress=lambda done, note: progress(_ENCODE_SHARE + 0.6 * done, note), device=self._registry.device,
            )
            progress(0.92, "judging")
            measure = replace(data, heldout=_heldout(project, untouched))
            verdict = learner.judge(
                fitted, None if published is None else LearnedClasses(ladder=published.ladder), measure,
                behind=_behind(published), earlier=self._earlier(project, published), waived=self._waived(project),
            )
        except ModelError as error:
            raise JobFailed(f"Nothing could be learned: {error}.") from error
        figures = {
            **fitted.figures, "gate": verdict.figures, "encoder": self._features.encoder_id,
            "started_from": _origin(published, fitted), **self._about(material),
            "by_annotator": {name: by_annotator(scored, fitted.ladder.annotators)
                             for name, scored in fitted.heldout.items()},
        }
        ranked = self._judged(project, material)
        verdict = replace(verdict, reason=f"{verdict.reason} {ranked.reason}".strip())
        evidence = audit_evidence(fitted) if verdict.publish else None
        return self._record(project, material, fitted.ladder, verdict, figures, ranked, progress, evidence)

    def _publish_rankings(self, project: str, material: Material, progress: Progress) -> dict[str, Any]:
        """A version without a network."""
        from model.ensemble.ladder import Judgement, Ladder

        progress(0.9, "judging")
        ranked = self._judged(project, material)
        ladder = Ladder(annotators=material.votes.annotators, controls={}, committee=None, dim=0,
                        config=self._ladder_config())
        figures = {"controls": {}, "gate": {}, "encoder": "", "started_from": "scratch", **self._about(material)}
        verdict = Judgement(publish=ranked.news, reason=ranked.reason, figures={})
        return self._record(project, material, ladder, verdict, figures, ranked, progress)

    def _about(self, material: Material) -> dict[str, Any]:
        return {
            "heldout_percent": self._settings.heldout_percent, "votes": len(material.votes),
            "left_out": dict(material.left_out), "annotators": len(set(material.votes.annotator.tolist())),
        }

    def _judged(self, project: str, material: Material) -> JudgedRankings:
        return judged_rankings(
            self._orders, material.orders, material.rankings, self._registry.published(project),
            lambda percent: _heldout(project, percent), self._settings.heldout_percent)

    def _record(
        self, project: str, material: Material, ladder: Ladder, verdict: Judgement, figures: Mapping[str, Any],
        ranked: JudgedRankings, progress: Progress, evidence: Evidence | None = None,
    ) -> dict[str, Any]:
        progress(0.97, "recording the verdict")
        figures = {**figures, "rankings": dict(ranked.figures), "ranking_gate": dict(ranked.gate)}
        try:
            version = self._registry.save(project, ladder, verdict, figures, material.changes, evidence=evidence)
        except CheckpointError as error:
            raise JobFailed(f"The version could not be kept: {error}.", retry_in_s=60.0) from error
        return self._outcome(version, material)

    def _read(self, record: Project) -> Material:
        config = parse_config(record.label_config)
        changes = self._store.votes.counts(record.key).changes
        votes = weighed(self._store.votes.current(record.key), self._store.statistics.checks(record.key))
        published = self._store.versions.published(record.key)
        heldout = _heldout(record.key, self._settings.heldout_percent)
        orders = ranking_votes(config, votes)
        rankings = learned_rankings(self._orders, orders, heldout)
        if rankings_alone(config):
            mine = np.isin(votes.control, [at for at, name in enumerate(votes.controls) if name in orders])  # (N,)
            others = int((~mine).sum())
            return Material(
                votes=votes.select(mine), spaces={}, texts={}, changes=changes, orders=orders, rankings=rankings,
                left_out={"with controls that are not learned": others} if others else {}, rankings_alone=True)
        spaces = config.spaces(votes, learned_of(published)) | config.region_spaces(votes, learned_of(published))
        texts, problems = self._texts(record.key, config, votes)
        fits = _inside(votes, spaces)  # (N,)
        readable = np.array([unit in texts for unit in votes.units], dtype=np.bool_)[votes.unit]  # (N,)
        usable = votes.select(fits & readable)
        kept = {usable.units[index] for index in np.unique(usable.unit)}
        waiting = [control.name for control in config.controls if control.name not in spaces and (
            control.learner != CLASSES or control.name in config.regional)]
        later = np.isin(votes.control, [at for at, name in enumerate(votes.controls) if name in waiting])  # (N,)
        left_out = {
            "outside the label config": int((~fits & ~later).sum()),
            "with controls that the network does not learn": int(later.sum()),
            **_unread(votes.select(fits & ~readable), problems),
        }
        return Material(
            votes=usable, spaces={name: space for name, space in spaces.items() if len(usable.of_control(name))},
            texts={unit: text for unit, text in texts.items() if unit in kept},
            left_out={why: count for why, count in left_out.items() if count}, changes=changes,
            orders=orders, rankings=rankings, rankings_alone=False,
        )

    def _texts(self, project: str, config: LabelConfig, votes: Votes) -> tuple[dict[str, str], dict[str, str]]:
        """(unit -> content, for the tasks and regions that have any; region -> why it has none)."""
        tasks = self._store.tasks.get(project, sorted({int(task_of(unit)) for unit in votes.units}))
        whole = {str(task.id): content for task in tasks if (content := config.content(task.data, task=task.id))}
        regions = known_regions(self._store, project, config, [task.id for task in tasks])
        parts, problems = region_contents(config, tasks, regions)
        return whole | parts, {unit: sentence for sentence, units in problems.items() for unit in units}

    def _require_enough(self, record: Project, material: Material) -> None:
        need, have = settings_of(self._settings, record).min_votes, len(material.votes)
        said = "".join(f" ({count} more {why} cannot be used)" for why, count in material.left_out.items())
        if have < need:
            raise JobFailed(f"Training needs at least {need} votes; there are {have}{said}.")
        if material.rankings_alone:
            if not material.rankings:
                raise JobFailed(f"Training needs at least {LEAST_VOTES} rankings of two items or more, each item once, "
                                f"on tasks that are not held out; of {have} too few are{said}.")
            return
        if not any(_answers(material.votes, name) > 1 for name in material.spaces):
            raise JobFailed(f"Training needs at least two different answers; all {have} votes say the same{said}.")

    def _encode(self, texts: Mapping[str, str], progress: Progress) -> None:
        """Fill the cache first, so that the long part of a first training shows how far it is."""
        contents = list(dict.fromkeys(texts.values()))
        for begin in range(0, len(contents), _ENCODE_CHUNK):
            progress(_ENCODE_SHARE * begin / len(contents), f"encoded {begin} of {len(contents)} texts")
            self._features.texts(contents[begin : begin + _ENCODE_CHUNK])

    def _training_set(self, project: str, material: Material) -> TrainingSet:
        from model.ensemble.ladder import TrainingSet

        def tokens(units: Sequence[str]) -> list[NDArray[np.float16]]:
            return self._features.texts([material.texts[unit] for unit in units])

        return TrainingSet(
            votes=material.votes, spaces=material.spaces, tokens=tokens,
            texts=lambda units: [text_of(material.texts[unit]) for unit in units],
            heldout=_heldout(project, self._settings.heldout_percent),
            anonymous=lambda annotator: not is_account(annotator),
        )

    def _ladder_config(self) -> LadderConfig:
        from model.ensemble.ladder import LadderConfig

        # The ladder weighs ACCEPTED votes by it; the votes themselves keep weight 1.
        return replace(self._ladder or LadderConfig.preset("polyvox"), echo_weight=self._settings.echo_weight)

    def _comparable(self, project: str, sample: Sequence[NDArray[np.float16]]) -> Loaded | None:
        """The published version, unless its features were of another make: by another encoder, or of other modalities
        because the labeling configuration shows other things now. Then neither its weights nor its predictions mean
        anything here. `sample`: the tokens of one task."""
        loaded = self._registry.published(project)
        if loaded is None or trained_on(loaded) != self._features.encoder_id:
            return None
        return loaded if all(tokens.shape[1] == loaded.ladder.dim for tokens in sample) else None

    def _earlier(self, project: str, published: Loaded | None) -> list[tuple[str, Evidence]]:
        """What the last published versions before this one left, newest first, by the same encoder."""
        from model.ensemble.remembered import LAST

        if published is None:
            return []
        tried = self._store.versions.recent(project, limit=LAST + 1, verdict=Verdict.PUBLISHED)
        before = [version for version in tried if version.number < published.version.number
                  and version.figures.get("encoder") == published.version.figures.get("encoder")]
        left = ((version.name, self._registry.evidence(version)) for version in before[:LAST])
        return [(name, evidence) for name, evidence in left if evidence is not None]

    def _waived(self, project: str) -> set[str]:
        """Annotators for whom the last candidate was held back: they hold back no second one."""
        tried = self._store.versions.recent(project, limit=1)
        if not tried or tried[0].verdict is not Verdict.REJECTED:
            return set()
        return set(tried[0].figures.get("gate", {}).get("worse_for", {}))

    def _last_was_rejected(self, project: str) -> bool:
        tried = self._store.versions.recent(project, limit=1)
        return bool(tried) and tried[0].verdict is Verdict.REJECTED

    def _outcome(self, version: Version, material: Material) -> dict[str, Any]:
        outcome: dict[str, Any] = {
            "verdict": version.verdict.value, "version": version.name, "reason": version.reason,
            "votes": len(material.votes), "changes": material.changes, "left_out": dict(material.left_out),
        }
        if version.verdict is Verdict.REJECTED:
            outcome["next_is_full"] = True  # the triggers ask for it, with growing back-off
        log.info("version %s of project %s: %s", version.name, version.project, version.verdict.value)
        return outcome


def _unread(votes: Votes, problems: Mapping[str, str]) -> dict[str, int]:
    """Why units cannot be read -> how many of these votes."""
    times = Counter(
        "on tasks without text" if "/" not in unit else
        f"on regions that cannot be read ({problems.get(unit, 'It is not there any more.').rstrip('.')})"
        for unit in (votes.units[code] for code in votes.unit.tolist()))
    return dict(times)


def _inside(votes: Votes, spaces: Mapping[str, Space]) -> NDArray[np.bool_]:
    """Which votes have a control with a space and a value in it; (N,)."""
    table = np.array([[name in spaces and spaces[name].contains(value) for value in votes.values]
                      for name in votes.controls], dtype=np.bool_).reshape(len(votes.controls), len(votes.values))
    return np.asarray(table[votes.control, votes.value])


def _answers(votes: Votes, control: str) -> int:
    return len(np.unique(votes.of_control(control).value))


def _heldout(project: str, percent: float) -> Callable[[str], bool]:
    return lambda unit: is_heldout(project, unit, percent)


def _heldout_percent(published: Loaded | None, otherwise: float) -> float:
    """What was held out when the version was trained; `otherwise` when there is none or it does not say."""
    recorded = None if published is None else published.version.figures.get("heldout_percent")
    return otherwise if recorded is None else float(recorded)


def _behind(published: Loaded | None) -> float:
    """How far the gate let it fall behind versions before it, nats a vote; nothing where it is not comparable."""
    return 0.0 if published is None else float(published.version.figures.get("gate", {}).get("behind", 0.0))


def _origin(published: Loaded | None, fitted: Fit) -> str:
    """The version whose network a training went on from. It may have been offered one and have begun from nothing."""
    return published.version.name if published is not None and fitted.figures["warm"] else "scratch"
