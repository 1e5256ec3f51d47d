"""The kinds of projects that `test_media` leaves out, in a real Label Studio: minutes, for `make e2e-all` alone.

Video with sound and text, taxonomy, number, several choices, choices on regions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests
from playwright.sync_api import Browser

from tests.e2e.kinds import (
    CHECKED,
    LABELLED,
    Kind,
    assert_each_is_predicted,
    assert_rendered,
    learned,
    polyvox_of,
    region,
)
from tests.e2e.polyvox import PATIENCE_S, Polyvox
from tests.e2e.server import LabelStudio
from tests.model.encoders.recordings import clip, tone

pytestmark = [pytest.mark.e2e, pytest.mark.all_kinds, pytest.mark.timeout(900)]

Data = dict[str, str | tuple[str, bytes]]


def scene(number: int, glad: bool) -> Data:
    """A video that grows bright or dark, a voice that is high or low, and words that say nothing of it."""
    rng = np.random.default_rng(number)
    steps = np.linspace(0, 60, 12) + rng.uniform(0, 20)
    hertz = float(rng.uniform(1500, 2500) if glad else rng.uniform(150, 300))
    greys = (150 + steps if glad else 100 - steps).astype(int).tolist()
    return {
        "video": (f"scene{number}.webm", clip(greys, form="webm", codec="libvpx")),
        "audio": (f"voice{number}.wav", tone(0.6, hertz, rate=16_000)),
        "text": f"Scene {number}: they talk about the weather.",
    }


def sighting(number: int, animal: bool) -> Data:
    what = ("A small dog barks at the gate", "Tall old oak trees stand in the park")[not animal]
    return {"text": f"{what}, seen on walk {number}."}


def parcel(number: int, heavy: bool) -> Data:
    what = ("A crate of iron bolts and lead pipes", "An envelope with one feather")[not heavy]
    return {"text": f"{what}, parcel {number}."}


def review(number: int, good: bool) -> Data:
    text = ("Delicious food and a friendly waiter", "Cold soup, rude staff and a dirty table")[not good]
    return {"text": f"{text}, table {number}."}


def claim(number: int, kind: bool) -> Data:
    text = ("Please take my hand, it is a lovely plan", "Nonsense, this plan is stupid and so are you")[not kind]
    return {"text": f"{text} ({number})."}


WHERE = {"start": 0, "end": 19}  # the first words of a claim


def span() -> list[dict[str, Any]]:
    """A region on the first words, as it is when it was taken over from a prediction."""
    value = {**WHERE, "labels": ["Claim"]}
    return [{"id": "s1", "from_name": "span", "to_name": "t", "type": "labels", "value": value, "origin": "prediction"}]


def marked(kind: bool) -> list[dict[str, Any]]:
    """The region, what its tone is, and a judgement of the whole."""
    tone = {**WHERE, "choices": ["Soft" if kind else "Harsh"]}
    return [
        *span(), {"id": "s1", "from_name": "tone", "to_name": "t", "type": "choices", "value": tone},
        region("mood", "t", "choices", {"choices": ["Glad" if kind else "Sad"]}),
    ]


EMOTION = Kind(
    name="emotion",
    title="Emotion in video, voice and words",
    config="""<View><Video name="v" value="$video"/><Audio name="a" value="$audio"/><Text name="t" value="$text"/>
<Choices name="emotion" toName="t"><Choice value="Joy"/><Choice value="Grief"/></Choices></View>""",
    task=scene,
    answer=lambda glad: [region("emotion", "t", "choices", {"choices": ["Joy" if glad else "Grief"]})],
    read=CHECKED,
    shown=lambda glad: ["Joy" if glad else "Grief"],
)
TAXONOMY = Kind(
    name="taxonomy",
    title="What was seen, in a taxonomy",
    config="""<View><Text name="t" value="$text"/><Taxonomy name="seen" toName="t" maxUsages="1">
