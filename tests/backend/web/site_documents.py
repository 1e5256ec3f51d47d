"""Documents of statistics for tests of the site: well-formed, seeded, and as large or as evil as a test wants them.

They are written as a job would write them; the figures in them are made up and agree only where a test needs it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from backend.ports import Store
from backend.records import Annotation, StoredVote, Task, TaskSnapshot
from backend.services.explanation.documents import AnnotatorAttributions, Attributions, WordEffect
from backend.services.gaps.documents import Ask, GapFigures, Gaps, MatrixRow
from backend.services.statistics.codec import encode
from backend.services.statistics.documents import (
    LISTED,
    MOST_IN_MATRIX,
    Accepted,
    Agreement,
    AgreementMatrix,
    Alike,
    AnnotatorFigures,
    AnnotatorRow,
    Annotators,
    Answered,
    Camp,
    ClassAgreement,
    ClassLeniency,
    Consensus,
    ConsensusColumns,
    ConsensusFigures,
    ControlOverview,
    ControlProfile,
    Coverage,
    DifferingVote,
    DividedTask,
    Figure,
    Flag,
    Flags,
    Habit,
    Header,
    LadderFigures,
    ModelScore,
    Neighbour,
    Overview,
    Period,
    Predictability,
    Profile,
    Reason,
    ReasonKind,
    RegionFigures,
    RegionPair,
    Regions,
    TaskLists,
    TaskRow,
    Tasks,
    TrainingRun,
)
from model.data.spaces import Value
from model.data.votes import Provenance

KEY, NUMBER = "12.1764288000", 12
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
CONTROL = "politeness"
CLASSES = ("Polite", "Neutral", "Impolite")
EVIL = "<script>window.stolen=1</script><img src=x onerror=\"window.stolen=2\">'\"&{{7*7}}"


class Writer:
    """Writes a project with documents into a store. `evil`: names, labels and texts are attempts to run a script.
    `first`: id of the first task; the others follow."""

    def __init__(self, *, tasks: int = 40, annotators: int = 6, evil: bool = False, seed: int = 5, key: str = KEY,
                 first: int = 1) -> None:
        self.random = Random(seed)
        self.key, self.first = key, first
        self.tasks, self.people = tasks, [str(3 + place) for place in range(annotators)]
        self.control = "polite</title>" + EVIL if evil else CONTROL
        self.classes = (f"A{EVIL}", f"B{EVIL}", "=2+3") if evil else CLASSES
        self.names = {who: f"{EVIL}{who}" if evil else f"annotator{who}@example.org" for who in self.people}
        self.texts: dict[int, str] = {}  # of single tasks
        self.text = EVIL if evil else "Please send me the report when you can, thank you"
        self.header = Header(project=key, version="v1", computed_at=NOW, changes=9, model_version="r3",
                             votes=tasks * annotators // 2)

    def write(self, store: Store, *, gaps: bool = False, documents: bool = True) -> None:
        config = (f'<View><Text name="text" value="$text"/><Choices name="{CONTROL}" toName="text">'
                  '<Choice value="Polite"/><Choice value="Neutral"/><Choice value="Impolite"/></Choices></View>')
        title = f"How polite? {EVIL}" if self.text == EVIL else "How polite is this message?"
        store.projects.ensure(self.key, title=title, label_config=config)
        store.tasks.take_over(self.key, [self._snapshot(number) for number in self.numbers(400)])
        if documents:
            bodies: dict[tuple[str, str], Any] = {
                ("overview", ""): self.overview(), ("annotators", ""): self.annotators(), ("tasks", ""): self.lists(),
                ("alike", ""): self.alike(),
                ("flags", ""): self.flags(), ("consensus", ""): self.consensus(), ("regions", ""): self.regions(),
            } | {("profile", who): self.profile(who) for who in self.people}
            bodies |= {("attributions", who): self.attributions(who) for who in self.people[:2]}
            if gaps:
                bodies["gaps", ""] = self.gaps()
            texts = {key: encode(document) for key, document in bodies.items()}
            store.statistics.replace(self.key, self.header.version, texts)

    def numbers(self, most: int) -> range:
        """Ids of the first tasks."""
        return range(self.first, self.first + min(self.tasks, most))

    def _snapshot(self, number: int) -> TaskSnapshot:
        who, label = self.people[number % len(self.people)], self.classes[number % len(self.classes)]
        vote = StoredVote(
            unit=str(number), task_id=number, annotation_id=number, annotator=who, control=self.control,
            value=Value.of_class(label), updated_at=NOW, lead_time_s=3.0, provenance=Provenance.MANUAL, shown=False,
            control_arm=False)
        annotation = Annotation(
            id=number, task_id=number, annotator=who, result=[], was_cancelled=False, ground_truth=False,
            created_at=NOW, updated_at=NOW, lead_time_s=3.0, imported=False, parent_prediction=None)
        data = {"text": self.texts.get(number, f"{self.text} {number}")}
        return TaskSnapshot(task=Task(id=number, data=data, updated_at=NOW), annotations=[annotation], votes=[vote])

    def attributions(self, who: str, *, lead: float = 0.1) -> AnnotatorAttributions:
        word = EVIL if self.text == EVIL else "please"
        effects = (WordEffect(word=word, label=self.classes[0], own=0.2, others=0.05, tasks=7),) if lead > 0.05 else ()
        found = Attributions(tasks=24, measured=20, lead=lead, lead_low=lead - 0.05, lead_high=lead + 0.05,
                             own_lead=0.0, own_low=-0.02, own_high=0.02, words=effects)
        return AnnotatorAttributions(project=self.key, annotator=who, version="r3", controls={self.control: found})

    def share(self, low: float = 0.3, high: float = 0.95) -> float:
        return self.random.uniform(low, high)

    def figure(self) -> Figure:
        middle = self.share()
        return Figure(value=middle, low=middle - 0.05, high=middle + 0.04)

    def way(self, name: str, weight: float | None, accuracy: float, loss: float) -> ModelScore:
        return ModelScore(name=name, votes=168, accuracy=accuracy, accuracy_annotator_mean=accuracy - 0.02,
                          log_loss=loss, calibration_error=0.03, weight=weight)

    def parts(self, *weights: float) -> tuple[int, ...]:
        """The tasks, parted by weights."""
        found = [int(self.tasks * weight / sum(weights)) for weight in weights]
        return (*found[:-1], self.tasks - sum(found[:-1]))

    def overview(self) -> Overview:
        pairs = self.tasks * len(self.people)
        agreement = Agreement(percent=self.figure(), alpha=Figure(value=0.54, low=0.5, high=0.58), gwet_ac1=0.6,
                              tasks=self.tasks, classes=tuple(
                                  ClassAgreement(name=name, votes=int(self.header.votes * share), share=share,
                                                 agreement=self.share(0.5), alpha=self.share())
                                  for name, share in zip(self.classes, (0.42, 0.33, 0.25), strict=True)))
        consensus = ConsensusFigures(
            method="dawid-skene", tasks=self.tasks, mean_confidence=0.86, converged=True,
            histogram=self.parts(0, 0, 0, 0, 1, 3, 5, 9, 12, 20),
            classes=tuple(zip(self.classes, self.parts(0.45, 0.3, 0.25), strict=True)))
        ladder = LadderFigures(
            version="r3", heldout=(
                self.way("served", None, 0.803, 0.52), self.way("network", 0.9, 0.781, 0.57),
                self.way("pooled", 0.3, 0.647, 0.8), self.way("prior", 0.1, 0.512, 0.98)),
            cross_validation=(self.way("network", 0.9, 0.77, 0.6),), control_arm=None,
            had_i_answered=Answered(votes=120, accuracy=self.figure(), log_loss=0.55))
        return Overview(
            header=self.header, controls=(ControlOverview(
                name=self.control, kind="class", classes=self.classes, votes=self.header.votes,
                annotators=len(self.people), agreement=agreement, consensus=consensus, ladder=ladder),),
            coverage=Coverage(tasks=self.tasks, annotators=len(self.people), given=pairs // 2, predicted=pairs // 3,
                              missing=pairs - pairs // 2 - pairs // 3, votes_per_task=self.parts(4, 9, 12, 8, 5, 2)),
            unmodelled=(), training=tuple(TrainingRun(
                version=f"r{number}", at=NOW - timedelta(hours=4 - number), published=number != 2,
                reason="On 168 held-out votes it is not worse.", votes=100 * number, seconds=14.0,
                log_loss=0.9 - 0.1 * number) for number in (3, 2, 1)),
            outside=2, control_arm_percent=10.0, shadow_mode=False, problem="")

    def regions(self) -> Regions:
        pairs = tuple(RegionPair(one=one, other=other, tasks=9 + place, f1=0.4 + 0.05 * place, exact=0.1,
                                 iou=None if place == 0 else 0.8)
                      for place, (one, other) in enumerate(zip(self.people, self.people[1:], strict=False)))
        figures = RegionFigures(tag="RectangleLabels", regions=210, tasks=self.tasks, exact=0.1, iou=0.81, pairs=pairs,
                                f1=Figure(value=0.62, low=0.55, high=0.68))
        return Regions(header=self.header, controls={self.control: figures}, unreadable=1, left_out=0,
                       annotators={who: self.names[who] for who in self.people})

    def alike(self) -> Alike:
        """Everybody shares 40 tasks with everybody; the further apart they stand, the less they agree."""
        people = range(min(len(self.people), MOST_IN_MATRIX))
        return Alike(header=self.header, controls={self.control: AgreementMatrix(
            annotators=tuple(self.people[at] for at in people), left_out=len(self.people) - len(people),
            common=tuple(tuple(40 for _ in people) for _ in people),
            same=tuple(tuple(40 - abs(one - other) for other in people) for one in people))})

    def judged(self, place: int) -> AnnotatorFigures:
        return AnnotatorFigures(
            votes=120 - place % 90, agreement=self.share(), accuracy=self.figure(), kappa=self.share(0.2, 0.8),
            spammer_score=self.share(), ability=self.share(), self_consistency=None if place else self.share(),
            repeats=0 if place else 12, drift_p=0.01 if place == 2 else 0.4, drift_before=0.8, drift_after=0.6,
            fault="spammer" if place == 1 else "", fault_probability=0.97 if place == 1 else None, group=place % 2,
            false_alarm=0.03 if place == 1 else None, unrelated=place == 1, common_tasks=100, common_people=4,
            top_class=self.classes[0], top_share=0.6, expected_share=0.5, habits=() if place != 2 else (
                Habit(others_say=self.classes[0], says=self.classes[1], count=31, of=40, usual=0.09),),
            predictability=Predictability(votes=60, accuracy=self.share(), log_loss=0.6, prior_log_loss=0.9))

    def row(self, place: int) -> AnnotatorRow:
        who = self.people[place]
        return AnnotatorRow(
            annotator=who, name=self.names[who], votes=120 - place % 90, tasks=min(self.tasks, 110 - place % 80),
            last_vote=NOW - timedelta(days=place), median_s=self.share(2, 30), relative_speed=self.share(0.5, 2),
            hurried=0.02, accepted=Accepted(shown=40, accepted=30, changed=5, rate=0.75),
            position=(self.random.gauss(0, 1), self.random.gauss(0, 1)), controls={self.control: self.judged(place)})

    def annotators(self) -> Annotators:
        self.rows = tuple(self.row(place) for place in range(len(self.people)))
        return Annotators(header=self.header, rows=self.rows, map_explained=0.7)

    def profile(self, who: str) -> Profile:
        row = next(row for row in self.rows if row.annotator == who)
        others = [other for other in self.rows if other.annotator != who][:10]
        control = ControlProfile(
            figures=row.controls[self.control], classes=self.classes,
            confusion=tuple(tuple(20.0 if a == b else 3.5 for b in range(3)) for a in range(3)),
            leniency=tuple(ClassLeniency(name=name, given=self.share(0.2, 0.5), expected=self.share(0.2, 0.5))
                           for name in self.classes),
            nearest=tuple(Neighbour(annotator=one.annotator, name=one.name, common=40, agreement=self.share(),
                                    kappa=self.share()) for one in others),
            over_time=tuple(Period(start=NOW - timedelta(days=9 - step), end=NOW, votes=20, accuracy=self.share(),
                                   predicted=self.share()) for step in range(6)))
        return Profile(header=self.header, row=row, controls={self.control: control})

    def task(self, number: int) -> TaskRow:
        return TaskRow(task=number, unit=str(number), votes=5, label=self.classes[number % 3], confidence=self.share(),
                       entropy=0.6, surprise=self.share(0, 4), ambiguity=self.share(),
                       cause=("readings", "habit", "agreed")[number % 3], differing=self.differing(number))

    def differing(self, number: int) -> tuple[DifferingVote, ...]:
        if number % 3 == 2:
            return ()
        return (DifferingVote(annotator=self.people[number % len(self.people)], given=self.classes[number % 3],
                              instead=self.classes[(number + 1) % 3], cause=("readings", "habit")[number % 3],
                              times=31.0, of=40.0),)

    def lists(self) -> Tasks:
        half, numbers = len(self.people) // 2, self.numbers(LISTED)
        divided = tuple(DividedTask(
            row=self.task(number), division=self.share(), others=(), camps=(
                Camp(label=self.classes[0], annotators=tuple(self.people[:half][:10]), weight=2.0),
                Camp(label=self.classes[1], annotators=tuple(self.people[half:][:10]), weight=1.5)),
        ) for number in numbers)
        lists = TaskLists(hardest=tuple(self.task(number) for number in numbers), divided=divided,
                          causes={"agreed": self.tasks - 12, "readings": 7, "habit": 5}, split=12, few=0,
                          habits=dict(zip(self.people[:2], (3, 2), strict=False)))
        return Tasks(header=self.header, controls={self.control: lists})

    def flags(self) -> Flags:
        def flag(number: int) -> Flag:
            who, label = self.people[number % len(self.people)], self.classes[number % len(self.classes)]
            return Flag(
                task=number, unit=str(number), annotator=who, name=self.names[who], control=self.control, given=label,
                value=Value.of_class(label).to_json(), expected=self.classes[(number + 1) % 3],
                score=9.0 - (number - self.first) / 50, twin=number + 1 if number == self.first else None,
                checked="", cause="slip", reasons=(
                    Reason(kind=ReasonKind.OTHERS, strength=2.0,
                           sentence="The others say something else, which they rarely disagree with."),
                    *([Reason(kind=ReasonKind.SPEED, strength=1.0, sentence="It took 0.4 s; they usually take 6 s.")]
                      if number % 2 else [])))
        rows = tuple(flag(number) for number in self.numbers(LISTED))
        return Flags(header=self.header, rows=rows, votes=self.header.votes, checked=0, uses=("others", "speed"))

    def consensus(self) -> Consensus:
        units = tuple(str(number) for number in self.numbers(self.tasks))
        columns = ConsensusColumns(
            units=units, labels=tuple(self.classes[int(unit) % 3] for unit in units),
            confidence=tuple(0.9 for _ in units), votes=tuple(5 for _ in units))
        return Consensus(header=self.header, controls={self.control: columns})

    def gaps(self) -> Gaps:
        rows = tuple(MatrixRow(annotator=who, name=self.names[who], given=20, predicted=15, missing=5,
                               cells="gggpp.pgpg" * 4) for who in self.people)
        asks = tuple(Ask(task=number, unit=str(number), annotator=self.people[number % len(self.people)], name="",
                         gain=1 / number, cost=None, sentence="The consensus is unsure, and they tend to settle it.")
                     for number in self.numbers(100))
        figures = GapFigures(units=tuple(str(number) for number in range(1, 41)), rows=rows, asks=asks,
                             policy="expected consensus change", done=11, saved=40)
        return Gaps(header=self.header, controls={self.control: figures})
