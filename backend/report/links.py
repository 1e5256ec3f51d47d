"""Where things are: pages of the site, and tasks in Label Studio.

Addresses of the site are relative to the page that shows them, so that they hold behind a proxy with a path of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Links of one page. In a report file `root` is None and pages are anchors."""

    project: int  # Label Studio's id
    label_studio: str  # its address, "" where unknown
    root: str | None = ""  # from the page to "/", such as "../../"
    profiles: frozenset[str] = frozenset()  # slugs of the annotators whose profile is in the report file

    @classmethod
    def of_path(cls, path: str, *, project: int, label_studio: str) -> Links:
        """Those of the page at this path of the site."""
        return cls(project=project, label_studio=label_studio, root="../" * (path.count("/") - 1))

    def page(self, name: str = "", **query: str | int) -> str:
        """"" is the overview."""
        if self.root is None:
            return f"#{name or 'overview'}"
        asked = f"?{urlencode(query)}" if query else ""
        return f"{self.root}projects/{self.project}{'/' + name if name else '/overview'}{asked}"

    def annotator(self, slug: str) -> str:
        """The profile of an annotator; "" where a report file does not hold it."""
        if self.root is None:
            return f"#profile-{quote(slug, safe='')}" if slug in self.profiles else ""
        return f"{self.root}projects/{self.project}/annotators/{quote(slug, safe='')}"

    def api(self, name: str = "", **query: str | int) -> str:
        """The same as data."""
        asked = f"?{urlencode(query)}" if query else ""
        return f"{self.root or ''}api/projects/{self.project}{'/' + name if name else ''}{asked}"

    def outside(self) -> str:
        """The project in Label Studio; "" where its address is unknown."""
        return f"{self.label_studio}/projects/{self.project}/data" if self.label_studio else ""

    def task(self, task: int) -> str:
        """The task in Label Studio, opened; "" where its address is unknown."""
        return f"{self.label_studio}/projects/{self.project}/data?task={task}" if self.label_studio else ""


def with_query(query: Mapping[str, str], **changes: str | int | None) -> str:
    """A query string with some parameters changed; None takes one away. "?" alone where nothing is left."""
    merged = {**query, **{name: str(value) for name, value in changes.items() if value is not None}}
    kept = {name: value for name, value in merged.items() if not (name in changes and changes[name] is None) and value}
    return "?" + urlencode(kept)