<Choice value="Animal"><Choice value="Dog"/><Choice value="Bird"/></Choice>
<Choice value="Plant"><Choice value="Oak"/></Choice></Taxonomy></View>""",
    task=sighting,
    answer=lambda animal: [
        region("seen", "t", "taxonomy", {"taxonomy": [["Animal", "Dog"] if animal else ["Plant", "Oak"]]})
    ],
    read="[...document.querySelectorAll('.lsf-main-view .ant-select-selection-item')].map(e => e.innerText.trim())",
    shown=lambda animal: ["Dog" if animal else "Oak"],
)
NUMBER = Kind(
    name="number",
    title="How heavy, as a number",
    config="""<View><Text name="t" value="$text"/><Number name="weight" toName="t" min="0" max="10" step="1"/>
</View>""",
    task=parcel,
    answer=lambda heavy: [region("weight", "t", "number", {"number": 9 if heavy else 2})],
    read="[...document.querySelectorAll('.lsf-main-view input[type=number]')].map(e => e.value)",
    shown=lambda heavy: ["9" if heavy else "2"],
)
SEVERAL = Kind(
    name="several-choices",
    title="Several choices at once",
    config="""<View><Text name="t" value="$text"/><Choices name="about" toName="t" choice="multiple">
<Choice value="Food"/><Choice value="Service"/><Choice value="Praise"/><Choice value="Complaint"/></Choices></View>""",
    task=review,
    answer=lambda good: [
        region("about", "t", "choices", {"choices": ["Food", "Praise"] if good else ["Service", "Complaint"]})
    ],
    read=CHECKED,
    shown=lambda good: ["Food", "Praise"] if good else ["Service", "Complaint"],
)
REGIONS = Kind(
    name="regions",
    title="Choices on regions",
    config="""<View><Labels name="span" toName="t"><Label value="Claim"/></Labels><Text name="t" value="$text"/>
<Choices name="tone" toName="t" perRegion="true"><Choice value="Soft"/><Choice value="Harsh"/></Choices>
<Choices name="mood" toName="t"><Choice value="Glad"/><Choice value="Sad"/></Choices></View>""",
    task=claim,
    answer=marked,
    read=f"[...{CHECKED}, "
    "...[...document.querySelectorAll('.lsf-main-view .htx-highlight')].map(e => e.innerText.trim())]",
    shown=lambda kind: ["Glad" if kind else "Sad", "Please take my hand" if kind else "Nonsense, this plan"],
    given=lambda kind: span(),
)


@pytest.fixture(scope="module")
def polyvox(label_studio: LabelStudio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Polyvox]:
    with polyvox_of(label_studio, tmp_path_factory.mktemp("kinds")) as running:
        yield running


@pytest.mark.parametrize("kind", [EMOTION, TAXONOMY, NUMBER, SEVERAL], ids=lambda kind: kind.name)
def test_each_annotators_own_answer_is_predicted_and_rendered(
    label_studio: LabelStudio, polyvox: Polyvox, browser: Browser, kind: Kind, pictures: Path | None
) -> None:
    project, unlabelled = learned(label_studio, polyvox, kind)
    assert_each_is_predicted(label_studio, kind, unlabelled)
    assert_rendered(label_studio, browser, kind, project, unlabelled, pictures)


def test_choices_on_regions_are_compared_predicted_and_rendered(
    label_studio: LabelStudio, polyvox: Polyvox, browser: Browser, pictures: Path | None
) -> None:
    project, unlabelled = learned(label_studio, polyvox, REGIONS)
    assert_each_is_predicted(label_studio, REGIONS, unlabelled)
    assert_rendered(label_studio, browser, REGIONS, project, unlabelled, pictures)
    (said,) = [each["note"] for each in overview(polyvox, project)["notes"] if each["name"] == "tone"]
    assert f"{2 * LABELLED} votes" in said and "alpha is -" in said, said  # here both always differed


def overview(polyvox: Polyvox, project: int) -> dict[str, Any]:
    """What the project's overview says, once it holds all votes of the control that is predicted."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = requests.get(f"{polyvox.url}/api/projects/{project}", timeout=30)
        found = answer.json() if answer.ok else {"controls": []}
        if any(each["name"] == "mood" and each["votes"] == 2 * LABELLED for each in found["controls"]):
            return dict(found)
        assert time.monotonic() < deadline, f"not all votes are in the overview: {answer.text[:300]}"
        time.sleep(0.5)
