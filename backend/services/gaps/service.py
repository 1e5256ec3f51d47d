"""The gaps of a project, computed by a job: what is filled, what to ask for next, what is done.

Invariant: nothing is computed in a request, and nothing anew while votes, version, tasks, names and settings are as
they were; content that was encoded since is looked for where the job is told so (`force`). The version of a document is
the fingerprint of all that, a dot, and a hash of what it says: the first part tells whether to compute, the whole
changes with every document. Tabs are made of a document that is stored, so that their failure costs no figures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np

from backend.errors import JobFailed, LabelConfigError, LabelStudioError
from backend.labeling import LabelConfig, parse_config
from backend.ports import Clock, LabelStudio, Progress, Store
from backend.records import AnnotatorActivity, Project, VoteHistory
from backend.registry import Registry
from backend.services.features import Features
from backend.services.gaps.answers import Board, board_of
from backend.services.gaps.asking import Panel, Wishes
from backend.services.gaps.documents import KIND, Gaps, read_gaps
from backend.services.gaps.figures import PANEL, gap_figures
from backend.services.gaps.tabs import due, refresh, settle
from backend.services.identity import held
from backend.services.newcomers import Newcomers
from backend.services.overrides import settings_of
from backend.services.served import is_account
from backend.services.statistics.codec import encode
from backend.services.statistics.documents import Header
from backend.settings import Settings
from model.errors import ModelError

SHAPE = 2  # raised whenever the document changes in shape or meaning
CHECK = "gap_tabs"  # under this name sentences on tabs are kept
MASKED = ("Tabs with next tasks are switched on, but none are kept while names are masked (POLYVOX_MASK_NAMES): "
          "everybody in a project sees all its tabs, with the names of those they are for.")
_RETRY_S = (30.0, 3600.0)  # shortest and longest wait before tabs are tried again
_TIMED = 5  # labels from which on an annotator's own median time counts
_UNUSUAL = 5.0  # nobody costs more than so many times the usual, or less than its so-many-th part


class GapFilling:
    """Gaps of all projects. Safe for threads."""

    def __init__(
        self, *, store: Store, label_studio: LabelStudio, features: Features, registry: Registry, settings: Settings,
        clock: Clock,
    ) -> None:
        self._store = store
        self._label_studio = label_studio
        self._features = features
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._newcomers = Newcomers(store=store, features=features, registry=registry, settings=settings)

    def run(self, project: str, progress: Progress, *, force: bool = False) -> dict[str, Any]:
        """Compute the document where anything that it depends on has changed. Raises JobFailed.

        Figures: `computed`, `asks`, `done`, `saved`; a `reason` where nothing can be said.
        """
        record = self._known(project)
        progress(0.0, "reading votes")
        fingerprint, kept = self.fingerprint(record), self._store.statistics.version(project, KIND)
        if not force and kept is not None and kept.partition(".")[0] == fingerprint:
            return {"computed": False, **self._tabs_left(record, kept)}
        config = _config(record)
        if config is None:
            return {"computed": False, "reason": "The labeling configuration cannot be read."}
        document = self.document(record, config, progress)
        progress(0.97, "writing")
        version = f"{fingerprint}.{_hash(encode(document))}"
        document = replace(document, header=replace(document.header, version=version))
        self._store.statistics.replace(project, version, {(KIND, ""): encode(document)}, kinds=[KIND])
        found = document.controls.values()
        return {"computed": True, "asks": sum(len(each.asks) for each in found),
                "done": sum(each.done for each in found), "saved": sum(each.saved for each in found),
                **self._tabs(record, document)}

    def document(
        self, project: Project, config: LabelConfig, progress: Progress, *, wishes: Wishes | None = None,
    ) -> Gaps:
        """What the job would write, for other wishes too; without a version. Raises JobFailed."""
        settings = settings_of(self._settings, project)
        changes = self._store.votes.counts(project.key).changes  # before the votes, so that later ones are seen
        board, activity = self.board(project, config), self._store.votes.activity(project.key)
        names = {each.annotator: each.name for each in activity}
        panel = self._panel(activity, settings, self._store.statistics.history(project.key))
        try:
            controls = gap_figures(board, panel, wishes or Wishes.of(settings), names, progress=progress)
        except ModelError as error:
            raise JobFailed(f"The gaps cannot be filled: {error}.") from error
        header = Header(project=project.key, version="", computed_at=self._clock(), changes=changes,
                        votes=len(board.votes), model_version=board.version)
        return Gaps(header=header, controls=controls)

    def board(self, project: Project, config: LabelConfig) -> Board:
        """Votes, and what predicts the gaps between them."""
        return board_of(self._store, self._features, project, config, self._registry.published(project.key),
                        echo_weight=self._settings.echo_weight, newcomers=self._newcomers)

    def fingerprint(self, project: Project) -> str:
        """What the document depends on, but for which content is encoded."""
        settings, published = settings_of(self._settings, project), self._store.versions.published(project.key)
        names = sorted([each.annotator, each.name] for each in self._store.votes.activity(project.key))
        parts = [SHAPE, self._store.votes.counts(project.key).changes, published.name if published else "",
                 self._store.tasks.count(project.key), names, project.label_config, settings.gap_policy,
                 settings.gap_budget, settings.gap_per_task, settings.gap_cost, settings.own_active_days,
                 settings.gap_tabs, settings.mask_names]
        return _hash(json.dumps(parts))

    def _tabs_left(self, project: Project, version: str) -> dict[str, Any]:
        """Tabs of the stored document, where an earlier run could not make them."""
        if not due(self._store, project.key, version, wanted=self._tabs_wanted(project)):
            return {}
        document = read_gaps(self._store, project.key)
        return {} if document is None else self._tabs(project, document)

    def _tabs(self, project: Project, document: Gaps) -> dict[str, Any]:
        """Make tabs what they should be, and say among the project's problems what keeps them from it.

        What a retry can mend asks for one (`tabs_retry_in_s`), later and later; a refusal waits for the next document.
        """
        if held(self._store.instance):
            return {}
        settings = settings_of(self._settings, project)
        problems = [MASKED] if settings.gap_tabs and settings.mask_names else []
        outcome: dict[str, Any] = {}
        try:
            outcome = refresh(self._store, self._label_studio, project, document, wanted=self._tabs_wanted(project))
        except LabelStudioError as error:
            problems.append(f"Tabs with next tasks could not be kept: {error}")
            if error.retry:
                self._store.projects.want_reread()  # the job goes on, so nobody else notes the outage
                since = (self._clock() - document.header.computed_at).total_seconds()
                outcome = {"tabs_retry_in_s": min(max(since, _RETRY_S[0]), _RETRY_S[1])}
            else:
                settle(self._store, project.key, document.header.version)
        self._store.projects.set_findings(project.key, CHECK, problems)
        return outcome

    def _tabs_wanted(self, project: Project) -> bool:
        settings = settings_of(self._settings, project)
        return settings.gap_tabs and not settings.mask_names

    def _known(self, project: str) -> Project:
        record = self._store.projects.get(project)
        if record is None:
            raise JobFailed("The project is unknown.")
        return record

    def _panel(self, activity: Sequence[AnnotatorActivity], settings: Settings, history: VoteHistory) -> Panel:
        """Those who labelled lately, most active first; where nobody did, whoever labelled at all."""
        accounts = [each for each in activity if is_account(each.annotator)]
        since = self._clock() - timedelta(days=settings.own_active_days)
        chosen = ([each for each in accounts if each.last_vote >= since] or accounts)[:PANEL]
        annotators = [each.annotator for each in chosen]
        return Panel(annotators=annotators, names=[each.name for each in chosen],
                     seconds=seconds_of(history, annotators))


def seconds_of(history: VoteHistory, annotators: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """(A,) median time that a label takes each annotator; that of all for who has few times, None without any."""
    known = np.isfinite(history.lead_time_s) & (history.lead_time_s > 0) & history.current
    if not known.any():
        return None
    usual = float(np.median(history.lead_time_s[known]))
    code = {each: at for at, each in enumerate(history.votes.annotators)}
    found = np.full(len(annotators), usual)
    for at, each in enumerate(annotators):
        mine = history.lead_time_s[known & (history.votes.annotator == code.get(each, -1))]
        if len(mine) >= _TIMED:
            found[at] = min(max(float(np.median(mine)), usual / _UNUSUAL), usual * _UNUSUAL)
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _config(project: Project) -> LabelConfig | None:
    try:
        return parse_config(project.label_config) if project.label_config else None
    except LabelConfigError:
        return None
