"""A predicted number, with its interval as a note, renders in a real Label Studio."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from backend.labeling import parse_config
from labelstudio.control_arm import in_control_arm
from model.data.spaces import Value
from tests.e2e.browser import log_in
from tests.e2e.conftest import CONTROL_ARM_PERCENT
from tests.e2e.server import LabelStudio

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
CONFIG = """<View><Text name="t" value="$text"/><Number name="price" toName="t" min="0" max="100"/>
<Rating name="stars" toName="t"/></View>"""


def test_a_number_with_a_note_is_shown(label_studio: LabelStudio, browser: Browser, pictures: Path | None) -> None:
    owner = label_studio.owner
    project = owner.create_project("Numbers", CONFIG)
    tasks = owner.import_tasks(project, [{"data": {"text": f"Jug {number}."}} for number in range(8)])
    who = label_studio.annotators[0]
    task = next(each for each in tasks if not in_control_arm(project, each, str(who.id), CONTROL_ARM_PERCENT))
    price, stars = parse_config(CONFIG).controls
    (number,) = price.encode(Value.of_number(42.5), 0.6)
    result = [{**number, "meta": {"text": ["80% interval: 30 to 55"]}}, *stars.encode(Value.of_class("3"), 0.8)]
    owner.call("POST", f"/api/projects/{project}/import/predictions", json=[
        {"task": task, "result": result, "score": 0.6, "model_version": "consensus@r1"}])
    page = log_in(browser, label_studio, who)
    page.goto(f"/projects/{project}/data?task={task}")
    page.wait_for_function("() => document.querySelectorAll('.lsf-main-view .ant-rate-star-full').length === 3")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.lsf-main-view input')].some(e => e.value === '42.5')")
    if pictures is not None:
        page.screenshot(path=pictures / "number.png")
