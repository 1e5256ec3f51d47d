"""Parts join into one report, whoever ran them and when; what was not run, and what was missed, is said."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.soak import faults, report
from tests.soak.__main__ import PARTS, main
from tests.soak.report import Judged, Part, markdown, table


def part(name: str, *held: bool) -> Part:
    judged = [Judged.of(f"thing {at}", at, "0", each) for at, each in enumerate(held)]
    return Part.made_now(name, judged, about="It was done.", tables=[table(("a",), [("b|c",)])], seconds=60.0)


def test_parts_of_a_folder_are_joined(tmp_path: Path) -> None:
    for each in (part("load", True, True), part("requests", True, False)):
        each.write(tmp_path)
    out = tmp_path / "out" / "soak.md"
    assert main(["report", str(tmp_path), "--out", str(out)]) == 1
    text = out.read_text()
    assert "| requests | **not held** | 1 of 2 |" in text and "| load | held | 2 of 2 |" in text
    assert text.index("## requests") < text.index("## load") and "Not run: hostile, faults, chaos, images." in text
    assert "b\\|c" in text and all(each.commit in text for each in report.read(tmp_path))


def test_a_part_that_judged_nothing_is_not_held() -> None:
    assert not part("load").held and "## load: **not held**" in markdown([part("load")])


def test_every_part_has_its_place() -> None:
    assert tuple(PARTS) == report.ORDER


def test_the_tests_of_a_finding_are_run_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = faults.run_findings(["M6", "L4"])
    assert found.held and [each.what.partition(":")[0] for each in found.judged] == ["M6", "L4"]
    monkeypatch.setattr(faults, "pytest_results", lambda names: {name: Counter(failed=1) for name in names[1:]})
    assert [each.found for each in faults.run_findings(["M6", "L4"]).judged] == ["1 failed", "1 did not run"] or \
        {each.held for each in faults.run_findings(["M6", "L4"]).judged} == {False}


def test_images_that_are_not_there_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLYVOX_IMAGES", raising=False)
    assert not faults.run_images().held
