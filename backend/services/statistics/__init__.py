"""Statistics of a project for people: computed by a job from votes (and the published version), kept as documents.

`documents` says what there is, `service.Statistics` computes and reads. Everything that is a formula lives in
`model.crowd` and `model.quality`; here it is only put together and named.
"""

from backend.services.statistics.documents import Document, DocumentKind
from backend.services.statistics.service import Statistics

__all__ = ["Document", "DocumentKind", "Statistics"]
