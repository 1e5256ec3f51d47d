"""`gaps PROJECT` as a person runs it."""

import csv
import json

import pytest

from backend.cli import main
from tests.backend.services.politeness import LABEL_STUDIO_ID, texts
from tests.backend.services.workshop import workshop_of

NUMBER = str(LABEL_STUDIO_ID)


@pytest.fixture
def shop(template, tmp_path):
    made = workshop_of(template, tmp_path / "shop")
    made.features.texts(texts())
    made.close()
    return made


def run(shop, *arguments):
    return main(["gaps", *arguments], {"POLYVOX_DATA_DIR": str(shop.settings.data_dir), "COLUMNS": "200"})


def test_it_says_whom_to_ask_and_why(shop, tmp_path, capsys):
    assert run(shop, NUMBER, "--policy", "uncertainty", "--budget", "30", "--per-task", "2",
               "--out", str(tmp_path / "asks.json")) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "120 labels given, 60 predicted, 0 missing; 40 of 60 tasks are done, which saves 0 labels" in said
    assert "Nobody has labelled it yet." in said and "and 10 more, by uncertainty" in said
    asks = json.loads((tmp_path / "asks.json").read_text())
    assert asks["version"] == "r1" and len(asks["asks"]) == 30
    assert {each["task"] for each in asks["asks"]} <= set(range(41, 61))
    assert asks["controls"]["politeness"]["policy"] == "uncertainty"
    assert run(shop, NUMBER, "--out", str(tmp_path / "asks.csv")) == 0
    rows = list(csv.DictReader((tmp_path / "asks.csv").open()))
    assert len(rows) == 20 and rows[0]["why"].startswith("Such a vote")


def test_masked_names(shop, tmp_path, capsys):
    for name, options in (("a.csv", ("--mask-names",)), ("b.csv", ())):
        if not options:
            assert main(["set", NUMBER, "mask_names=yes"], {"POLYVOX_DATA_DIR": str(shop.settings.data_dir)}) == 0
        assert run(shop, NUMBER, "--out", str(tmp_path / name), *options) == 0
        rows = list(csv.DictReader((tmp_path / name).open()))
        assert rows and all(row["annotator"] == row["name"].lower().replace(" ", "-") for row in rows)
        assert {row["annotator"] for row in rows} <= {"annotator-1", "annotator-2", "annotator-3"}
        assert "Annotator " in capsys.readouterr().out


@pytest.mark.parametrize("arguments, said", [
    ((NUMBER, "--policies", "bald"), "--policies goes with a data set"),
    ((NUMBER, "--seeds", "5"), "--seeds goes with a data set"),
    ((NUMBER, "--control", "politeness"), "--control goes with a data set"),
    (("--simulate", "x.csv", "--policy", "bald"), "--policy goes with a project"),
    (("--simulate", "x.csv", "--per-task", "1"), "--per-task goes with a project"),
    (("--simulate", "x.csv", "--mask-names"), "--mask-names goes with a project"),
])
def test_options_of_the_other_mode_are_refused(shop, arguments, said, capsys):
    assert run(shop, *arguments) == 1
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("arguments", [
    (), (NUMBER, "--policy", "guess"), (NUMBER, "--budget", "-1"), (NUMBER, "--per-task", "0"), ("99",),
    (NUMBER, "--out", "asks.doc"), (NUMBER, "--simulate", "somewhere"),
])
def test_wrong_usage_is_a_sentence(shop, arguments, capsys):
    assert run(shop, *arguments) == 1
    assert capsys.readouterr().err.startswith("polyvox: ")
