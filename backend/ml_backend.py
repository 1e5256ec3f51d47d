"""`PolyvoxBackend`: the object that is served, a `LabelStudioMLBase` like any other; the services do the work.

Polyvox's own web app (`backend.app`) calls it with parsed requests. The stock servers of label-studio-ml (1.0.9 from
PyPI, 2.x from git) can run the class as well; they make new instances as they please, so services that nobody handed in
are kept on the class, made from the environment at the first use.

Importing this module imports torch (label_studio_ml does); everything else of the web process does without until a
prediction is made.

What of the base class is relied on: nothing but the names. Its own label-config parser, version and cache are not used,
since they mix projects up and read XML without protection.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from label_studio_ml.model import LabelStudioMLBase

from backend.bootstrap import build_services
from backend.errors import ClientError, NotFound
from backend.labeling.kept import KeptConfigs
from backend.prediction_names import consensus_version
from backend.protocol import (
    ProjectRef,
    SetupRequest,
    WebhookRequest,
    parse_project,
    parse_tasks,
    parse_webhook,
    prediction_results,
)
from backend.records import Job, JobKind, JobState
from backend.settings import Settings
from backend.store.patience import AWAY, why
from backend.webhook_actions import RELEVANT_ACTIONS

if TYPE_CHECKING:
    from backend.bootstrap import Services
    from backend.labeling import LabelConfig

logger = logging.getLogger(__name__)
Prediction = dict[str, Any]


class PolyvoxBackend(LabelStudioMLBase):  # type: ignore[misc]  # label_studio_ml has no types
    """One for all projects when Polyvox serves it; one per request or per /setup when a stock server does."""

    TRAIN_EVENTS = tuple(sorted(RELEVANT_ACTIONS))  # the base class knows a name that Label Studio never sends
    _of_process: ClassVar[Services | None] = None
    _making: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self, project_id: str | None = None, label_config: str | None = None, train_output: object = None, *,
        services: Services | None = None, **ignored: object,
    ) -> None:
        """`project_id` and `label_config` come from stock servers; `train_output` is of no use here.

        2.x gives both, and they belong together. 1.0.9 gives only a configuration, that of whichever project came to
        /setup last; it is not used, since tasks of another project may follow.
        """
        self.services = services or self._services_of_process()
        self._own_project = project_id or ""
        self._own_config = (label_config or "") if self._own_project else ""
        self._parse: Callable[[str], LabelConfig] = KeptConfigs()
        super().__init__()  # without the config: the base would parse it

    @classmethod
    def _services_of_process(cls) -> Services:
        with cls._making:
            if PolyvoxBackend._of_process is None:
                PolyvoxBackend._of_process = build_services(Settings.from_env(os.environ))
            return PolyvoxBackend._of_process

    @property
    def model_version(self) -> str:
        """The consensus version of this instance's project (stock servers ask for it)."""
        ref = self._own_ref()
        return self.services.prediction.version((ref and self._known_key(ref)) or "")

    def get(self, key: str) -> Any:
        """2.x's server reads the version for /setup like this; other keys are its own business."""
        if key == "model_version":
            return self.model_version
        inherited = getattr(super(), "get", None)
        return inherited(key) if inherited else None

    def set_extra_params(self, extra_params: object) -> None:
        """Nothing to keep: whatever is set in the model's extra parameters means nothing to Polyvox."""

    def setup(self, request: SetupRequest | None = None) -> str:
        """Remember the project, not its configuration; answers the version under which /predict gives the consensus.

        2.x calls it without a request while it makes an instance. Raises `LabelConfigError`; then nothing is stored.
        """
        if request is None:
            return self.model_version
        key = self._key(request.project)
        self._check(request.label_config)
        self.services.ingest.configured(key, request.label_config)
        return self.services.prediction.version(key)

    def predict(
        self, tasks: Sequence[dict[str, Any]], context: Mapping[str, Any] | None = None, *,
        project: ProjectRef | None = None, label_config: str = "", **ignored: object,
    ) -> list[list[Prediction]]:
        """One list of predictions for each task, consensus last; [] for a task that is not ready.

        `context` may hold regions that somebody has just drawn (`{"result": [...]}`): each is answered for.
        """
        given = label_config or self._own_config
        self._check(given)
        if project is None:
            tasks, project = parse_tasks(list(tasks)), self._project_of(tasks)
            if project is None:
                return [[] for _ in tasks]
        try:
            return self._answers(project, given, tasks, context)
        except AWAY as error:  # whoever waits goes on without suggestions
            logger.warning("predictions are not ready: the database %s", why(error))
            return [[] for _ in tasks]

    def _answers(
        self, project: ProjectRef, given: str, tasks: Sequence[dict[str, Any]], context: Mapping[str, Any] | None,
    ) -> list[list[Prediction]]:
        key = self._key(project)
        config = self.services.ingest.configured(key, given)
        if not config:
            return [[] for _ in tasks]
        settings = self.services.settings
        deadline_s = settings.predict_deadline_s if len(tasks) == 1 else settings.predict_batch_deadline_s
        drawn = (context or {}).get("result")
        answers = self.services.prediction.answer(
            key, config, list(tasks), deadline_s=deadline_s,
            drawn=[each for each in drawn if isinstance(each, dict)] if isinstance(drawn, list) else [])
        results: list[list[Prediction]] = prediction_results(answers, asked=len(tasks))["results"]
        return results

    def fit(self, *arguments: Any, **named: Any) -> dict[str, Any]:
        """Take in an event; trains nothing here, since a request waits.

        2.x calls fit(event, data, ...) or fit(event=, data=, ...); 1.0.9 calls fit((), event=, data=, workdir=, ...).
        """
        event = named.get("event", arguments[0] if arguments else None)
        data = named.get("data", arguments[1] if len(arguments) > 1 else None)
        if not isinstance(data, Mapping):
            raise ClientError("fit needs the event's payload as its data; expected an object.")
        return self.receive(parse_webhook({**data, "action": event}))

    def receive(self, request: WebhookRequest) -> dict[str, Any]:
        """A webhook: one durable write, no reading of Label Studio. START_TRAINING answers with the id of a job."""
        if not request.relevant:
            return {"marked": 0, "message": f"{request.action} changes nothing for Polyvox."}
        outcome = self.services.ingest.webhook(request.payload)
        if outcome.start_training and outcome.project is not None:
            return self._start_training(outcome.project)
        return {"marked": outcome.marked, "message": outcome.message}

    def train(self, ref: ProjectRef) -> dict[str, Any]:
        """Queue a training. Raises `NotFound` for a project that never came to /setup."""
        key = self._key(ref)
        if self.services.store.projects.get(key) is None:
            raise NotFound(f"Project {ref.label_studio_id} is not known here; connect it in Label Studio first.")
        return self._start_training(key)

    def versions(self, ref: ProjectRef | None) -> list[str]:
        """Prediction versions of the consensus, newest first; of all projects without `ref`."""
        store = self.services.store
        keys = [each.key for each in store.projects.all()] if ref is None else [self._key(ref)]
        names = dict.fromkeys(self.services.prediction.version(key) for key in keys)
        for key in keys:
            names |= dict.fromkeys(consensus_version(each.name) for each in store.versions.recent(key) if each.path)
        return list(names)

    def job(self, job_id: str) -> Job | None:
        """The job with this id; None where there is none."""
        return self.services.store.jobs.get(job_id)

    def is_training(self, ref: ProjectRef) -> bool:
        """Whether a training of the project runs right now. Raises `NotFound`."""
        job = self.services.store.jobs.pending(self._key(ref), JobKind.TRAIN)
        return job is not None and job.state is JobState.RUNNING

    def check_config(self, xml: str) -> LabelConfig:
        """The configuration as Polyvox understands it. Raises `LabelConfigError`."""
        return self._parse(xml)

    def _start_training(self, key: str) -> dict[str, Any]:
        return {"job": self.services.triggers.start_training(key).id}

    def _check(self, label_config: str) -> None:
        if label_config.strip():
            self._parse(label_config)

    def _key(self, ref: ProjectRef) -> str:
        """The project's key, also where only its id was given. Raises `NotFound`."""
        key = self._known_key(ref)
        if key is None:
            raise NotFound(
                f"Project {ref.label_studio_id} is not known here; /setup must name it as <id>.<created epoch> first.")
        return key

    def _known_key(self, ref: ProjectRef) -> str | None:
        """The project's key; None where only an id was given that nobody has told more about."""
        if ref.key is not None:
            return ref.key
        project = self.services.store.projects.by_label_studio_id(ref.label_studio_id)
        return None if project is None else project.key

    def _own_ref(self) -> ProjectRef | None:
        """The project that a stock server made this instance for; None without one (2.x may say "None")."""
        try:
            return parse_project(self._own_project) if self._own_project else None
        except ClientError:
            return None

    def _project_of(self, tasks: Sequence[Mapping[str, Any]]) -> ProjectRef | None:
        """Stock servers hand no project to `predict`: take their instance's, else the one that the tasks name.

        None for one that is not known yet: they keep what /setup says of the project to themselves (2.x hands on its
        id only), so that the first webhook has to make it known.
        """
        if not tasks:
            return None
        ref = self._own_ref() or parse_project(tasks[0].get("project"), "tasks[0].project")
        return ref if self._known_key(ref) else None
