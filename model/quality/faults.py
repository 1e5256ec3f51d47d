"""Faults of annotators, named only where labelling sensibly with a habit of one's own is ruled out.

"Sensibly" is any informative way to label: lenient, severe, shifted by a class, with own class rates, by a rule of
one's own. Agreeing with the others is not part of it. Each fault rejects that hypothesis by a test on shared votes:

    constant : one class takes 95 % of the votes, far more than the tasks explain (binomial), the other classes take
               less than `SEES` of the tasks where the others see them (binomial), and those few votes do not fit either
    spammer  : *unrelated*, that is neither tied to what the others say (chi-square) nor compatible with a tie of `TIED`
               times the usual strength (noncentral chi-square, see `ties`); and neither does the content: out-of-sample
               predictions, which tell others' labels, do not tell theirs (z); nor are their own repeats alike. Without
               predictions they are unrelated, which is no fault: votes alone cannot tell a rule of one's own from
               answers without looking
    drifter  : agreement with the rest beyond what the tasks explain falls by `FALL` at some vote (CUSUM, see `drift`),
               and the content does not explain it
    inverter : two classes are named the wrong way round, both ways: their votes among the two go against the others'
               (a permutation z), and each is called the other's name about as often as not, `SWAPPED` or more

Why false alarms are bounded: every fault needs one test that is of level `levels(...)` under every sensible habit (an
intersection of conditions can only err less), levels add up to `alpha` over people, kinds and looks (see `grounds`),
and at most `alpha` of the crowds without faults have anybody named. The content is held against a level that is shared
among those who are unrelated, since it is asked about nobody else; or, for those whom the votes make unrelated only at
`NEARLY`, against everybody's. Approximate are: the chi-square limits at few votes; beliefs as
conditions (they are estimated, without the vote, from a crowd that includes its annotator); crowds that grow by people;
"usual" and the content's reach, which are medians over the crowd: a rule that the model cannot see looks like no
rule. `benchmarks.faults` measures what holds.

Nobody is named unless at least two others, and most of all who can be judged, follow the crowd: two camps of one size
are two readings. One annotator gets one fault.

Shape legend: A annotators, C classes, N votes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator
from model.crowd.dawid_skene import DawidSkene
from model.crowd.leave_one_out import posterior_without
from model.quality import fault_evidence as by
from model.quality.annotators import Against, against_belief
from model.quality.drift import Drift, drift, rightness
from model.quality.fault_evidence import Case, Floats, Witness
from model.quality.grounds import Grounds, grounds, levels
from model.quality.renamings import Habit, habits, hard_table
from model.quality.ties import tie

Flags = NDArray[np.bool_]
Codes = NDArray[np.int64]

ALPHA = 0.05  # share of crowds without faults in which anybody may be named
_KINDS = 4


class Fault(StrEnum):
    """What is wrong with an annotator."""

    NONE = "none"
    CONSTANT = "constant"
    INVERTER = "inverter"
    DRIFTER = "drifter"
    SPAMMER = "spammer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """The fault of every annotator, with what led to it."""

    annotators: tuple[str, ...]
    fault: tuple[Fault, ...]  # (A,)
    p_value: Floats  # (A,) of the fault that is named, adjusted for people, kinds and looks; NaN where none is
    unrelated: Flags  # (A,) nothing that the others say tells their labels; no fault by itself
    habits: tuple[tuple[Habit, ...], ...]  # (A,) none of those who are unrelated or constant
    grounds: Grounds
    against: Against  # measured against the others, on shared votes
    top_class: Codes  # (A,) the class given most often, of shared votes
    top_share: Floats  # (A,) its share of them; NaN without
    expected_share: Floats  # (A,) its share if they answered as annotators usually do on these units
    drift: Drift | None  # None where the votes have no times
    belief: Floats  # (N, C) what is thought of each vote's unit without the vote
    table: Floats  # (A, C, C) [annotator, what the others say, given] votes on shared tasks: `hard_table`
    fitted: Aggregate

    def of(self, fault: Fault) -> list[str]:
        """Ids of the annotators with this fault."""
        return [name for name, found in zip(self.annotators, self.fault, strict=True) if found is fault]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultFinder:
    """Runs an aggregator and tests everybody."""

    method: Aggregator = field(default_factory=DawidSkene)
    alpha: float = ALPHA
    watched: bool = False  # whether the crowd is looked at again and again as it grows
    constant_share: float = 0.95  # of a constant answerer's votes, at least

    def find(self, answers: AnswerMatrix, witness: Witness | None = None) -> Findings:
        """Faults of all annotators; drift only when the answers carry times."""
        witness = witness or Witness()
        fitted = self.method.fit(answers)
        belief = np.empty((0, len(answers.classes)))
        if len(answers):
            belief = posterior_without(self.method, answers, fitted)
        ground = grounds(answers, witness.task)
        part = answers.select(ground.shared)
        believed = belief[ground.shared]
        against = against_belief(part, believed)
        top, share, expected = by.favourite(against)
        moved = None
        if answers.time is not None and fitted.confusion is not None:
            moved = drift(part, *rightness(part, believed, fitted.confusion))
        hard = hard_table(answers, belief, ground.shared)
        case = Case(
            answers=part, belief=believed, against=against, ground=ground, hard=hard, witness=witness,
            who=answers.annotator, entropy=by.entropy(answers), top=top, share=share, expected=expected, drift=moved,
            level=levels(ground, self.alpha, _KINDS, watched=self.watched),
        )
        able, unrelated_p = _unrelated(case)
        unrelated = able & (unrelated_p <= case.level)
        p = {  # a fault that explains more comes first
            Fault.CONSTANT: np.where(np.nan_to_num(share) >= self.constant_share, by.constant(case), 1.0),
            Fault.SPAMMER: _witnessed(case, unrelated_p, unrelated),
            Fault.DRIFTER: by.drifted(case), Fault.INVERTER: by.inverted(case),
        }
        fault, p_value = [Fault.NONE] * len(able), np.full(len(able), np.nan)
        for kind, each in p.items():
            for a in np.flatnonzero(able & (each <= case.level)):
                if fault[a] is Fault.NONE:
                    fault[a], p_value[a] = kind, each[a] / case.level[a] * self.alpha
        constant = np.array([each is Fault.CONSTANT for each in fault], np.bool_)
        unrelated |= np.array([each is Fault.SPAMMER for each in fault], np.bool_)
        said = habits(hard, ground, watched=self.watched)
        hidden = unrelated | constant
        return Findings(
            annotators=answers.annotators, fault=tuple(fault), p_value=p_value, unrelated=unrelated & ~constant,
            habits=tuple(() if quiet else each for quiet, each in zip(hidden, said, strict=True)),
            grounds=ground, against=against, top_class=top, top_share=share, expected_share=expected, drift=moved,
            belief=belief, table=hard, fitted=fitted,
        )


def _unrelated(case: Case) -> tuple[Flags, Floats]:
    """(A,) who can be named at all, and the p-value of "is tied to what the others say".

    Nobody can where the crowd itself does not hold together.
    """
    people = len(case.level)
    if len(case.answers.classes) < 2:
        return np.zeros(people, np.bool_), np.ones(people)
    weight = np.minimum(by.per_task(case), case.answers.weights)
    ties = tie(case.answers.annotator, case.answers.label, case.belief, weight, people)
    able = case.ground.enough
    follows = able & (ties.independent < by.RELATED) & (np.nan_to_num(case.against.kappa) > 0)
    usual = by.TIED * min(float(np.median(ties.strength[able])) if able.any() else 0.0, by.MOST_USUAL)
    able = able & (follows.sum() - follows >= 2) & (2 * follows.sum() > able.sum())
    weak = ties.weaker_than(usual) if usual > 0 else np.ones(people)
    return able, np.where(ties.independent >= by.RELATED, weak, 1.0)


def _witnessed(case: Case, unrelated_p: Floats, unrelated: Flags) -> Floats:
    """(A,) p-value of "labels by something": of the tie to the others and of a second witness together."""
    content, tells = by.content(case, unrelated)
    among = max(int(unrelated.sum()), 1) / max(int((case.ground.votes > 0).sum()), 1)
    found = np.minimum(np.maximum(unrelated_p, content * among), np.where(unrelated_p <= by.NEARLY, content, 1.0))
    return np.where(tells | by.consistent(case), 1.0, found)



__all__ = ["ALPHA", "Fault", "FaultFinder", "Findings", "Witness"]
