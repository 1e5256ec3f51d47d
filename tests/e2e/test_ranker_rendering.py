"""A predicted order of items renders in a real Label Studio, whole and in its order."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from backend.labeling import parse_config
from labelstudio.control_arm import in_control_arm
from model.data.spaces import Value, ValueKind
from tests.e2e.browser import log_in, settled
from tests.e2e.conftest import CONTROL_ARM_PERCENT
from tests.e2e.server import LabelStudio

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
CONFIG = """<View><Text name="t" value="$text"/><List name="answers" value="$items" title="Answers"/>
<Ranker name="rank" toName="answers"/></View>"""
ITEMS = [{"id": name, "title": f"Answer {name}"} for name in ("one", "two", "three", "four")]
SHOWN = """() => [...document.querySelectorAll('.htx-ranker-item')].map(e => e.innerText.trim().split(/\\s+/)[1])"""


def test_an_order_is_shown(label_studio: LabelStudio, browser: Browser, pictures: Path | None) -> None:
    owner = label_studio.owner
    project = owner.create_project("Orders", CONFIG)
    data = {"text": "Which answer is best?", "items": ITEMS}
    tasks = owner.import_tasks(project, [{"data": data} for _ in range(8)])
    who = label_studio.annotators[0]
    task = next(each for each in tasks if not in_control_arm(project, each, str(who.id), CONTROL_ARM_PERCENT))
    (control,) = parse_config(CONFIG).controls
    value = Value(ValueKind.RANKING, (("three",), ("one",), ("four",)))
    owner.call("POST", f"/api/projects/{project}/import/predictions", json=[
        {"task": task, "result": control.encode(value, 0.8, data), "score": 0.8, "model_version": "consensus@r1"}])
    page = log_in(browser, label_studio, who)
    page.goto(f"/projects/{project}/data?task={task}")
    page.wait_for_selector(".htx-ranker-item")
    found = settled(page, SHOWN, ["three", "one", "four", "two"])
    assert found == ["three", "one", "four", "two"]
    if pictures is not None:
        page.screenshot(path=pictures / "ranker.png")
