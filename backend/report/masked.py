"""Documents with the names in them as they are shown."""

from __future__ import annotations

from dataclasses import replace

from backend.report.names import Names
from backend.services.statistics.documents import Profile


def masked_profile(document: Profile, names: Names) -> Profile:
    """A profile whose annotators are called what `names` calls them; the same profile where names are not masked."""
    row = replace(document.row, annotator=names.slug(document.row.annotator), name=names.name(document.row.annotator))
    controls = {
        control: replace(each, nearest=tuple(
            replace(one, annotator=names.slug(one.annotator), name=names.name(one.annotator)) for one in each.nearest))
        for control, each in document.controls.items()
    }
    return replace(document, row=row, controls=controls)
