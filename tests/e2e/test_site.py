"""The QA site in a real Chromium: no name runs anything, axe-core finds no serious fault, keys are enough.

The first part needs no Label Studio: a store is filled with documents. The last test follows a link into a real one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect
from werkzeug.serving import WSGIRequestHandler, make_server

from backend.app import create_app
from backend.ports import Store
from backend.records import JobKind
from backend.report.standalone import report
from demo.sample import LABEL_CONFIG
from tests.backend.web.conftest import NOW, make_services
from tests.backend.web.site_documents import KEY, NUMBER, Writer
from tests.e2e.browser import log_in, screenshot, wait_for_text
from tests.e2e.server import LabelStudio
from tests.e2e.site_sample import sample_services

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
PAGES = ("projects", *(f"projects/{NUMBER}/{name}" for name in (
    "overview", "annotators", "annotators/3", "tasks", "tasks?list=divided", "tasks/1/explanation", "flags", "gaps",
)), "")
PHONE, DESKTOP = ViewportSize(width=390, height=844), ViewportSize(width=1120, height=840)


class Quiet(WSGIRequestHandler):
    """Logs nothing to the terminal of the tests."""

    def log_request(self, *arguments: object) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A running site."""

    url: str
    store: Store
    services: Any


@contextmanager
def running(services: Any) -> Iterator[Site]:
    """The site over these services, which are closed at the end."""
    server = make_server("127.0.0.1", 0, create_app(services, SimpleNamespace()), threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Site(url=f"http://127.0.0.1:{server.server_port}", store=services.store, services=services)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        services.store.close()


@contextmanager
def serve(folder: Path, writer: Writer, **settings: Any) -> Iterator[Site]:
    """The site over documents that a test made up."""
    services = make_services(folder, **{"label_studio_url": "http://localhost:8080", **settings})
    writer.write(services.store, gaps=True)
    with running(services) as site:
        yield site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serve(tmp_path_factory.mktemp("site"), Writer(tasks=60)) as served:
        yield served


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    yield opened
    context.close()


def complaints(page: Page) -> list[str]:
    """Collects what a page says in the console and what it throws."""
    found: list[str] = []
    page.on("console", lambda message: found.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("dialog", lambda dialog: (found.append("a dialog"), dialog.dismiss()))
    return found


def test_every_page_opens_without_complaint_and_fetches_from_nowhere_else(site: Site, page: Page) -> None:
    found, outside = complaints(page), []
    page.on("request", lambda it: outside.append(it.url) if not it.url.startswith(site.url) else None)
    for address in PAGES:
        answer = page.goto(f"{site.url}/{address}")
        assert answer is not None and answer.ok, address
        expect(page.locator("h1").first).to_be_visible()
    assert found == [] and outside == []


def test_names_labels_and_texts_run_nothing(tmp_path: Path, page: Page) -> None:
    with serve(tmp_path, Writer(evil=True)) as evil:
        found = complaints(page)
        for address in PAGES:
            page.goto(f"{evil.url}/{address}")
            assert page.evaluate("window.stolen") is None, address
            assert page.locator("img[src=x]").count() == 0, address
        page.goto(f"{evil.url}/projects/12/flags")
        assert "<script>window.stolen=1</script>" in page.locator("main").inner_text()  # it is shown as what it is
        assert found == []
        store = evil.store
        project = store.projects.get(KEY)
        assert project is not None
        file = tmp_path / "report.html"
        file.write_text(report(evil.services.statistics, store, project, mask=False, label_studio="", at=NOW))
    page.goto(file.as_uri())
    assert page.evaluate("window.stolen") is None and found == []


def test_the_policy_blocks_inline_script_and_style(site: Site, page: Page) -> None:
    blocked = complaints(page)
    page.goto(f"{site.url}/projects/{NUMBER}/overview")
    page.evaluate("""() => {
        const script = document.createElement('script');
        script.textContent = 'window.stolen = 1';
        document.body.append(script);
        const box = document.createElement('div');
        box.innerHTML = '<p id="styled" style="color: rgb(1, 2, 3)">x</p>' +
            '<button onclick="window.stolen = 2">y</button>';
        document.body.append(box);
        box.querySelector('button').click();
    }""")
    assert page.evaluate("window.stolen") is None
    assert page.evaluate("getComputedStyle(document.querySelector('#styled')).color") != "rgb(1, 2, 3)"
    assert sum("Content Security Policy" in each for each in blocked) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(scheme: str, site: Site, browser: Browser) -> None:
    context = browser.new_context(color_scheme=scheme)
    page, axe, faults = context.new_page(), Axe(), {}
    rules: dict[str, Any] = {"resultTypes": ["violations"]}
    if scheme == "dark":
        rules["runOnly"] = ["color-contrast"]  # nothing else depends on the colours
    for address in PAGES[:4] + PAGES[5:] if scheme == "light" else PAGES[1:-1:2]:  # "tasks" is built as its other list
        page.goto(f"{site.url}/{address}")
        found = axe.run(page, options=rules).response
        assert found["passes"], address
        for violation in found["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["html"][:120] for node in violation["nodes"][:3]]
                faults[f"{address}: {violation['id']}"] = nodes
    context.close()
    assert faults == {}


def test_the_sample_shows_what_the_api_says(browser: Browser, tmp_path: Path, pictures: Path | None) -> None:
    """Real statistics of simulated votes. With --screenshots a version is trained and docs/qa.md gets its pictures."""
    services = sample_services(tmp_path, train=pictures is not None)
    shots = (("overview", "light", DESKTOP, "qa-overview"), ("annotators", "light", DESKTOP, "qa-annotators"),
             ("flags", "dark", DESKTOP, "qa-flags-dark"), ("gaps", "light", DESKTOP, "qa-gaps"),
             ("annotators/2", "light", PHONE, "qa-profile-phone"))
    with running(services) as sample:
        for name, scheme, size, picture in shots:
            context = browser.new_context(color_scheme=scheme, viewport=size)
            page = context.new_page()
            page.goto(f"{sample.url}/projects/{NUMBER}/{name}")
            expect(page.locator("h1")).to_be_visible()
            screenshot(page, pictures, picture)
            context.close()
        page = browser.new_page()
        overview = page.request.get(f"{sample.url}/api/projects/{NUMBER}").json()
        page.goto(f"{sample.url}/projects/{NUMBER}/overview")
        alpha, cover = overview["controls"][0]["agreement"]["alpha"], overview["coverage"]
        expect(page.locator("main")).to_contain_text(f"α = {alpha['value']:.2f} ({alpha['low']:.2f}")
        expect(page.locator("article", has_text="Is it done?")).to_contain_text(f"on {cover['tasks']} tasks")
        people = page.request.get(f"{sample.url}/api/projects/{NUMBER}/annotators").json()["rows"]
        page.goto(f"{sample.url}/projects/{NUMBER}/annotators")
        for row in people:
            cells = page.locator("tr", has=page.get_by_role("link", name=row["name"])).locator("td")
            shown = cells.all_inner_texts()
            assert shown[0] == str(row["votes"]) and shown[1].strip() == f"{row['accuracy'] * 100:.0f}\u202f%"
        page.close()


def test_the_report_is_short_before_its_folded_lists(site: Site, browser: Browser, tmp_path: Path) -> None:
    project = site.store.projects.get(KEY)
    assert project is not None
    file = tmp_path / "report.html"
    file.write_text(report(site.services.statistics, site.store, project, mask=False, label_studio="", at=NOW))
    page = browser.new_page(viewport=ViewportSize(width=1280, height=800))
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollHeight") <= 4 * 800
    page.get_by_role("link", name="Flags").click()  # an address within a folded part unfolds it
    expect(page.locator("#flags h1")).to_be_visible()
    page.close()


def test_tables_are_cards_on_a_phone_and_nothing_is_cut(site: Site, browser: Browser) -> None:
    """Every cell of a table of people or tasks lies within the screen, with the name of its column in front."""
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    for address in ("annotators", "tasks", "flags", "gaps", "annotators/3"):
        page.goto(f"{site.url}/projects/{NUMBER}/{address}")
        cells = page.locator("table.cards tbody td").all()[:40]
        assert cells, address
        for cell in cells:
            box = cell.bounding_box()
            assert box is None or (box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]), address
    context.close()


def test_nothing_is_wider_than_a_phone(site: Site, browser: Browser) -> None:
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    for address in PAGES:
        page.goto(f"{site.url}/{address}")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"], f"{address} is {width} pixels wide"
    context.close()


def test_a_flag_is_checked_in_place_and_without_script(site: Site, browser: Browser) -> None:
    for script in (True, False):
        context = browser.new_context(java_script_enabled=script)
        page = context.new_page()
        page.goto(f"{site.url}/projects/{NUMBER}/flags?state=all")
        row = page.locator("tr", has=page.locator("a.task", has_text="3")).first
        slip = row.get_by_role("button", name="is a slip")
        expect(slip).to_have_attribute("aria-pressed", "false")
        slip.click()
        expect(slip).to_have_attribute("aria-pressed", "true")
        assert [(each.unit, each.verdict) for each in site.store.statistics.checks(KEY)] == [("3", "slip")]
        slip.click()
        expect(slip).to_have_attribute("aria-pressed", "false")
        assert site.store.statistics.checks(KEY) == []
        context.close()


def test_a_page_of_another_site_changes_nothing(site: Site, page: Page, tmp_path: Path) -> None:
    page.goto(f"{site.url}/projects/{NUMBER}/flags")
    flag = page.locator("input[name=flag]").first.get_attribute("value")
    elsewhere = tmp_path / "elsewhere.html"
    elsewhere.write_text(
        f'<form method="post" action="{site.url}/projects/{NUMBER}/flags"><input name="flag" value="{flag}">'
        '<input name="verdict" value="fine"><button>Win</button></form>')
    page.goto(elsewhere.as_uri())
    with page.expect_response(lambda it: it.request.method == "POST") as sent:
        page.click("button")
    assert sent.value.status == 403 and site.store.statistics.checks(KEY) == []


def test_keys_are_enough(site: Site, page: Page) -> None:
    page.goto(f"{site.url}/projects/{NUMBER}/annotators")
    page.wait_for_load_state("networkidle")  # on a busy machine the page may still be at work when a key is pressed
    page.bring_to_front()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#main$"))  # script of the test's own would be refused by the page's policy
    page.bring_to_front()
    expect(page.locator("main")).to_be_focused()
    heading = page.get_by_role("columnheader", name="Votes").get_by_role("link")
    heading.focus()
    page.keyboard.press("Enter")
    sorted_by = page.locator("th[aria-sort=descending]")
    expect(sorted_by).to_contain_text("Votes")
    expect(page.locator(":focus")).to_contain_text("Votes")  # the place is kept when the table is swapped
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Votes")
    page.go_back()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Votes")


def test_filters_and_live_jobs(site: Site, page: Page) -> None:
    page.goto(f"{site.url}/projects/{NUMBER}/flags")
    page.get_by_label("Reason").select_option("speed")
    expect(page.locator("caption")).to_have_text("30 flags, page 1 of 2")
    assert "reason=speed" in page.url
    site.store.jobs.enqueue(JobKind.TRAIN, KEY)
    job = site.store.jobs.claim("test", lease_s=60)
    assert job is not None
    site.store.jobs.heartbeat(job.id, "test", progress=0.4, note="epoch 9 of 20", lease_s=60)
    expect(page.locator("#jobs")).to_contain_text("epoch 9 of 20")
    site.store.jobs.finish(job.id, "test", figures={})
    expect(page.locator("#jobs")).not_to_contain_text("epoch 9 of 20")


def test_a_link_opens_its_task_in_label_studio(label_studio: LabelStudio, browser: Browser, tmp_path: Path) -> None:
    """The address that a flag shows opens exactly its task in a real Label Studio."""
    owner, (account, *_) = label_studio.owner, label_studio.annotators
    project = owner.create_project("Where links land", LABEL_CONFIG, maximum_annotations=2)
    texts = [f"Would you kindly look at case number {number}?" for number in range(1, 4)]
    tasks = owner.import_tasks(project, [{"data": {"text": text}} for text in texts])
    writer = Writer(tasks=3, key=f"{project}.1764288000", first=tasks[0])
    with serve(tmp_path, writer, label_studio_url=label_studio.url) as served:
        page = log_in(browser, label_studio, account)
        page.goto(f"{served.url}/projects/{project}/flags")
        page.locator(f"a.task:text-is('{tasks[1]}')").first.click()
        wait_for_text(page, texts[1])
        page.context.close()
