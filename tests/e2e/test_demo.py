"""The demo as a person meets it: one command from nothing, two log-ins, Ctrl-C, and a second run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser, expect

from demo.client import Account, Client
from demo.label_studio import REPOSITORY, url
from demo.processes import Service, clean_env, free_port
from demo.sample import LABEL_CONFIG
from demo.sample import load as load_messages
from demo.showcase import showcases, truth_of
from demo.stage import SEED, TAB_TITLE
from demo.state import OWNER_EMAIL, State, load
from demo.watch import differences, status
from labelstudio.control_arm import in_control_arm
from tests.e2e.browser import (
    log_in,
    open_quick_view,
    open_stream,
    prediction_tabs,
    screenshot,
    selected_choice,
)
from tests.e2e.server import LabelStudio
from tests.e2e.test_site import complaints
from tests.e2e.test_site_of_a_project import all_pages_open, from_commands, links_land, the_annotators_are_right

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

FIRST_RUN_S = 900.0
SECOND_RUN_S = 60
PERCENT = 10.0


@dataclass(frozen=True, kw_only=True)
class Demo:
    """The running demo, and its Label Studio as the other tests see one."""

    label_studio: LabelStudio
    state: State
    you: Account  # the owner, who has labelled nothing


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "demo", *arguments]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(folder: Path) -> Iterator[Demo]:
    ports = ["--port", str(free_port()), "--polyvox-port", str(free_port())]
    env = clean_env(POLYVOX_DATA_DIR=str(folder), PYTHONUNBUFFERED="1")
    log = folder / "output.txt"
    service = Service("The demo", command(*ports), env=env, log=log, health="", cwd=REPOSITORY)
    with service:
        deadline = time.monotonic() + FIRST_RUN_S
        while "Press Ctrl-C" not in (log.read_text() if log.exists() else ""):
            assert service.running and time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        state = load(folder / "demo")
        address = url(state.label_studio_port)
        owner = Client(address, state.owner_token)
        you = Account(id=int(owner.call("GET", "/api/current-user/whoami")["id"]), email=OWNER_EMAIL,
                      password=state.password, token=state.owner_token, personal_token="")
        server = LabelStudio(url=address, service=service, owner=owner, annotators=tuple(state.annotators))
        yield Demo(label_studio=server, state=state, you=you)


def test_it_says_what_to_look_at_and_what_it_switched_off(demo: Demo) -> None:
    output = demo.label_studio.service.log.read_text()
    for said in ("ML_BLOCK_LOCAL_IP", "SSRF_PROTECTION_ENABLED", "for this demo only", "What to look at first",
                 "sure)", demo.state.polyvox_password,
                 demo.label_studio.url, demo.state.password, "simulated.ada@example.com", OWNER_EMAIL):
        assert said in output, said


def test_the_same_task_shows_two_annotators_two_labels_and_you_the_consensus(
    demo: Demo, browser: Browser, pictures: Path | None
) -> None:
    project, you = demo.state.project, demo.you
    found = differences(demo.label_studio.owner, project, demo.state.annotators, PERCENT)
    cases = showcases(found, truth_of(load_messages(), SEED))
    assert len(cases) == 3, "sure, true and different"
    output = demo.label_studio.service.log.read_text()
    assert all(f"&task={case.difference.task}" in output for case in cases)
    tabs = demo.label_studio.owner.call("GET", "/api/dm/views", params={"project": project})
    (first,) = (tab for tab in tabs if tab["data"].get("title") == TAB_TITLE)
    shown = demo.label_studio.owner.call("GET", "/api/tasks", params={"view": first["id"], "include": "id"})
    assert {task["id"] for task in shown["tasks"]} == {case.difference.task for case in cases}
    # "Label All Tasks" labels the tab that is open, and the first one opens: all messages.
    assert not tabs[0]["data"].get("filters", {}).get("items")
    case = next(each for each in cases if not in_control_arm(project, each.difference.task, str(you.id), PERCENT))
    best, (one, other) = case.difference, case.people
    account_of = {account.email: account for account in demo.state.annotators}
    people = [
        ("one-annotator", account_of[one], best.labels[one][0], "For you"),
        ("another-annotator", account_of[other], best.labels[other][0], "For you"),
        ("without-own-labels", you, best.consensus, "Consensus"),
    ]
    pages = {name: log_in(browser, demo.label_studio, account) for name, account, *_ in people}
    with demo.label_studio.tab_of_task(project, best.task) as tab:
        for name, account, label, _ in people:
            open_stream(pages[name], project, best.text, tab=tab)
            assert selected_choice(pages[name]) == label, account.email
    for name, account, label, title in people:
        open_quick_view(pages[name], project, best.task, best.text)
        assert selected_choice(pages[name]) == label, account.email
        assert [tab.partition(",")[0] for tab in prediction_tabs(pages[name])] == [title], account.email
        screenshot(pages[name], pictures if name == "one-annotator" else None, f"quick-view-{name}")
        pages[name].context.close()


def test_in_the_control_arm_nothing_is_suggested(demo: Demo, browser: Browser, pictures: Path | None) -> None:
    project = demo.state.project
    pairs = (
        (task, account) for task in demo.label_studio.owner.tasks(project, fields="all") if not task["annotations"]
        for account in demo.state.annotators if in_control_arm(project, task["id"], str(account.id), PERCENT)
    )
    task, account = next(pairs)
    assert any(each["model_version"].startswith("consensus@") for each in task["predictions"]), "nothing to withhold"
    page = log_in(browser, demo.label_studio, account)
    with demo.label_studio.tab_of_task(project, task["id"]) as tab:
        open_stream(page, project, task["data"]["text"], tab=tab)
        assert selected_choice(page) is None
    open_quick_view(page, project, task["id"], task["data"]["text"])
    assert selected_choice(page) is None
    assert prediction_tabs(page) == []
    screenshot(page, pictures, "quick-view-control-arm")
    page.context.close()


def test_polyvox_asks_for_a_password_and_has_nothing_to_warn_of(
    demo: Demo, browser: Browser, pictures: Path | None
) -> None:
    site, state = url(demo.state.polyvox_port), demo.state
    assert requests.get(site, timeout=10).status_code == 401
    now = status(site, state.project, state.polyvox_login)
    assert now is not None and now["problems"] == []
    everything = requests.get(
        site, auth=state.polyvox_login, headers={"Accept": "application/json"}, timeout=10).json()
    assert everything["problems"] == []
    page = log_in(browser, demo.label_studio, demo.you, polyvox=state.polyvox_login)
    page.goto(site)
    screenshot(page, pictures, "polyvox-first-page")
    page.context.close()


def test_the_site_of_its_project_says_what_identify_says(demo: Demo, browser: Browser, tmp_path: Path) -> None:
    server, project, site = demo.label_studio, demo.state.project, url(demo.state.polyvox_port)
    texts = {task["id"]: task["data"]["text"] for task in server.owner.tasks(project)}
    found = from_commands(server, tmp_path, project, LABEL_CONFIG)
    page = log_in(browser, server, demo.you, polyvox=demo.state.polyvox_login)
    said = complaints(page)
    all_pages_open(page, f"{site}/projects/{project}")
    the_annotators_are_right(page, site, project, found, demo.state.polyvox_login)
    assert said == []
    page.goto(f"{site}/projects/{project}/tasks")
    expect(page.locator("tbody th a.task")).not_to_have_count(0)
    for name in ("tasks", "flags"):
        links_land(page, f"{site}/projects/{project}/{name}", server.url, project, texts)
    page.context.close()


def test_ctrl_c_stops_everything_and_a_second_run_is_quick(demo: Demo, folder: Path) -> None:
    service, state = demo.label_studio.service, demo.state
    os.kill(service.pid, signal.SIGINT)
    deadline = time.monotonic() + 60
    while service.running:
        assert time.monotonic() < deadline, "the demo did not stop"
        time.sleep(0.1)
    assert "Everything is stopped" in service.log.read_text()
    for port in (state.label_studio_port, state.polyvox_port):
        assert free_port(port) == port, f"something still listens on {port}"
    ran = subprocess.run(
        command("--check"), env=clean_env(POLYVOX_DATA_DIR=str(folder)), cwd=REPOSITORY, capture_output=True, text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    ready = re.search(r"Ready after (\d+) s", ran.stdout)
    assert ready is not None and int(ready[1]) < SECOND_RUN_S, ran.stdout
    assert f"/projects/{state.project}/data" in ran.stdout, "the second run goes on with the same project"
