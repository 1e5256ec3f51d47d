"""Whatever breaks in the middleware, annotators get Label Studio's own answer, and the log gets one message."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from demo.label_studio import QUIET, REPOSITORY, find_program
from demo.processes import clean_env
from tests.e2e import server as running
from tests.e2e.conftest import CACHE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    data = tmp_path_factory.mktemp("broken") / "data"
    shutil.copytree(running.template(CACHE), data)
    env = clean_env(
        DJANGO_SETTINGS_MODULE="labelstudio.polyvox_settings", PYTHONPATH=str(REPOSITORY),
        LABEL_STUDIO_BASE_DATA_DIR=str(data), POLYVOX_CONTROL_ARM_PERCENT="0",
    ) | QUIET
    script = Path(__file__).with_name("broken_middleware.py")
    ran = subprocess.run(
        [find_program().with_name("python"), str(script), running.ANNOTATORS[0], running.PASSWORD],
        env=env, cwd=data, capture_output=True, text=True, timeout=300,
    )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("OUTCOME ")]
    assert lines, ran.stderr[-3000:]
    decoded: dict[str, Any] = json.loads(lines[0].removeprefix("OUTCOME "))
    return decoded


def own_only(answer: dict[str, Any]) -> bool:
    return answer["status"] == 200 and len(answer["versions"]) == 1 and answer["versions"] != ["consensus@r1"]


def test_the_test_itself_sees_a_working_middleware(outcome: dict[str, Any]) -> None:
    assert own_only(outcome["healthy"]) and own_only(outcome["healed"])
    assert 'desc="own"' in outcome["healthy"]["timing"]


@pytest.mark.parametrize("kind", ["broken query", "broken rendering"])
def test_label_studios_own_answer_is_served_whole(outcome: dict[str, Any], kind: str) -> None:
    for answer in outcome[kind]:
        assert answer["status"] == 200 and answer["whole"]
        assert len(answer["versions"]) == 3
        assert 'desc="failed"' in answer["timing"]


def test_each_kind_of_failure_is_logged_once_with_its_traceback(outcome: dict[str, Any]) -> None:
    assert len(outcome["messages"]) == 2, outcome["messages"]
    assert all(text.endswith("+traceback") for text in outcome["messages"])
