"""The QA site of a project in a real Label Studio: every page opens, its figures are those of the API and of `identify`
and `agreement` on the project's own export, and its links land on the right task.

The same on the data set `annotation_paradigms` (60 annotators, 12,000 votes) below the folder POLYVOX_DATA:
`make e2e-all POLYVOX_DATA=<folder>`.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, Page, expect

from backend.report.words import number
from tests.e2e.browser import log_in, wait_for_text
from tests.e2e.crowd_project import Crowd, crowd_of, give, own_crowd
from tests.e2e.polyvox import PATIENCE_S, serve
from tests.e2e.server import LabelStudio
from tests.e2e.test_site import complaints
from tests.e2e.test_statistics import command

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
SETTINGS = {"POLYVOX_MIN_VOTES": "1000000", "POLYVOX_RECONCILE_EVERY_S": "5"}  # nothing is ever trained
PAGES = ("overview", "annotators", "tasks", "tasks?list=divided", "flags", "flags?state=all", "gaps")
NARROW = "\u202f"


def test_pages_of_a_project_say_what_commands_say(label_studio: LabelStudio, browser: Browser, tmp_path: Path) -> None:
    check(label_studio, browser, tmp_path, own_crowd(tasks=40, people=4))


@pytest.mark.measuring_sets
def test_pages_of_sixty_annotators(label_studio: LabelStudio, browser: Browser, tmp_path: Path) -> None:
    folder = os.environ.get("POLYVOX_DATA")
    assert folder, "POLYVOX_DATA names the folder that holds annotation_paradigms"
    check(label_studio, browser, tmp_path, crowd_of(Path(folder) / "annotation_paradigms"))


def check(label_studio: LabelStudio, browser: Browser, folder: Path, crowd: Crowd) -> None:
    """All of it, for one crowd."""
    project, tasks = give(label_studio, crowd)
    texts = dict(zip(tasks, crowd.texts, strict=True))
    with serve(label_studio, folder, SETTINGS, 0.0) as polyvox:
        label_studio.owner.add_ml_backend(project, polyvox.url, "Polyvox")
        overview = wait_for_votes(polyvox.url, project, sum(map(len, crowd.votes.values())))
        found = from_commands(label_studio, folder, project, crowd.label_config)
        page = log_in(browser, label_studio, label_studio.annotators[0])
        said = complaints(page)
        all_pages_open(page, f"{polyvox.url}/projects/{project}")
        the_overview_is_right(page, f"{polyvox.url}/projects/{project}", overview, found, crowd)
        the_annotators_are_right(page, polyvox.url, project, found)
        assert said == []
        for name in ("tasks", "tasks?list=divided", "flags"):
            links_land(page, f"{polyvox.url}/projects/{project}/{name}", label_studio.url, project, texts)
        page.context.close()


def all_pages_open(page: Page, base: str) -> None:
    """Each answers 200 and has a heading."""
    for name in PAGES:
        answer = page.goto(f"{base}/{name}")
        assert answer is not None and answer.ok, name
        expect(page.locator("h1").first).to_be_visible()


def wait_for_votes(url: str, project: int, votes: int) -> dict[str, Any]:
    """The overview once it is made from all votes."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = requests.get(f"{url}/api/projects/{project}", timeout=30)
        if answer.ok and answer.json()["header"]["votes"] == votes:
            return dict(answer.json())
        assert time.monotonic() < deadline, f"no figures of all votes: {answer.status_code} {answer.text[:300]}"
        time.sleep(0.5)


def from_commands(label_studio: LabelStudio, folder: Path, project: int, label_config: str) -> dict[str, Any]:
    """What `identify` and `agreement` say of the export."""
    export, config = folder / "export.json", folder / "config.xml"
    address = f"/api/projects/{project}/export?exportType=JSON"
    export.write_text(json.dumps(label_studio.owner.call("GET", address, timeout=300)))
    config.write_text(label_config)
    found: dict[str, Any] = {}
    for name in ("identify", "agreement"):
        out = folder / f"{name}.json"
        command(folder, name, str(export), "--label-config", str(config), "--out", str(out))
        found[name] = json.loads(out.read_text())
    return found


