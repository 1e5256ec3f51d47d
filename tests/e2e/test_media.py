"""Images, sounds and pairs in a real Label Studio: annotators judge, Polyvox learns each of them, predictions render.

The other kinds that people annotate are in `test_all_kinds`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from tests.e2e.kinds import CHECKED, Kind, assert_each_is_predicted, assert_rendered, learned, polyvox_of, region
from tests.e2e.polyvox import Polyvox
from tests.e2e.server import LabelStudio
from tests.model.encoders.recordings import tone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


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


def pair(number: int, first: bool) -> dict[str, str | tuple[str, bytes]]:
    kind, rude = f"Thank you so much, number {number}.", f"Shut up, number {number}, you fool."
    return {"one": kind if first else rude, "two": rude if first else kind}


IMAGE = Kind(
    name="pictures",
    title="Pictures with two ratings",
    config="""<View><Image name="img" value="$image"/><Rating name="light" toName="img" maxRating="4"/>
<Choices name="mood" toName="img" choice="multiple"><Choice value="Warm"/><Choice value="Cold"/><Choice value="Calm"/>
</Choices></View>""",
    task=picture,
    answer=lambda bright: [
        region("light", "img", "rating", {"rating": 4 if bright else 1}),
        region("mood", "img", "choices", {"choices": ["Warm", "Calm"] if bright else ["Cold"]}),
    ],
    read=f"['' + document.querySelectorAll('.lsf-main-view .ant-rate-star-full').length, ...{CHECKED}]",
    shown=lambda bright: ["4", "Warm", "Calm"] if bright else ["1", "Cold"],
)
AUDIO = Kind(
    name="sounds",
    title="Sounds with choices",
    config="""<View><Audio name="a" value="$audio"/><Choices name="pitch" toName="a"><Choice value="High"/>
<Choice value="Low"/></Choices></View>""",
    task=sound,
    answer=lambda high: [region("pitch", "a", "choices", {"choices": ["High" if high else "Low"]})],
    read=CHECKED,
    shown=lambda high: ["High" if high else "Low"],
)
PAIR = Kind(
    name="pairs",
    title="Pairs of texts",
    config="""<View><Pairwise name="better" toName="one,two"/><View style="display: flex">
<Text name="one" value="$one"/><Text name="two" value="$two"/></View></View>""",
    task=pair,
    answer=lambda first: [region("better", "better", "pairwise", {"selected": "left" if first else "right"})],
    read="""[...document.querySelectorAll('.lsf-main-view .border-primary-border-subtle')].map(
e => e.innerText.includes('Thank you') ? 'kind' : 'rude')""",
    shown=lambda first: ["kind"],  # who answers as the sorts are made prefers the kind one, wherever it stands
)


@pytest.fixture(scope="module")
def polyvox(label_studio: LabelStudio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Polyvox]:
    with polyvox_of(label_studio, tmp_path_factory.mktemp("media")) as running:
        yield running


@pytest.mark.parametrize("kind", [IMAGE, AUDIO, PAIR], ids=lambda kind: kind.title)
def test_each_annotators_own_answer_is_predicted_and_rendered(
    label_studio: LabelStudio, polyvox: Polyvox, browser: Browser, kind: Kind, pictures: Path | None
) -> None:
    project, unlabelled = learned(label_studio, polyvox, kind)
    assert_each_is_predicted(label_studio, kind, unlabelled)
    assert_rendered(label_studio, browser, kind, project, unlabelled, pictures)
