"""One file with everything: the pages of the site without what needs a server, its style sheet inside, no script.

Invariants: no address outside the file but links to tasks in Label Studio; under 5 MB however large the project is,
since lists are cut (and say so).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from backend.errors import NotFound
from backend.ports import Store
from backend.records import Project
from backend.report import pages
from backend.report.asked import Asked
from backend.report.html import environment, inline_style
from backend.report.links import Links
from backend.report.names import Names
from backend.report.pages import Look
from backend.report.texts import texts_of
from backend.services.explanation.attributions import read_attributions
from backend.services.gaps.documents import read_gaps
from backend.services.statistics.reading import Reader

PROFILES = 60  # most active annotators
ROWS = 100  # of each list
NOTHING_YET = "There are no figures of this project yet; a job process computes them once votes were read."


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A chapter of the file."""

    name: str
    title: str
    html: Markup


def report(reader: Reader, store: Store, project: Project, *, mask: bool, label_studio: str, at: datetime) -> str:
    """The file as HTML. Raises NotFound for a project without documents."""
    overview, people = reader.overview(project.key), reader.annotators(project.key)
    tasks, flags = reader.tasks(project.key), reader.flags(project.key)
    if overview is None or people is None or tasks is None or flags is None:
        raise NotFound(NOTHING_YET)
    drawn = reader.regions(project.key)
    names = Names({row.annotator: row.name for row in people.rows}, mask=mask,
                  later=drawn.annotators if drawn is not None else {})
    shown = [row.annotator for row in people.rows[:PROFILES]]
    links = Links(project=project.label_studio_id, label_studio=label_studio, root=None,
                  profiles=frozenset(names.slug(who) for who in shown))
    look = Look(project=project, names=names, links=links, texts=texts_of(store, project))
    asked, all_of_it = Asked(limit=ROWS), {"state": "all"}
    gaps, checks = read_gaps(store, project.key), store.statistics.checks(project.key)
    made = _Chapters(look)
    beside = pages.Beside(tasks=tasks, flags=flags, checks=checks, people=people, gaps=gaps, drawn=drawn)
    made.add("", "Overview", "_overview", pages.overview(look, overview, {}, beside))
    made.add("annotators", "Annotators", "_annotators",
             pages.annotators(look, people, {}, asked, reader.alike(project.key)))
    made.add("tasks", "Hardest tasks", "_tasks", pages.tasks(look, tasks, {"list": "hardest"}, asked))
    made.add("divided", "Divided tasks", "_tasks", pages.tasks(look, tasks, {"list": "divided"}, asked))
    made.add("flags", "Flags", "_flags", pages.flags(look, flags, checks, all_of_it, asked))
    made.add("gaps", "Gaps", "_gaps", pages.gaps(look, gaps, overview, people, {}, asked))
    found = [profile for who in shown if (profile := reader.profile(project.key, who)) is not None]
    made.add_all("profiles", "Profiles", "_profile", [
        pages.profile(look, profile, None, read_attributions(store, project.key, profile.row.annotator))
        for profile in found
    ])
    return made.whole(title=project.title or f"Project {project.label_studio_id}", header=overview.header, at=at)


class _Chapters:
    """Parts of the file, as they are made."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._templates = environment()
        self._parts: list[Part] = []

    def add(self, name: str, title: str, template: str, made: Mapping[str, Any]) -> None:
        self.add_all(name, title, template, [made])

    def add_all(self, name: str, title: str, template: str, made: Sequence[Mapping[str, Any]]) -> None:
        frame = {"look": self._look, "standalone": True, "query": {}}
        chosen = self._templates.get_template(f"site/{template}.html")
        html = Markup("").join(Markup(chosen.render({**frame, **each})) for each in made)
        self._parts.append(Part(name=name, title=title, html=html))

    def whole(self, **about: Any) -> str:
        """The file."""
        template = self._templates.get_template("site/report.html")
        return template.render(look=self._look, parts=self._parts, style=inline_style(), **about)
