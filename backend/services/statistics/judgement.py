"""From what `model.quality.faults` finds to what may be said of an annotator: the same for files and live projects."""

from __future__ import annotations

from backend.services.statistics.documents import Habit, Judgement
from backend.services.statistics.overview import number
from model.quality.faults import Fault, Findings


def judgement(found: Findings, at: int) -> Judgement:
    """What may be said of the annotator with code `at`."""
    classes, common = found.fitted.classes, int(found.grounds.common[at])
    named = found.fault[at] is not Fault.NONE
    moved = found.drift if found.grounds.enough[at] else None
    changed = moved is not None and bool(moved.p_value[at] < 1.0)
    return Judgement(
        common_tasks=common, common_people=int(found.grounds.others[at]), unrelated=bool(found.unrelated[at]),
        fault=found.fault[at].value if named else "", false_alarm=float(found.p_value[at]) if named else None,
        top_class=classes[found.top_class[at]] if common and len(classes) else None,
        top_share=number(found.top_share[at]), expected_share=number(found.expected_share[at]),
        drift_before=number(moved.before[at]) if moved is not None and changed else None,
        drift_after=number(moved.after[at]) if moved is not None and changed else None,
        habits=tuple(
            Habit(others_say=classes[each.believed], says=classes[each.given], count=each.count, of=each.of,
                  usual=each.usual) for each in found.habits[at]
        ),
    )  # fmt: skip
