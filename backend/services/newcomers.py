"""Newcomers: what the votes of annotators whom a version hardly knows teach at once, without a training.

For those among the annotators of a request whom the published version was hardly trained on, their own votes are read
in one query, the tasks of these in a second, and the cached features in one batch; the rest is `model.coldstart`. What
was learned is kept by version, annotator and votes, so that the next request costs one small query.

Invariants: what is held out teaches nothing here either; nothing is encoded, so votes on contents that are not cached
are left out until they are; for annotators whom the version knows nothing is read or done.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.labeling import LabelConfig
from backend.labeling.content import text_of
from backend.ports import Store
from backend.records import StoredVote
from backend.registry import Loaded, Registry
from backend.services.features import Features
from backend.services.regions import known_regions, region_contents
from backend.services.served import as_votes
from backend.settings import Settings
from model.coldstart.adapting import Adapted, adapt, is_newcomer
from model.data.splits import is_heldout
from model.quality.evidence import Evidence

KEPT = 512  # newcomers of all projects whose lessons are kept
KEPT_BYTES = 256 << 20  # all of them together; 10 kB to 1 MB each, more where there are many classes and people
AT_ONCE = 64  # newcomers of one request, those with most votes


class Newcomers:
    """Safe for threads."""

    def __init__(self, *, store: Store, features: Features, registry: Registry, settings: Settings) -> None:
        self._store = store
        self._features = features
        self._registry = registry
        self._settings = settings
        self._lock = threading.Lock()
        self._learned: OrderedDict[tuple[str, str], tuple[int, Adapted | None]] = OrderedDict()
        self._bytes = 0  # of all that is kept
        self._evidence: OrderedDict[str, Evidence | None] = OrderedDict()

    def of(
        self, project: str, loaded: Loaded, config: LabelConfig, annotators: Iterable[str]
    ) -> dict[str, Adapted]:
        """Annotator -> what their votes taught; only newcomers who have voted."""
        new = [who for who in dict.fromkeys(annotators) if is_newcomer(loaded.ladder, who)]
        if not new:
            return {}
        heldout = self._heldout(loaded)
        mine: dict[str, list[StoredVote]] = {}
        for vote in self._store.votes.of_annotators(project, new):
            if vote.control in loaded.ladder.controls:
                mine.setdefault(vote.annotator, []).append(vote)
        chosen = sorted(mine, key=lambda who: -len(mine[who]))[:AT_ONCE]
        found, fresh = {}, {}
        for who in chosen:
            votes = mine[who]
            stamp = hash(tuple((vote.unit, vote.control, vote.value, vote.updated_at) for vote in votes))
            kept = self._kept(loaded, who)
            if kept is not None and kept[0] == stamp:
                if kept[1] is not None:
                    found[who] = kept[1]
            else:
                fresh[who] = (stamp, votes)
        if fresh:
            found |= self._learn(project, loaded, config, fresh, heldout)
        return found

    def _learn(
        self, project: str, loaded: Loaded, config: LabelConfig, fresh: Mapping[str, tuple[int, list[StoredVote]]],
        percent: float,
    ) -> dict[str, Adapted]:
        teaching = {
            who: [vote for vote in votes if not is_heldout(project, vote.unit, percent)]
            for who, (_, votes) in fresh.items()
        }
        features = self._read(project, loaded, config, [vote for votes in teaching.values() for vote in votes])
        found = {}
        for who, (stamp, votes) in fresh.items():
            evidence = self._evidence_of(loaded) if loaded.ladder.place(who) is not None else None
            learned = adapt(loaded.ladder, who, as_votes(teaching[who]), features, evidence,
                            voted={vote.unit for vote in votes})
            if all(vote.unit in features for vote in teaching[who]):  # else more may be cached the next time
                self._keep(loaded, who, stamp, learned)
            if learned is not None:
                found[who] = learned
        return found

    def _read(
        self, project: str, loaded: Loaded, config: LabelConfig, votes: Sequence[StoredVote]
    ) -> dict[str, NDArray[np.float32]]:
        """Unit -> features, of those whose content is cached."""
        tasks = self._store.tasks.get(project, sorted({vote.task_id for vote in votes}))
        contents = {str(task.id): content for task in tasks if (content := config.content(task.data, task=task.id))}
        if config.regional and any("/" in vote.unit for vote in votes):
            regions = known_regions(self._store, project, config, [task.id for task in tasks])
            contents |= region_contents(config, tasks, regions)[0]
        units = [unit for unit in dict.fromkeys(vote.unit for vote in votes) if unit in contents]
        encoder = str(loaded.version.figures.get("encoder", ""))
        tokens = self._features.known([contents[unit] for unit in units], encoder_id=encoder)
        ready = [(unit, each, text_of(contents[unit])) for unit, each in zip(units, tokens, strict=True)
                 if each is not None and each.shape[1] == loaded.ladder.dim]
        if not ready:
            return {}
        read = loaded.ladder.features([each for _, each, _ in ready], [text for _, _, text in ready])
        return dict(zip([unit for unit, _, _ in ready], read, strict=True))

    def _heldout(self, loaded: Loaded) -> float:
        """Percent of the tasks that teach nothing: what is held out now, or was when the version was trained."""
        then = loaded.version.figures.get("heldout_percent")
        return max(self._settings.heldout_percent, float(then or 0.0))

    def _kept(self, loaded: Loaded, who: str) -> tuple[int, Adapted | None] | None:
        with self._lock:
            return self._learned.get((loaded.version.path, who))

    def _keep(self, loaded: Loaded, who: str, stamp: int, learned: Adapted | None) -> None:
        with self._lock:
            self._forget(self._learned.pop((loaded.version.path, who), None))
            self._learned[loaded.version.path, who] = (stamp, learned)
            self._bytes += 0 if learned is None else learned.size
            while len(self._learned) > KEPT or self._bytes > KEPT_BYTES:
                self._forget(self._learned.popitem(last=False)[1])

    def _forget(self, kept: tuple[int, Adapted | None] | None) -> None:
        if kept is not None and kept[1] is not None:
            self._bytes -= kept[1].size

    def _evidence_of(self, loaded: Loaded) -> Evidence | None:
        path = loaded.version.path
        with self._lock:
            if path in self._evidence:
                return self._evidence[path]
        read = self._registry.evidence(loaded.version)
        with self._lock:
            self._evidence[path] = read
            while len(self._evidence) > 2:
                self._evidence.popitem(last=False)
        return read

