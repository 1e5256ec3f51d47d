"""Makes docs/images/explanation-three-annotators.png: what matters to three simulated annotators on one picture.

The pictures are drawn here: on a plain ground stand, at random places, perhaps a red sun, perhaps a blue house, perhaps
a green tree. One annotator likes pictures with a sun, one those with a house, one those with a tree. Polyvox learns
from their labels alone, with its own encoder and training; then `explain` shows what each one's expected label rests
on, on a picture that nobody has labelled and that has all three. Takes a few minutes.

Usage: python scripts/draw_explanation.py [--pictures 160] [--out docs/images/explanation-three-annotators.png]
"""

from __future__ import annotations

import argparse
import base64
import io
import random
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from PIL import Image, ImageDraw

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from backend.bootstrap import Services, build_services  # noqa: E402  (the project is found by the line above)
from backend.records import Annotation, StoredVote, Task, TaskSnapshot  # noqa: E402
from backend.report.explanations.file import as_picture  # noqa: E402
from backend.report.names import Names  # noqa: E402
from backend.services.explanation.documents import TaskExplanation  # noqa: E402
from backend.settings import Settings  # noqa: E402
from model.data.spaces import Value  # noqa: E402
from model.data.votes import Provenance  # noqa: E402

KEY, CONTROL = "1.1764288000", "verdict"
CONFIG = f"""<View><Image name="picture" value="$picture"/><Choices name="{CONTROL}" toName="picture">
<Choice value="like"/><Choice value="pass"/></Choices></View>"""
LIKES = {"1": "sun", "2": "house", "3": "tree"}
NAMES = {"1": "likes suns", "2": "likes houses", "3": "likes trees"}
SIDE, CELL = 240, 80
START = datetime(2026, 11, 1, tzinfo=UTC)


def draw(things: list[str], rng: random.Random) -> bytes:
    """A picture with these things, each in a cell of its own of 3 x 3."""
    picture = Image.new("RGB", (SIDE, SIDE), (238, 234, 222))
    pen = ImageDraw.Draw(picture)
    for thing, cell in zip(things, rng.sample(range(9), len(things)), strict=True):
        x, y = cell % 3 * CELL + rng.randint(4, 12), cell // 3 * CELL + rng.randint(4, 12)
        if thing == "sun":
            pen.ellipse((x, y, x + 62, y + 62), fill=(208, 44, 40))
        elif thing == "house":
            pen.rectangle((x + 6, y + 26, x + 58, y + 64), fill=(46, 84, 190))
            pen.polygon([(x, y + 28), (x + 32, y), (x + 64, y + 28)], fill=(26, 48, 120))
        else:
            pen.rectangle((x + 27, y + 40, x + 37, y + 66), fill=(110, 72, 40))
            pen.polygon([(x + 4, y + 46), (x + 32, y), (x + 60, y + 46)], fill=(40, 136, 62))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def snapshots(count: int, rng: random.Random) -> Iterator[TaskSnapshot]:
    """Task 1 has all three things and no votes; the others have some and a vote of each annotator."""
    for number in range(1, count + 2):
        things = [thing for thing in LIKES.values() if number == 1 or rng.random() < 0.5]
        address = "data:image/png;base64," + base64.b64encode(draw(things, rng)).decode("ascii")
        task = Task(id=number, data={"picture": address}, updated_at=START)
        who = {} if number == 1 else {each: "like" if liked in things else "pass" for each, liked in LIKES.items()}
        votes = [vote(number, each, label) for each, label in who.items()]
        yield TaskSnapshot(task=task, annotations=[annotation(each) for each in votes], votes=votes)


def vote(task: int, annotator: str, label: str) -> StoredVote:
    return StoredVote(
        unit=str(task), task_id=task, annotation_id=task * 10 + int(annotator), annotator=annotator, control=CONTROL,
        value=Value.of_class(label), updated_at=START + timedelta(minutes=task), lead_time_s=3.0,
        provenance=Provenance.MANUAL, shown=False, control_arm=False,
    )


def annotation(given: StoredVote) -> Annotation:
    return Annotation(
        id=given.annotation_id, task_id=given.task_id, annotator=given.annotator, result=[], was_cancelled=False,
        ground_truth=False, created_at=given.updated_at, updated_at=given.updated_at, lead_time_s=3.0, imported=False,
        parent_prediction=None,
    )


def explained(services: Services, count: int) -> tuple[TaskExplanation, bytes]:
    services.store.projects.ensure(KEY, title="Pictures", label_config=CONFIG)
    services.store.tasks.take_over(KEY, list(snapshots(count, random.Random(7))))
    print(services.training.run(KEY, lambda share, note: print(f"{share:.0%} {note}", flush=True)).get("verdict"))
    project = services.store.projects.get(KEY)
    assert project is not None
    found = services.explanations.task(project, 1, annotators=tuple(LIKES), within_s=None, encode=True)
    names = Names(NAMES, mask=False)
    picture = as_picture(found, names, control=CONTROL, way="attribution", piece=0,
                         picture=lambda piece: services.explanations.picture(project, 1, piece))
    return found, picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=160, help="pictures that the annotators label")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "explanation-three-annotators.png")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        services = build_services(Settings(data_dir=Path(folder), control_arm_percent=0.0, train_threads=1))
        try:
            found, picture = explained(services, arguments.pictures)
        finally:
            services.close()
    arguments.out.write_bytes(picture)
    for each in found.annotators:
        answer = each.controls[CONTROL]
        assert answer.faithful is not None
        print(f"{NAMES[each.annotator]}: {answer.answer} {answer.probability:.2f}, leads chance by "
              f"{answer.faithful.attribution:+.3f} (own attention {answer.faithful.attention:+.3f}, pooled "
              f"{answer.faithful.pooled:+.3f})")


if __name__ == "__main__":
    main()
