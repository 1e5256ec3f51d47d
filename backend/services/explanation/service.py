"""Explanations of single tasks: where each annotator's query looks, what their answer rests on, how far to trust that.

Invariants: tokens come from the feature cache, under the encoder that the version was trained on; a task that is not
encoded is refused in a sentence, unless the caller allows encoding (a command does, a request does not). One
explanation at a time in a process, within a time that the caller sets: when it is over, answers and attention remain.
Nothing is trained, nothing is delivered; media are read by the guarded reader only, for pictures to be drawn on.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from backend.errors import ClientError, MediaError, NotFound, NotReady
from backend.labeling import parse_config
from backend.labeling.content import Content, unpack
from backend.masking import masked
from backend.ports import Clock, Progress, Store, utc_now
from backend.records import Project, StoredVote, Task
from backend.registry import Loaded, Registry
from backend.services.explanation.attributions import due, refresh
from backend.services.explanation.documents import Answer, Explained, Faithful, TaskExplanation
from backend.services.features import Features
from backend.services.prediction import trained_on
from backend.services.served import as_votes
from backend.services.statistics.subject import label_text
from backend.services.task_encoder import Reader
from model.encoders.decoders import Decoder
from model.errors import ContentError, ModelError

if TYPE_CHECKING:
    from model.ensemble.control import ControlPrediction
    from model.explain.explanation import Explanation
    from model.explain.places import Places

AT_ONCE, MOST_ANNOTATORS = 6, 12  # annotators side by side: unless they are named, and at most
PATIENCE_S = 8.0  # of a request
QUEUE_S = 0.5  # for an explanation that is being made for somebody else
WHOLE = (0.0, 0.0, 100.0, 100.0, 0.0)  # the box around everything
_REMEMBERED = 32  # explanations: a page asks again for each of its pictures
Tokens = NDArray[np.float16]


class Explanations:
    """Of any project. Safe for threads."""

    def __init__(
        self, *, store: Store, features: Features, registry: Registry, reader: Callable[[], Reader],
        decoder: Decoder, clock: Clock = utc_now, seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._features = features
        self._registry = registry
        self._reader = reader
        self._decoder = decoder
        self._clock = clock
        self._seconds = seconds
        self._one = threading.Lock()
        self._kept: OrderedDict[object, TaskExplanation] = OrderedDict()

    def state(self, project: Project, task_id: int) -> tuple[object, ...]:
        """What an explanation depends on, beside who is asked for; loads nothing. Raises NotFound."""
        version, task = self._registry.current(project.key), self._task(project, task_id)
        votes = self._store.votes.of_tasks(project.key, [task_id])
        given = tuple(sorted((each.annotator, each.control, each.value.to_json()) for each in votes))
        return project.key, task_id, str(task.data), version.name if version else "", project.label_config, given

    def task(
        self, project: Project, task_id: int, *, annotators: Sequence[str] = (), within_s: float | None = PATIENCE_S,
        encode: bool = False,
    ) -> TaskExplanation:
        """Explain one task for the annotators named, or for those who voted on it and the most active others.

        `within_s` None: as long as it takes. Raises NotFound for an unknown task or annotator, NotReady where there is
        no version, no tokens or no time yet, ClientError for what cannot be explained.
        """
        until = None if within_s is None else self._seconds() + within_s
        if len(annotators) > MOST_ANNOTATORS:
            raise ClientError(f"At most {MOST_ANNOTATORS} annotators are explained at once.")
        key = (*self.state(project, task_id), tuple(annotators))
        # A web thread that waited here for long would be missing where annotators wait for predictions.
        if not self._one.acquire(timeout=-1 if within_s is None else min(within_s, QUEUE_S)):
            raise NotReady("Another explanation is being made; try again in a moment.")
        try:
            if key not in self._kept:
                made = self._explain(project, task_id, annotators, until=until, encode=encode)
                if not made.complete:
                    return made  # the next one may have more time
                self._kept[key] = made
            self._kept.move_to_end(key)
            while len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
            return self._kept[key]
        finally:
            self._one.release()

    def picture(self, project: Project, task_id: int, piece: int) -> bytes:
        """One image of a task as people see it, as a small PNG. Raises NotFound, MediaError."""
        content = self._content(project, self._task(project, task_id))
        images = [medium for medium in content.media if medium.modality == "image"]
        if not 0 <= piece < len(images):
            raise NotFound(f"Task {task_id} has no image {piece}.")
        file = self._reader().read(images[piece].address, task=task_id)
        try:
            (small,) = self._decoder.crops(file, [WHOLE])
        except ContentError as error:
            raise MediaError(str(error)) from error
        if isinstance(small, ContentError):
            raise MediaError(str(small))
        return small

    def refresh(self, project_key: str, progress: Progress) -> int | None:
        """Find the words that move each annotator's labels, where the published version has none yet; a job does so.

        How many annotators have some, None when nothing was to be done.
        """
        project = self._store.projects.get(project_key)
        if project is None or not project.label_config:
            return None
        version, now = self._registry.current(project_key), self._clock()
        if version is None or not due(self._store, project_key, version.name, now):
            return None
        loaded = self._registry.published(project_key)
        return None if loaded is None else refresh(
            self._store, self._features, loaded, project, progress, now=now
        )

    def _explain(
        self, project: Project, task_id: int, annotators: Sequence[str], *, until: float | None, encode: bool
    ) -> TaskExplanation:
        from model.explain.explanation import explain

        loaded, task = self._loaded(project), self._task(project, task_id)
        packed = parse_config(project.label_config).content(task.data, task=task.id)
        if not packed:
            raise ClientError(f"Task {task_id} shows nothing that can be explained.")
        activity = self._store.votes.activity(project.key)
        votes = [each for each in self._store.votes.of_tasks(project.key, [task_id]) if each.unit == str(task_id)]
        who = _chosen(loaded, [each.annotator for each in activity], votes, annotators)
        tokens = self._tokens(loaded, packed, task_id, encode=encode)
        index = {name: at for at, name in enumerate(loaded.ladder.annotators)}
        try:
            places = self._places(tokens, unpack(packed), until)
            made = explain(
                loaded.ladder.committee, tokens, places, [index[each] for each in who],
                in_time=lambda: until is None or self._seconds() < until,
            )
            served = loaded.ladder.predict(
                [tokens], who, units=[str(task_id)], given=as_votes(votes), consensus=False, texts=[unpack(packed).text]
            )
        except ModelError as error:
            raise ClientError(f"Task {task_id} cannot be explained: {error}.") from error
        names = {each.annotator: each.name for each in activity}
        return _document(project, task, loaded, unpack(packed).text, places, made, served, who, votes, names)

    def _loaded(self, project: Project) -> Loaded:
        loaded = self._registry.published(project.key)
        if loaded is None:
            raise NotReady(f"Project {project.label_studio_id} has no published version yet, so nothing is explained.")
        if not loaded.ladder.reads:
            raise ClientError(f"Version {loaded.version.name} predicts orders from rankings alone and reads no "
                              "content, so there is nothing to explain.")
        return loaded

    def _task(self, project: Project, task_id: int) -> Task:
        found = self._store.tasks.get(project.key, [task_id])
        if not found:
            raise NotFound(f"Polyvox knows no task {task_id} in project {project.label_studio_id}.")
        return found[0]

    def _content(self, project: Project, task: Task) -> Content:
        return unpack(parse_config(project.label_config).content(task.data, task=task.id))

    def _tokens(self, loaded: Loaded, packed: str, task_id: int, *, encode: bool) -> Tokens:
        """Tokens (T, D) of one task."""
        wanted = trained_on(loaded)
        (tokens,) = self._features.texts_within([packed], encoder_id=wanted, seconds=0.0)
        if tokens is None and encode and self._features.encoder_id == wanted:
            (tokens,) = self._features.texts([packed])
        if tokens is None:
            raise NotReady(
                f"Task {task_id} is not encoded for version {loaded.version.name}; a job does that after the task was "
                "read, and again after a file that was missing is there."
            )
        return tokens

    def _places(self, tokens: Tokens, content: Content, until: float | None) -> Places:
        from model.explain.places import layout_places, text_places

        spans = None
        if content.text:
            seconds = None if until is None else max(until - self._seconds(), 0.0)
            spans = self._features.spans(content.text, seconds=seconds)
            if spans is None:
                raise NotReady("The encoder is still being loaded; try again in a moment.")
        if content.modalities:
            return layout_places(tokens, content.text, spans)
        if spans is None or len(spans) != len(tokens):
            raise NotReady("The text encoder was changed since this version was trained; the next version has the new "
                           "one.")  # fmt: skip
        return text_places(content.text, spans)


def _chosen(
    loaded: Loaded, active: Sequence[str], votes: Sequence[StoredVote], wanted: Sequence[str]
) -> list[str]:
    """Annotators whom the version knows. Raises NotFound, NotReady."""
    known = set(loaded.ladder.annotators)
    if wanted:
        for each in wanted:
            if each not in known:
                raise NotFound(f"Version {loaded.version.name} has learned from no such annotator.")
        return list(dict.fromkeys(wanted))
    voted = {each.annotator for each in votes}
    found = [each for each in [*filter(voted.__contains__, active), *active] if each in known]
    if not found:
        raise NotReady(f"Nobody whom version {loaded.version.name} has learned is active in this project.")
    return list(dict.fromkeys(found))[:AT_ONCE]


def _document(
    project: Project, task: Task, loaded: Loaded, text: str, places: Places, made: Explanation,
    served: dict[str, ControlPrediction], who: Sequence[str], votes: Sequence[StoredVote], names: dict[str, str],
) -> TaskExplanation:
    given = {(each.annotator, each.control): label_text(each.value) for each in votes}
    judged = parse_config(project.label_config).regional  # each of its regions has an answer, and the task has none
    controls = {name: state.stack.weights for name, state in loaded.ladder.controls.items() if name not in judged}
    pieces: dict[str, int] = {}
    for place in places.places:
        pieces[place.kind] = max(pieces.get(place.kind, 0), place.piece + 1)
    return TaskExplanation(
        project=project.key, task=task.id, version=loaded.version.name, pieces=pieces,
        text=masked(text, keep_length=True),
        places=places.places, pooled=tuple(made.pooled.tolist()), annotators=tuple(
            Explained(annotator=each, name=names.get(each) or each, attention=tuple(made.attention[at].tolist()),
                      controls={name: _answer(loaded, made, served, name, at, given.get((each, name)))
                                for name in controls})
            for at, each in enumerate(who)
        ),
        network_share={name: float(weights["network"]) for name, weights in controls.items()},
        complete=len(places) < 2 or all(made.controls[name].attribution is not None for name in controls),
    )  # fmt: skip


def _answer(
    loaded: Loaded, made: Explanation, served: dict[str, ControlPrediction], control: str, at: int, vote: str | None
) -> Answer:
    space, found, p = loaded.ladder.spaces[control], made.controls[control], served[control].served[0, at]
    (value,), (sure,) = space.decide(p[None], np.ones((1, len(p)), np.bool_))
    assert value is not None, "everything is offered"
    return Answer(
        answer=label_text(space.decode(found.answer[at])), probability=float(found.probability[at]),
        served=label_text(value), confidence=float(sure), vote=vote,
        attribution=None if found.attribution is None else tuple(found.attribution[at].tolist()),
        faithful=None if found.faithfulness is None else Faithful(
            attention=float(found.faithfulness.attention[at]), pooled=float(found.faithfulness.pooled[at]),
            attribution=float(found.faithfulness.attribution[at]),
        ),
    )  # fmt: skip
