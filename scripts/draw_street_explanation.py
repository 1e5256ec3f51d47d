"""Makes docs/images/explanation-street.png: where three experts' queries look on a street that is drawn here.

The votes are those of three experts on photos of streets (a folder with annotations_CONTROL.jsonl and the photos; it
has no licence, so neither votes nor photos nor what was learned from them are part of this repository). Polyvox learns
its controls together, with its own encoder and training; then `explain` shows where each expert's query looks, on a
street that no expert has seen: `street_picture.py` draws it. Takes some minutes.

Usage: python scripts/draw_street_explanation.py --data FOLDER [--photos 600] [--control walkability]
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from backend.bootstrap import Services, build_services  # noqa: E402  (the project is found by the line above)
from backend.formats import Dataset, open_dataset  # noqa: E402
from backend.formats.pictures import picture_field, picture_files  # noqa: E402
from backend.records import Annotation, StoredVote, Task, TaskSnapshot  # noqa: E402
from backend.report.explanations.file import as_picture  # noqa: E402
from backend.report.names import Names  # noqa: E402
from backend.services.explanation.documents import TaskExplanation  # noqa: E402
from backend.settings import Settings  # noqa: E402
from model.data.spaces import Value  # noqa: E402
from model.data.votes import Provenance  # noqa: E402
from scripts.street_picture import street  # noqa: E402

KEY = "1.1764288000"
START = datetime(2026, 11, 1, tzinfo=UTC)


def config(controls: tuple[str, ...], classes: tuple[str, ...]) -> str:
    choices = "".join(f'<Choice value="{name}"/>' for name in classes)
    scales = "".join(f'<Choices name="{name}" toName="photo">{choices}</Choices>' for name in controls)
    return f'<View><Image name="photo" value="$photo"/>{scales}</View>'


def snapshots(dataset: Dataset, folder: Path, most: int) -> Iterator[TaskSnapshot]:
    """Task 1 is the street that is drawn here, without votes; the others are photos with all their votes."""
    yield TaskSnapshot(task=_task(1, street()), annotations=[], votes=[])
    votes, files = dataset.votes, picture_files(dataset, folder, picture_field(dataset))
    for number, unit in enumerate(sorted(files)[:most], start=2):
        rows = np.flatnonzero(votes.unit == votes.units.index(unit))
        given = [_vote(number, int(votes.annotator[row]) + 1, votes.controls[votes.control[row]],
                       votes.values[votes.value[row]]) for row in rows]
        people = {each.annotator: _annotation(each) for each in given}
        yield TaskSnapshot(task=_task(number, files[unit].read_bytes()), annotations=list(people.values()), votes=given)


def _task(number: int, data: bytes) -> Task:
    address = "data:image/jpeg;base64," + base64.b64encode(data).decode("ascii")
    return Task(id=number, data={"photo": address}, updated_at=START)


def _vote(task: int, annotator: int, control: str, value: Value) -> StoredVote:
    return StoredVote(
        unit=str(task), task_id=task, annotation_id=task * 10 + annotator, annotator=str(annotator), control=control,
        value=value, updated_at=START + timedelta(minutes=task), lead_time_s=3.0, provenance=Provenance.MANUAL,
        shown=False, control_arm=False,
    )


def _annotation(given: StoredVote) -> Annotation:
    return Annotation(
        id=given.annotation_id, task_id=given.task_id, annotator=given.annotator, result=[], was_cancelled=False,
        ground_truth=False, created_at=given.updated_at, updated_at=given.updated_at, lead_time_s=3.0, imported=False,
        parent_prediction=None,
    )


def explained(services: Services, arguments: argparse.Namespace) -> tuple[TaskExplanation, bytes]:
    """What the service says of task 1, and its overlays side by side."""
    dataset = open_dataset(arguments.data)
    controls = dataset.votes.controls
    services.store.projects.ensure(KEY, title="Streets", label_config=config(controls, dataset.classes_of(controls[0])))
    services.store.tasks.take_over(KEY, list(snapshots(dataset, arguments.data, arguments.photos)))
    print(services.training.run(KEY, lambda share, note: print(f"{share:.0%} {note}", flush=True)).get("verdict"))
    project = services.store.projects.get(KEY)
    assert project is not None
    people = tuple(str(number) for number in range(1, len(dataset.votes.annotators) + 1))
    found = services.explanations.task(project, 1, annotators=people, within_s=None, encode=True)
    names = Names({each: f"Expert {each}" for each in people}, mask=False)
    picture = as_picture(found, names, control=arguments.control, way=arguments.way, piece=0,
                         picture=lambda piece: services.explanations.picture(project, 1, piece))
    return found, picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the votes and the photos")
    parser.add_argument("--photos", type=int, default=600, help="photos that are learned from")
    parser.add_argument("--control", default="walkability", help="the scale that is shown")
    parser.add_argument("--way", default="attention", choices=("attention", "attribution"))
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "explanation-street.png")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        services = build_services(Settings(data_dir=Path(folder), control_arm_percent=0.0, train_threads=1))
        try:
            found, picture = explained(services, arguments)
        finally:
            services.close()
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
    Image.fromarray((pixels // 8 * 8 + 4).astype(np.uint8)).save(arguments.out, optimize=True)  # grain is large to keep
    for each in found.annotators:
        for control, answer in each.controls.items():
            assert answer.faithful is not None
            print(f"expert {each.annotator}, {control}: {answer.answer} {answer.probability:.2f}, leads chance by "
                  f"{answer.faithful.attribution:+.3f} (own attention {answer.faithful.attention:+.3f}, pooled "
                  f"{answer.faithful.pooled:+.3f})")


if __name__ == "__main__":
    main()
