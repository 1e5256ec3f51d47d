"""Marking a flag as checked: by its id, as the flag stands in the newest document."""

from __future__ import annotations

from backend.errors import NotFound
from backend.report.pages import flagged
from backend.routes.context import context
from backend.routes.desk import Desk, there


def check_flag(at: Desk, flag_id: str, verdict: str, *, again: bool = False) -> str:
    """Keep a verdict ("" takes it back) and return what holds then. With `again`, the same verdict takes it back.

    Raises NotFound for a flag that is not in the list (any more), ClientError for another verdict or a vote that
    changed meanwhile.
    """
    rows = flagged(there(at.reader.flags(at.key)), at.store.statistics.checks(at.key))
    found = next((each for each in rows if each.id == flag_id), None)
    if found is None:
        raise NotFound("There is no such flag (any more); the vote was changed, or the list was made anew.")
    if again and found.checked == verdict:
        verdict = ""
    flag = found.flag
    context().services.statistics.check(
        at.key, unit=flag.unit, annotator=flag.annotator, control=flag.control, value=flag.value, verdict=verdict)
    return verdict
