"""Images, sounds and pairs in a real Label Studio: annotators judge, Polyvox learns each of them, predictions render.

Two annotators see the same files and answer by opposite rules, so a model of the average could not tell them apart.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from demo.client import Client
from labelstudio.control_arm import in_control_arm
from tests.e2e.browser import log_in
from tests.e2e.conftest import CONTROL_ARM_PERCENT
from tests.e2e.polyvox import Polyvox, serve
from tests.e2e.server import LabelStudio
from tests.model.encoders.recordings import tone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

LABELLED, OPEN = 32, 4
SETTINGS = {
    "POLYVOX_TRAIN_AFTER_VOTES": "10000", "POLYVOX_TRAIN_AFTER_QUIET_S": "4", "POLYVOX_CONSENSUS_EVERY_S": "1",
    "POLYVOX_RECONCILE_EVERY_S": "10",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of project: what it shows, how a task is made for one of two sorts, and how a sort is answered."""

    title: str
    config: str
    task: Callable[[int, bool], tuple[str, bytes] | dict[str, str]]  # (number, sort) -> file, or data of a task
    answer: Callable[[bool], list[dict[str, Any]]]
    selected: str  # CSS of what the editor marks as selected
    marks: Callable[[bool], int]  # how many of them there are when the answer is rendered


def picture(number: int, bright: bool) -> tuple[str, bytes]:
    rng = np.random.default_rng(number)
    pixels = rng.integers(190, 255, (48, 48, 3)) if bright else rng.integers(0, 60, (48, 48, 3))
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return f"picture{number}.png", file.getvalue()


def sound(number: int, high: bool) -> tuple[str, bytes]:
    rng = np.random.default_rng(number)
    hertz = float(rng.uniform(1500, 2500) if high else rng.uniform(150, 300))
    return f"sound{number}.wav", tone(0.6, hertz, rate=16_000)


def pair(number: int, first: bool) -> dict[str, str]:
    kind, rude = f"Thank you so much, number {number}.", f"Shut up, number {number}, you fool."
    return {"one": kind if first else rude, "two": rude if first else kind}


def region(name: str, to_name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"{name}1", "from_name": name, "to_name": to_name, "type": kind, "value": value}


IMAGE = Kind(
    title="Pictures with two ratings",
    config="""<View><Image name="img" value="$image"/><Rating name="light" toName="img" maxRating="4"/>
<Choices name="mood" toName="img" choice="multiple"><Choice value="Warm"/><Choice value="Cold"/><Choice value="Calm"/>
</Choices></View>""",
    task=picture,
    answer=lambda bright: [
        region("light", "img", "rating", {"rating": 4 if bright else 1}),
        region("mood", "img", "choices", {"choices": ["Warm", "Calm"] if bright else ["Cold"]}),
    ],
    selected=".lsf-main-view .ant-rate-star-full",
    marks=lambda bright: 4 if bright else 1,
)
AUDIO = Kind(
    title="Sounds with choices",
    config="""<View><Audio name="a" value="$audio"/><Choices name="pitch" toName="a"><Choice value="High"/>
<Choice value="Low"/></Choices></View>""",
    task=sound,
    answer=lambda high: [region("pitch", "a", "choices", {"choices": ["High" if high else "Low"]})],
    selected=".lsf-main-view .lsf-choices input:checked",
    marks=lambda high: 1,
)
PAIR = Kind(
    title="Pairs of texts",
    config="""<View><Pairwise name="better" toName="one,two"/><View style="display: flex">
<Text name="one" value="$one"/><Text name="two" value="$two"/></View></View>""",
    task=pair,
    answer=lambda first: [region("better", "better", "pairwise", {"selected": "left" if first else "right"})],
    selected=".lsf-main-view .border-primary-border-subtle",
    marks=lambda first: 1,
)


@pytest.fixture(scope="module")
def polyvox(label_studio: LabelStudio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Polyvox]:
    with serve(label_studio, tmp_path_factory.mktemp("media"), SETTINGS, 0.0) as running:
        yield running


def upload(owner: Client, project: int, tasks: Sequence[tuple[str, bytes] | dict[str, str]]) -> list[int]:
    """Tasks of a project, as a person makes them: files by the import form, texts as JSON."""
    if isinstance(tasks[0], dict):
        return owner.import_tasks(project, [{"data": data} for data in tasks])
    for name, data in tasks:  # one by one, so that the order of the ids is that of the files
        owner.call("POST", f"/api/projects/{project}/import", files={"file": (name, data)})
    return owner.task_ids(project)


def answers(result: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """control -> what is answered, whatever the order of choices."""
    return {one["from_name"]: sorted(map(str, np.ravel(next(iter(one["value"].values()))))) for one in result}


@pytest.mark.parametrize("kind", [IMAGE, AUDIO, PAIR], ids=lambda kind: kind.title)
def test_each_annotators_own_answer_is_predicted_and_rendered(
    label_studio: LabelStudio, polyvox: Polyvox, browser: Browser, kind: Kind, pictures: Path | None
) -> None:
    owner = label_studio.owner
    project = owner.create_project(kind.title, kind.config, maximum_annotations=5)
    sorts = [bool(number % 2) for number in range(LABELLED + OPEN)]
    tasks = upload(owner, project, [kind.task(number, sort) for number, sort in enumerate(sorts)])
    assert len(tasks) == LABELLED + OPEN
    owner.add_ml_backend(project, polyvox.url, "Polyvox")
    same, opposite = label_studio.annotators[:2]
    clients = [(label_studio.as_annotator(same), False), (label_studio.as_annotator(opposite), True)]
    for task, sort in list(zip(tasks, sorts, strict=True))[:LABELLED]:
        for client, turned in clients:  # in turns, so that an early version knows both
            client.annotate(task, kind.answer(sort != turned))
    polyvox.wait_for_delivery(project, "r1")

    hits, asked = 0, 0
    for task, sort in list(zip(tasks, sorts, strict=True))[LABELLED:]:
        stored = {each["model_version"]: each for each in owner.call("GET", f"/api/tasks/{task}")["predictions"]}
        for account, turned in ((same, False), (opposite, True)):
            expected = answers(kind.answer(sort != turned))
            found = answers(stored[f"annotator:{account.id}@r1"]["result"])
            assert set(found) <= set(expected)
            asked += len(expected)
            hits += sum(found.get(name) == answer for name, answer in expected.items())
    assert hits >= 0.8 * asked, f"{hits} of {asked} answers are predicted as each annotator would give them"
    # What is stored is also rendered: in the quick view of a task that is not in this annotator's control arm.
    shown, sort = next(
        (task, sort) for task, sort in list(zip(tasks, sorts, strict=True))[:LABELLED - 1 : -1]
        if not in_control_arm(project, task, str(same.id), CONTROL_ARM_PERCENT)
    )
    page = log_in(browser, label_studio, same)
    page.goto(f"/projects/{project}/data?task={shown}")
    expected = kind.marks(sort)
    page.wait_for_function("([css, n]) => document.querySelectorAll(css).length === n", arg=[kind.selected, expected])
    if pictures is not None:
        page.screenshot(path=pictures / f"media-{kind.title.split()[0].lower()}.png")
