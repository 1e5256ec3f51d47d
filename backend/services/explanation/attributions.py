"""Words that move one annotator's labels more than the others', averaged over a sample of tasks, for the profiles.

A job makes them once for a published version, not more often than every `EVERY`, from features that are in the cache,
and stops when its time is up: the figures say how many tasks they rest on. A word counts in the tasks that have it,
left out of the content as in the explanation of one task. What is kept of an annotator are the words that raise their
probability of a label, and raise it more than the others', as far as that is certain (`CERTAIN` standard errors over
tasks), and two leads with intervals (`effects`); where the first is no better than chance, no words are kept, since
they would explain nothing.

Invariant: the sample depends on the version and the tasks alone. No text of a task is kept but single words.
"""

from __future__ import annotations

import json
import logging
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from backend.errors import LabelConfigError
from backend.labeling import parse_config
from backend.labeling.content import unpack
from backend.masking import masked
from backend.ports import Progress, Store
from backend.records import Project
from backend.registry import Loaded
from backend.services.explanation.documents import AnnotatorAttributions, Attributions, WordEffect
from backend.services.features import Features
from backend.services.prediction import trained_on
from backend.services.statistics.codec import decode, encode
from model.errors import ModelError

if TYPE_CHECKING:
    from model.explain.places import Places

log = logging.getLogger(__name__)

KIND = "attributions"
TASKS, CURVES = 120, 24  # tasks that words are taken from, and those of which leads are measured
PEOPLE = 24  # most active annotators
FEWEST, CERTAIN = 4, 3.0  # tasks that a word must be in; standard errors
WORDS = 8  # kept of each annotator and control
LEAST = 0.01  # of probability, below which a difference is nothing to show
_LOOKED_AT = 400  # tasks that the sample is drawn from
_PLACES, _LEFT_OUT = 48, 24  # of one task: at most so many for a curve, and so many words
BUDGET_S, EVERY = 20.0, timedelta(minutes=10)
Floats = NDArray[np.float64]
Tokens = NDArray[np.float16]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sampled:
    tokens: Tokens
    places: Places
    words: tuple[str, ...]  # (P,) "" for a place that is no word


def read_attributions(store: Store, project: str, annotator: str) -> AnnotatorAttributions | None:
    """Those of one annotator; None where there are none (yet), or an older release wrote them in another shape."""
    stored = store.statistics.body(project, KIND, annotator)
    if stored is None:
        return None
    try:
        return decode(AnnotatorAttributions, stored[1])
    except (ValueError, TypeError, KeyError):
        log.warning("the attributions of project %s were written by another release; the next version has new ones",
                    project)  # fmt: skip
        return None


def due(store: Store, project: str, version: str, now: datetime) -> bool:
    """Whether the documents of this version are to be made now."""
    stored = store.statistics.body(project, KIND)
    if stored is None:
        return True
    if stored[0] == version:
        return False
    made = datetime.fromisoformat(json.loads(stored[1]))
    return made > now or now - made >= EVERY  # ahead: stamped by a clock that was set back


def refresh(
    store: Store, features: Features, loaded: Loaded, project: Project, progress: Progress, *, now: datetime,
    seconds: Callable[[], float] = time.monotonic, budget_s: float = BUDGET_S,
) -> int:
    """Make the documents of the published version; how many annotators have one. `progress` may raise to stop."""
    active = [each.annotator for each in store.votes.activity(project.key)]
    known = {name: at for at, name in enumerate(loaded.ladder.annotators)}
    people = [each for each in active if each in known][:PEOPLE]
    found = _Effects(loaded, [known[each] for each in people])
    sample = _sample(store, features, loaded, project) if people else []
    counts = Counter(word for each in sample for word in set(each.words) if word)
    common = {word for word, times in counts.items() if times >= FEWEST}
    begin = seconds()  # the encoder is loaded by now
    for place, each in enumerate(sample):
        if seconds() > begin + budget_s / 2:
            break
        progress(place / len(sample) / 2, "finding words that matter")
        found.add_words(each, common)
    for place, each in enumerate(sample[:CURVES]):
        if seconds() > begin + budget_s:
            break
        progress(0.5 + place / CURVES / 2, "measuring whether they matter")
        found.add_curve(each)
    judged = parse_config(project.label_config).regional if sample else {}  # for each region, not for tasks
    documents = {
        (KIND, who): encode(AnnotatorAttributions(
            project=project.key, annotator=who, version=loaded.version.name, controls={
                name: each for name, each in found.of(place).items() if name not in judged}))
        for place, who in enumerate(people) if found.tasks
    }
    made = {(KIND, ""): json.dumps(now.isoformat()), **documents}
    store.statistics.replace(project.key, loaded.version.name, made, kinds=[KIND])
    return len(documents)


def word_of(text: str) -> str:
    """A place of a text as the word that it is; "" for several words, numbers and signs."""
    bare = unicodedata.normalize("NFC", text).strip().casefold()
    return bare if any(letter.isalpha() for letter in bare) and not any(map(str.isspace, bare)) else ""


