"""The promises of the demo, measured as `python -m demo truth` measures them, with a smaller committee of networks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.console import Console

from backend.services.training import Training
from demo import __main__ as command
from demo import truth
from demo.sample import load
from demo.showcase import SURE, truth_of
from demo.stage import LABELLED_EACH, SEED
from model.config import LadderConfig

pytestmark = pytest.mark.timeout(900)  # half a minute on an idle core


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[truth.Found]:
    services = truth.services_over(tmp_path_factory.mktemp("truth"))
    small = Training(
        store=services.store, features=services.features, registry=services.registry, settings=services.settings,
        clock=services.clock, ladder=replace(LadderConfig.preset("polyvox"), folds=2, members_per_fold=1),
    )
    yield truth.measure(replace(services, training=small), number=1, seed=SEED)
    services.close()


def test_everybody_is_foreseen_where_they_have_not_labelled(found: truth.Found) -> None:
    untouched = len(load()) - LABELLED_EACH
    for row in found.rows:
        assert row.cells == untouched
        assert row.accuracy.mean >= 0.75, row
        assert row.gain.mean >= 0.15 and row.gain.low > 0.0, row
        assert row.accuracy.mean - row.gain.mean == pytest.approx(row.commonest)
    assert {row.holds for row in found.rows} == {True}


def test_three_showcases_are_sure_and_true(found: truth.Found) -> None:
    said = truth_of(load(), SEED)
    assert len(found.showcases) == 3
    for case in found.showcases:
        labels = {email: case.difference.labels[email] for email in case.people}
        assert len({label for label, _ in labels.values()}) == 2
        assert all(probability >= SURE for _, probability in labels.values())
        assert all(said[case.difference.text][email] == label for email, (label, _) in labels.items())


def test_most_differences_are_two_rules(found: truth.Found) -> None:
    assert found.differing["two rules"] > 5 * found.differing["a slip"] > 0
    assert found.causes["cannot-tell"] >= 0 and "careless" not in found.causes
    assert found.causes.get("slip", 0) < found.causes.get("habit", 0) + found.causes.get("readings", 0)


def test_the_audit_names_nobody(found: truth.Found) -> None:
    assert found.named == ()


def test_the_table_says_all_of_it(found: truth.Found, capsys: pytest.CaptureFixture[str]) -> None:
    truth.tell(found, Console(width=80))
    shown = capsys.readouterr().out
    for row in found.rows:
        name = row.email.removeprefix("simulated.").removesuffix("@example.com")
        assert name in shown and f"{row.accuracy.mean:.0%} [" in shown and f"{row.commonest:.0%}" in shown
    assert "3 of 3" in shown and "Named by the audit: " in shown
    assert "…" not in shown, "it fits a narrow terminal"


def test_a_number_of_seeds_below_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["truth", "--seeds", "0"])
    assert ended.value.code == 2
    assert "--seeds wants 1 or more" in capsys.readouterr().err
