"""What is written appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.formats.atomic import whole_file, whole_folder


def test_a_file_that_breaks_off_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(RuntimeError), whole_file(path) as aside:
        aside.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with whole_file(path) as aside:
        aside.write_text("new")
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_folder_keeps_what_is_not_its_own_and_loses_what_is_stale(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "x"
    with whole_folder(folder, ("votes", "gold")) as aside:
        (aside / "votes").write_text("1")
        (aside / "gold").write_text("1")
    (folder / "mine").write_text("keep")
    with pytest.raises(RuntimeError), whole_folder(folder, ("votes", "gold")) as aside:
        (aside / "votes").write_text("half")
        raise RuntimeError
    assert (folder / "votes").read_text() == "1"
    with whole_folder(folder, ("votes", "gold")) as aside:
        (aside / "votes").write_text("2")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"votes": "2", "mine": "keep"}
    assert list(folder.parent.iterdir()) == [folder]
