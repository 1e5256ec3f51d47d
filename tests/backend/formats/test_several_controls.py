"""A folder with a file of annotations for each control, and the pictures that its tasks name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from backend.formats import open_dataset, save_dataset
from backend.formats.errors import FormatError
from backend.formats.pictures import PictureFiles, picture_field, picture_files
from model.data.spaces import Value
from model.data.votes import Vote, Votes
from model.errors import ContentError


def folder(path: Path, meta: Mapping[str, object], **files: list[tuple[str, str, str]]) -> Path:
    path.mkdir(exist_ok=True)
    names = sorted({task for rows in files.values() for task, _, _ in rows})
    tasks = [{"id": name, "data": {"image": f"images/{name}.jpg"}} for name in names]
    (path / "tasks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in tasks))
    for name, rows in files.items():
        lines = [json.dumps({"task": t, "annotator": a, "label": label}) for t, a, label in rows]
        (path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (path / "meta.json").write_text(json.dumps(meta))
    return path


CALM = [("1", "a", "low"), ("1", "b", "high"), ("2", "a", "mid")]
GREEN = [("1", "a", "high"), ("2", "b", "low")]
META = {"name": "walks", "classes": ["low", "mid", "high"], "label_level": "ordinal"}


def test_each_file_is_a_control_and_shares_the_order_of_classes(tmp_path: Path) -> None:
    found = open_dataset(folder(tmp_path / "set", META, annotations_calm=CALM, annotations_green=GREEN))
    assert found.votes.controls == ("calm", "green")
    assert len(found.votes.of_control("calm")) == 3 and len(found.votes.of_control("green")) == 2
    assert found.classes_of("calm") == found.classes_of("green") == ("low", "mid", "high")
    with pytest.raises(FormatError, match="several controls"):
        found.control()


def test_a_repeated_file_is_read_once_and_another_one_too(tmp_path: Path) -> None:
    repeated = folder(tmp_path / "set", META, annotations=CALM, annotations_calm=CALM)
    assert open_dataset(repeated).votes.controls == ("calm",)
    other = folder(tmp_path / "other", META, annotations=GREEN, annotations_calm=CALM)
    assert open_dataset(other).votes.controls == ("calm", "label")


def test_classes_belong_to_controls_that_use_them(tmp_path: Path) -> None:
    strange = [("1", "a", "oak"), ("2", "b", "elm")]
    found = open_dataset(folder(tmp_path / "set", META, annotations_calm=CALM, annotations_tree=strange))
    assert found.classes_of("calm") == ("low", "mid", "high") and found.classes_of("tree") == ("elm", "oak")


def test_a_folder_that_is_written_over_keeps_no_votes_of_before(tmp_path: Path) -> None:
    path = folder(tmp_path / "set", META, annotations_calm=CALM, annotations_green=GREEN)
    save_dataset(open_dataset(path), path, "folder")
    assert sorted(each.name for each in path.glob("*.jsonl")) == ["annotations.jsonl", "tasks.jsonl"]
    assert len(open_dataset(path).votes) == 5


class Lengths:
    """Encodes a file as its length; a file of one byte is no picture."""

    id, dim = "lengths", 1

    def encode(self, images: list[bytes]) -> list[object]:
        return [ContentError("The image is damaged.") if len(data) == 1 else np.full((1, 1), len(data), np.float16)
                for data in images]


def test_pictures_are_found_by_field_and_known_by_their_bytes(tmp_path: Path) -> None:
    path = folder(tmp_path / "set", META, annotations_calm=CALM)
    (path / "images").mkdir()
    (path / "images" / "1.jpg").write_bytes(b"abc")
    dataset = open_dataset(path)
    assert picture_field(dataset) == "image"
    with pytest.raises(FormatError, match=r"no picture images/2\.jpg, which the task 2 names"):
        picture_files(dataset, path, "image")
    (path / "images" / "2.jpg").write_bytes(b"abc")
    files = picture_files(dataset, path, "image")
    pictures = PictureFiles(files, Lengths())  # type: ignore[arg-type]
    assert pictures.keys["1"] == pictures.keys["2"]
    assert pictures.encode([pictures.keys["1"]])[0].item() == 3.0
    (path / "images" / "2.jpg").write_bytes(b"x")
    pictures = PictureFiles(files, Lengths())  # type: ignore[arg-type]
    with pytest.raises(FormatError, match=r"2\.jpg: The image is damaged\."):
        pictures.encode(list(pictures.keys.values()))


def test_a_picture_outside_the_folder_is_never_opened(tmp_path: Path) -> None:
    path = folder(tmp_path / "set", META, annotations_calm=CALM)
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    for named in ("../secret.jpg", str(tmp_path / "secret.jpg")):
        tasks = [{"id": name, "data": {"image": named}} for name in "12"]
        (path / "tasks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in tasks))
        with pytest.raises(FormatError, match="lies outside the data set"):
            picture_files(open_dataset(path), path, "image")


@pytest.mark.parametrize("named", ["a\u0000b", "x" * 5000])
def test_what_can_be_no_file_is_said_in_a_sentence(named: str, tmp_path: Path) -> None:
    dataset = SimpleNamespace(votes=Votes.from_votes([
        Vote(unit="1", annotator="a", control="c", value=Value.of_class("x"))]), content={"1": {"image": named}})
    with pytest.raises(FormatError, match="task 1"):
        picture_files(dataset, tmp_path, "image")  # type: ignore[arg-type]


def test_addresses_are_no_files() -> None:
    tasks = {"1": {"image": "https://example.org/a.png", "text": "x"}, "2": {"image": "b.png", "text": "y"}}
    assert picture_field(SimpleNamespace(content=tasks)) == ""  # type: ignore[arg-type]