def the_overview_is_right(page: Page, base: str, overview: dict[str, Any], found: dict[str, Any], crowd: Crowd) -> None:
    """Agreement and coverage: of the page, of the API, of `agreement`."""
    (control,) = overview["controls"]
    agreement, overall = control["agreement"], found["agreement"]["overall"]
    by_name = {next(value for value in row.values() if isinstance(value, str)): row["value"] for row in overall}
    assert agreement["percent"]["value"] == pytest.approx(by_name["percent agreement"], abs=1e-6)
    (alpha,) = (value for name, value in by_name.items() if "alpha" in name)
    assert agreement["alpha"]["value"] == pytest.approx(alpha, abs=1e-6)
    by_class = {row["class"]: row for row in found["agreement"]["classes"]}
    for each in agreement["classes"]:
        assert each["votes"] == by_class[each["name"]]["votes"]
        assert each["alpha"] == pytest.approx(by_class[each["name"]]["alpha"], abs=1e-6)
    given = sum(map(len, crowd.votes.values()))
    cover = overview["coverage"]
    assert (cover["tasks"], cover["annotators"], cover["given"]) == (len(crowd.texts), crowd.people, given)
    assert cover["predicted"] + cover["missing"] == len(crowd.texts) * crowd.people - given
    page.goto(f"{base}/overview")
    shown = agreement["alpha"]
    expect(page.locator("article", has_text="Do they agree?")).to_contain_text(
        f"α = {shown['value']:.2f} ({shown['low']:.2f} to {shown['high']:.2f})")
    expect(page.locator("article", has_text="Is it done?")).to_contain_text(
        f"{crowd.people} annotators gave {number(given)} votes on {number(len(crowd.texts))} tasks")
    page.get_by_text("Agreement on each label", exact=True).click()
    for each in agreement["classes"]:
        row = page.locator("tr", has=page.get_by_role("rowheader", name=each["name"], exact=True)).first
        expect(row.locator("td").last).to_have_text(f"{each['alpha']:.2f}".replace("-", "−"))


def the_annotators_are_right(
    page: Page, url: str, project: int, found: dict[str, Any], login: tuple[str, str] | None = None
) -> None:
    """Accuracy, kappa and faults: of the page, of the API, of `identify`; and a profile. `login`: user and password."""
    address = f"{url}/api/projects/{project}/annotators?limit=1000"
    rows = requests.get(address, auth=login, timeout=30).json()["rows"]
    identified = {row["annotator"]: row for row in found["identify"]["annotators"]}
    assert {row["annotator"] for row in rows} == set(identified)
    for row in rows:
        other = identified[row["annotator"]]
        assert row["votes"] == other["votes"]
        assert row["accuracy"] == pytest.approx(other["accuracy"], abs=1e-6), row["annotator"]
        assert row["kappa"] == pytest.approx(other["kappa"], abs=1e-6), row["annotator"]
        assert row["fault"] in ("", other["fault"]), row["annotator"]  # a live project is looked at often, a file once
    page.goto(f"{url}/projects/{project}/annotators?columns=all")
    for row in rows[:10]:
        link = page.get_by_role("link", name=row["name"], exact=True)
        shown = page.locator("table[data-rows] tr", has=link)
        for title, text in (("Votes", number(row["votes"])), ("Kappa", f"{row['kappa']:.2f}".replace("-", "−")),
                            ("Agrees with the rest", f"{row['accuracy'] * 100:.0f}{NARROW}%")):
            expect(shown.locator(f"td[data-label='{title}']")).to_have_text(text)
    page.get_by_role("link", name=rows[0]["name"], exact=True).first.click()
    expect(page.locator("h1")).to_have_text(rows[0]["name"])
    expect(page.locator("dl.figures")).to_contain_text(str(rows[0]["votes"]))


def links_land(page: Page, address: str, label_studio: str, project: int, texts: dict[int, str]) -> None:
    """Every link of a list names a task of this project, beside its own text; the first one opens it."""
    page.goto(address)
    links = page.locator("tbody th a.task")
    for at in range(links.count()):
        task = int(links.nth(at).inner_text())
        assert links.nth(at).get_attribute("href") == f"{label_studio}/projects/{project}/data?task={task}"
        start = " ".join(texts[task].split())[:20]
        assert start in " ".join(page.locator("tbody tr").nth(at).inner_text().split()), address
    if links.count():
        task = int(links.first.inner_text())
        links.first.click()
        wait_for_text(page, " ".join(texts[task].split())[:20])
