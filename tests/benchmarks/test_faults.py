"""The benchmark of faults, in small: hardly a project without faults names anybody, planted faults are named."""

from __future__ import annotations

from collections import Counter

from benchmarks import faults


def test_projects_without_faults_name_hardly_anybody_and_say_so():
    rows = [faults.without_faults(seed) for seed in range(500, 516)]
    assert sum(bool(row["named"]) for row in rows) <= 2
    assert sum(row["judged"] for row in rows) > 100
    described = sum((row["described"] for row in rows), Counter())
    people = sum((row["roles"] for row in rows), Counter())
    assert described["newcomer"] == 0 and described["ordinary"] < 0.15 * people["ordinary"]
    grown = faults.grown(510)
    planted = [faults.planted(seed) for seed in range(30_000, 30_004)]
    people = [each for row in planted for each in row["people"]]
    assert sum(each[1] != "none" for each in people if each[0] in faults.NAMED) >= 16  # of 20
    assert sum(each[1] != "none" for each in people if each[0] not in faults.NAMED) <= 1
    page = faults.report({"without": rows, "grown": [grown], "planted": planted, "real": {}, "command": "",
                          "machine": {"made": "2026-11-29T00:00:00"}})
    assert "| now, looked at once |" in page and "| recall of all |" in page and "not measured" in page


def test_intervals_are_exact():
    assert faults.interval(0, 200) == "0 of 200: 0.0 % (0.0 to 1.8)"
    assert faults.interval(5, 100) == "5 of 100: 5.0 % (1.6 to 11.3)"
