"""What an annotator sees: Label Studio's front-end in a real Chromium."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, HttpCredentials, Page, sync_playwright

from demo.client import Account
from tests.e2e.server import LabelStudio

SETTLED_S = 1.0  # the editor fills itself in steps; what stays for this long is what the annotator sees
PATIENCE_S = 60.0

# Label Studio's pages ask nothing of the internet in this set-up; Chromium itself would.
FLAGS = (
    "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
    "--disable-domain-reliability", "--disable-sync", "--metrics-recording-only", "--no-first-run", "--no-pings",
)

_STATE = """() => {
  const editor = document.querySelector('.lsf-main-view');
  const boxes = editor ? [...editor.querySelectorAll('.lsf-choices input')] : [];
  return {
    text: editor ? [...editor.querySelectorAll('.lsf-richtext')].map(e => e.innerText).join(' ') : '',
    choices: boxes.length,
    chosen: boxes.filter(e => e.checked).map(e => e.name),
    tabs: [...document.querySelectorAll('.lsf-annotation-button')]
      .filter(e => e.querySelector('.lsf-annotation-button__userpic_prediction'))
      .map(e => e.querySelector('.lsf-annotation-button__name').innerText),
    submit: !!document.querySelector('button[name=submit], button[name=update]'),
  };
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser: the system's Chromium where there is one, else the one that Playwright installed."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def log_in(
    browser: Browser, label_studio: LabelStudio, account: Account, *, polyvox: tuple[str, str] | None = None
) -> Page:
    """A page of a fresh browser profile in which `account` is logged in; `polyvox`: user and password of its pages."""
    login = None if polyvox is None else HttpCredentials(username=polyvox[0], password=polyvox[1])
    context = browser.new_context(
        base_url=label_studio.url, viewport={"width": 1120, "height": 630}, http_credentials=login)
    cookies = label_studio.session(account).cookies
    context.add_cookies([{"name": name, "value": value, "url": label_studio.url} for name, value in cookies.items()])
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    return page


def open_stream(page: Page, project: int, text: str, *, tab: int | None = None) -> None:
    """Press "Label all tasks", of a Data Manager tab where one is given; returns when the editor shows `text`."""
    page.goto(f"/projects/{project}/data?labeling=1" + (f"&tab={tab}" if tab else ""))
    wait_for_text(page, text)


def open_quick_view(page: Page, project: int, task: int, text: str) -> None:
    """Open one task from the Data Manager; returns when the editor shows `text`."""
    page.goto(f"/projects/{project}/data?task={task}")
    wait_for_text(page, text)


def selected_choice(page: Page) -> str | None:
    """The label that is preselected in the editor, None where none is; waits until the editor has come to rest.

    Raises AssertionError when several are selected or the editor does not come up.
    """
    chosen = _settled(page)["chosen"]
    assert isinstance(chosen, list) and len(chosen) <= 1, chosen
    return str(chosen[0]) if chosen else None


def prediction_tabs(page: Page) -> list[str]:
    """Names of the prediction tabs above the editor (the label stream shows none)."""
    tabs = _settled(page)["tabs"]
    assert isinstance(tabs, list)
    return [str(tab) for tab in tabs]


def settled(page: Page, read: str, wanted: list[str]) -> list[str]:
    """What a JavaScript expression reads once it has read `wanted` for SETTLED_S, or when patience is over."""
    deadline, since = time.monotonic() + PATIENCE_S, time.monotonic()
    while True:
        found, now = list(page.evaluate(read)), time.monotonic()
        if found != wanted:
            since = now
        if now - since >= SETTLED_S or now > deadline:
            return found
        page.wait_for_timeout(100)


def screenshot(page: Page, folder: Path | None, name: str) -> None:
    """Keep a picture, when a folder for pictures was given."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / f"{name}.png")


def wait_for_text(page: Page, text: str) -> None:
    """Returns when Label Studio's editor shows a task with this text."""
    deadline = time.monotonic() + PATIENCE_S
    while text not in str(page.evaluate(_STATE)["text"]):
        assert time.monotonic() < deadline, f"the editor did not show the task; the page is {page.url}"
        page.wait_for_timeout(100)


def _settled(page: Page) -> dict[str, object]:
    """The editor's state once it has been complete and unchanged for SETTLED_S."""
    deadline = time.monotonic() + PATIENCE_S
    last: dict[str, object] = {}
    since = time.monotonic()
    while True:
        state = page.evaluate(_STATE)
        now = time.monotonic()
        if state != last:
            last, since = state, now
        elif state["choices"] and state["submit"] and now - since >= SETTLED_S:
            return dict(state)
        assert now < deadline, f"the editor did not come to rest: {state}"
        page.wait_for_timeout(100)