def _sample(store: Store, features: Features, loaded: Loaded, project: Project) -> list[_Sampled]:
    """Tasks with words and tokens in the cache, in an order that the version decides."""
    try:
        config = parse_config(project.label_config)
    except LabelConfigError:
        return []
    ids = store.tasks.ids(project.key)
    chosen = np.random.default_rng(loaded.version.number).permutation(ids)[:_LOOKED_AT]
    tasks = store.tasks.get(project.key, [int(each) for each in chosen])
    contents = [config.content(task.data, task=task.id) for task in tasks]
    contents = [content for content in contents if content and unpack(content).text]
    tokens = features.texts_within(contents, encoder_id=trained_on(loaded), seconds=0.0)
    pairs = [(content, array) for content, array in zip(contents, tokens, strict=True) if array is not None]
    found: list[_Sampled] = []
    for content, array in pairs[:TASKS]:
        try:
            places = _words_of(features, content, array)
        except ModelError:  # an encoder that does not say where its tokens stand
            return []
        if places is not None:
            text = masked(unpack(content).text, keep_length=True)
            words = tuple(word_of(text[place.start : place.end]) for place in places.places)
            found.append(_Sampled(tokens=array, places=places, words=words))
    return found


def _words_of(features: Features, content: str, tokens: Tokens) -> Places | None:
    """The words of a task; what else it shows stays. None where there are fewer than two, or they do not fit."""
    from model.explain.places import text_places

    unpacked = unpack(content)
    spans = features.spans(unpacked.text)
    if spans is None or len(spans) > len(tokens) or (not unpacked.modalities and len(spans) != len(tokens)):
        return None
    beside = np.zeros((len(tokens) - len(spans), 2), np.int64)  # tokens of media come after those of the text
    places = text_places(unpacked.text, np.concatenate([spans, beside]), most=len(tokens))
    return places if len(places) >= 2 else None


class _Effects:
    """What was found so far, of all annotators and controls."""

    def __init__(self, loaded: Loaded, rows: Sequence[int]) -> None:
        self._loaded, self._rows = loaded, rows
        self._effects: dict[str, dict[str, list[Floats]]] = defaultdict(lambda: defaultdict(list))
        self._chance: dict[str, list[Floats]] = defaultdict(list)
        self._everybody: dict[str, list[Floats]] = defaultdict(list)
        self.tasks = self.measured = 0

    def add_words(self, sampled: _Sampled, common: set[str]) -> None:
        """The words of one more task."""
        from model.explain.effects import word_effects

        committee = self._loaded.ladder.committee
        where: dict[str, list[int]] = {}
        for at, word in enumerate(sampled.words):
            if word in common:
                where.setdefault(word, []).append(at)
        words = list(where)[:_LEFT_OUT]
        if words:
            groups = [where[word] for word in words]
            effects = word_effects(committee, sampled.tokens, sampled.places, self._rows, groups)
            for name, effect in effects.items():
                for place, word in enumerate(words):
                    self._effects[name][word].append(effect[:, place])
        self.tasks += 1

    def add_curve(self, sampled: _Sampled) -> None:
        """Both leads on one more task; long ones take too long."""
        from model.explain.effects import leads

        if len(sampled.places) > _PLACES:
            return
        committee, rng = self._loaded.ladder.committee, np.random.default_rng(self.measured)
        for name, found in leads(committee, sampled.tokens, sampled.places, self._rows, rng=rng).items():
            self._chance[name].append(found.chance)
            self._everybody[name].append(found.everybody)
        self.measured += 1

    def of(self, place: int) -> dict[str, Attributions]:
        """control -> what is known of the annotator at this place of the rows; controls without a lead are left out."""
        from model.explain.effects import mean_interval

        found = {}
        for name, chance in self._chance.items():
            lead, low, high = mean_interval(np.array([each[place] for each in chance]))
            own, own_low, own_high = mean_interval(np.array([each[place] for each in self._everybody[name]]))
            if np.isfinite([low, own_low]).all():
                found[name] = Attributions(
                    tasks=self.tasks, measured=self.measured, lead=lead, lead_low=low, lead_high=high, own_lead=own,
                    own_low=own_low, own_high=own_high, words=self._words(name, place) if low > 0.0 else (),
                )
        return found

    @cached_property
    def _means(self) -> dict[str, dict[str, tuple[Floats, Floats, int]]]:
        """control -> word -> `mean_effects`, of words in enough tasks; asked for when all tasks were added."""
        from model.explain.effects import mean_effects

        return {
            control: mean_effects({word: each for word, each in words.items() if len(each) >= FEWEST})
            for control, words in self._effects.items()
        }

    def _words(self, control: str, place: int) -> tuple[WordEffect, ...]:
        from model.explain.effects import lead_over_others

        labels = self._loaded.ladder.spaces[control].classes
        rows: list[tuple[float, WordEffect]] = []
        for word, (mean, error, tasks) in self._means.get(control, {}).items():
            apart = lead_over_others(mean)[place]  # (C,)
            strength = np.minimum(apart, mean[place])  # it has to move this annotator, and the others less
            label = int(strength.argmax())
            if strength[label] >= LEAST and apart[label] > CERTAIN * error[place, label]:
                own = float(mean[place, label])
                rows.append((float(strength[label]), WordEffect(
                    word=word, label=labels[label], own=own, others=own - float(apart[label]), tasks=tasks)))
        return tuple(row for _, row in sorted(rows, key=lambda each: (-each[0], each[1].word))[:WORDS])
