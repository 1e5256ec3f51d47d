"""Files that people really have, with the right figures, through the command line; each folder stands for a kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.backend.commands.crowd import Shell

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
CONTROLS = ("stars", "num", "tax", "pw", "topics")


def agreement(shell: Shell, path: Path, *more: str | Path) -> dict[str, dict[str, float | None]]:
    """Measure -> its row, with the number of votes under "votes"."""
    shown = shell("agreement", path, *more, "--out", shell.folder / "found.json")
    found = json.loads((shell.folder / "found.json").read_text())
    rows = {row["measure"]: row for row in found["overall"]}
    rows["votes"] = {"value": float(shown.partition("Agreement of ")[2].split()[0])}
    rows["classes"] = {row["class"]: row for row in found["classes"]}
    return rows


def value(rows: dict[str, dict[str, float | None]], measure: str) -> float:
    found = rows[measure]["value"]
    assert found is not None
    return found


def config(name: str) -> tuple[str, Path]:
    return "--label-config", CASES / name / "config.xml"


def test_numbers_stand_in_their_own_order(shell: Shell) -> None:
    rows = agreement(shell, CASES / "ordinal_scale" / "votes.csv", "--level", "ordinal")
    assert value(rows, "Krippendorff alpha (ordinal)") == pytest.approx(0.8638, abs=5e-5)
    assert list(rows["classes"]) == ["-2", "-1", "0", "1", "2"]


def test_a_rating_is_ordinal_with_its_config(shell: Shell) -> None:
    rows = agreement(shell, CASES / "rating_ordinal" / "export.json", *config("rating_ordinal"))
    assert value(rows, "Krippendorff alpha (ordinal)") == pytest.approx(0.858, abs=5e-4)


def test_a_class_that_nobody_gave_has_no_alpha(shell: Shell) -> None:
    rows = agreement(shell, CASES / "unused_class" / "export.json", *config("unused_class"))
    for name in ("Hate speech", "Threat"):
        assert rows["classes"][name]["votes"] == 0 and rows["classes"][name]["alpha"] is None
        assert "Nobody" in rows["classes"][name]["note"]  # type: ignore[operator]
    assert rows["classes"]["A"]["alpha"] is not None


@pytest.mark.parametrize("more", [(), config("control_named_like_data"), ("--control", "sentiment")],
                         ids=["bare", "config", "named"])
def test_a_control_named_like_a_column_of_the_data(shell: Shell, more: tuple[str | Path, ...]) -> None:
    rows = agreement(shell, CASES / "control_named_like_data" / "min.json", *more)
    assert value(rows, "votes") == 18 and value(rows, "percent agreement") == pytest.approx(0.778, abs=5e-4)


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("told", [True, False], ids=["config", "bare"])
def test_json_min_reads_every_control_as_the_json_export(shell: Shell, control: str, told: bool) -> None:
    folder = CASES / "json_min_all_controls"
    more = (*(config("json_min_all_controls") if told else ()), "--control", control)
    whole, flat = (agreement(shell, folder / name, *more) for name in ("full.json", "min.json"))
    assert value(whole, "votes") == value(flat, "votes") == 24
    assert whole == flat


def test_regions_belong_to_people_however_they_are_named(shell: Shell) -> None:
    for name in ("ids.json", "emails.json"):
        shell("agreement", CASES / "region_authors" / name, "--regions", "--out", shell.folder / "r.json")
        found = json.loads((shell.folder / "r.json").read_text())
        assert len(found["pairs"]) == 1 and found["overall"][0]["F1"] == pytest.approx(0.833, abs=5e-4)


@pytest.mark.parametrize("told", [True, False], ids=["config", "bare"])
def test_numbers_among_choices_are_classes(shell: Shell, told: bool) -> None:
    path = CASES / "choices_as_numbers" / "ints.json"
    rows = agreement(shell, path, *(config("choices_as_numbers") if told else ()))
    assert value(rows, "votes") == 10 and value(rows, "percent agreement") == pytest.approx(0.8)


def test_no_number_is_no_vote(shell: Shell) -> None:
    rows = agreement(shell, CASES / "nan_rating" / "export.json", *config("nan_rating"))
    assert value(rows, "votes") == 7


def test_an_infinite_weight_is_named_by_row_and_column(shell: Shell) -> None:
    said = shell("agreement", CASES / "infinite_weight" / "inf_weight.parquet", expect=1)
    assert "row " in said and "weight" in said


def test_the_newer_annotation_counts_whatever_its_time_looks_like(shell: Shell) -> None:
    shell("convert", CASES / "same_user_twice" / "epoch_times.json", shell.folder / "v.csv")
    rows = agreement(shell, CASES / "same_user_twice" / "epoch_times.json")
    assert value(rows, "percent agreement") == 1.0 and rows["classes"].keys() >= {"new"}
    assert rows["classes"]["new"]["votes"] == value(rows, "votes")
