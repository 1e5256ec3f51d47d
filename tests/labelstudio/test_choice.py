"""The choice of what an annotator sees; every case can be read off the version names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.prediction_names import parse
from labelstudio.choice import Candidate, decide, newest, parse_version


def candidates(*versions: str) -> list[Candidate]:
    """Candidates with ids 1, 2, ... in the order given."""
    return [Candidate(number, version) for number, version in enumerate(versions, start=1)]


@pytest.mark.parametrize(
    ("version", "parsed"),
    [
        ("annotator:7@r12", ("annotator:7", 12)),
        ("annotator:deleted:9@r3", ("annotator:deleted:9", 3)),
        ("consensus@r0", ("consensus", 0)),
        ("consensus", None),
        ("consensus@r", None),
        ("consensus@r1.5", None),
        ("my-consensus@r4", None),
        ("consensus@r4-old", None),
        ("consensus@r٣", None),
        ("consensus@r" + "9" * 10, None),
        ("consensus@r" + "9" * 4500, None),
        ("annotator:" + "7" * 201 + "@r1", None),
        ("annotator:7\n@r1", None),
        ("Annotator:7@r1", None),
        ("", None),
    ],
)
def test_only_the_names_that_polyvox_writes_are_its_own(version: str, parsed: tuple[str, int] | None) -> None:
    assert parse_version(version) == parsed


def test_version_numbers_are_compared_as_numbers_and_equal_ones_by_id() -> None:
    stored = candidates("consensus@r9", "consensus@r10", "consensus@r10", "consensus@r2")
    assert newest(stored, "consensus") == Candidate(3, "consensus@r10")
    assert newest(reversed(stored), "consensus") == Candidate(3, "consensus@r10")


def test_ids_of_annotators_are_compared_whole() -> None:
    stored = candidates("annotator:12@r9", "annotator:21@r9", "annotator:1@r2", "consensus@r9")
    assert decide([], stored, "1", withheld=False).ids == (3,)
    assert decide([], stored, "2", withheld=False).ids == (4,)


def test_own_prediction_comes_before_a_newer_consensus() -> None:
    stored = candidates("annotator:5@r3", "consensus@r12")
    decision = decide(stored, stored, "5", withheld=False)
    assert (decision.ids, decision.reason) == ((1,), "own")


def test_without_an_own_prediction_only_the_newest_consensus_is_left() -> None:
    served = candidates("annotator:5@r3", "consensus@r2", "gpt", "consensus@r3")
    decision = decide(served, served, "6", withheld=False)
    assert (decision.ids, decision.reason) == ((4,), "consensus")


@pytest.mark.parametrize("all_tabs", [False, True])
def test_withheld_shows_nothing_at_all(all_tabs: bool) -> None:
    served = candidates("annotator:5@r3", "gpt", "consensus@r3")
    decision = decide(served, served, "5", withheld=True, all_tabs=all_tabs)
    assert (decision.ids, decision.reason) == ((), "withheld")


def test_other_tools_are_left_alone_where_polyvox_has_nothing_for_the_annotator() -> None:
    served = candidates("gpt", "annotator:5@r3", "", "consensus-of-another-tool")
    decision = decide(served, [], "6", withheld=False)
    assert (decision.ids, decision.reason) == ((1, 3, 4), "none")
    assert decide(served, [], "6", withheld=True).ids == (1, 3, 4), "nothing of Polyvox's is there to be withheld"


def test_all_tabs_keeps_the_newest_of_each_and_puts_the_chosen_one_last() -> None:
    served = candidates(
        "annotator:5@r3", "annotator:6@r2", "annotator:6@r3", "gpt", "consensus@r3", "annotator:5@r2", "annotator:7@r1"
    )
    assert decide(served, served, "5", withheld=False, all_tabs=True).ids == (3, 4, 7, 1)
    assert decide(served, served, "8", withheld=False, all_tabs=True).ids == (1, 3, 4, 7, 5)


names = st.sampled_from(["annotator:1", "annotator:12", "annotator:2", "consensus", "gpt"])
versions = st.builds(lambda name, number: f"{name}@r{number}", names, st.integers(0, 30))


@given(st.lists(versions, max_size=12), st.sampled_from(["1", "2", "12", "3"]), st.booleans())
def test_nobody_ever_sees_the_predicted_label_of_somebody_else(
    served_versions: list[str], annotator: str, withheld: bool
) -> None:
    served = candidates(*served_versions)
    version_of = dict(served)
    shown = [version_of[number] for number in decide(served, served, annotator, withheld=withheld).ids]
    mine = f"annotator:{annotator}@"
    assert not [name for name in shown if name.startswith("annotator:") and not name.startswith(mine)]
    ours = [name for name in shown if not name.startswith("gpt")]
    assert len(ours) <= 1
    assert not (ours and len(shown) > 1), "another tool's prediction must not stand beside ours"


names = st.one_of(
    st.text(max_size=30),
    st.builds("{}@r{}".format, st.one_of(st.just("consensus"), st.text(max_size=12).map("annotator:{}".format)),
              st.one_of(st.integers(0, 10**11), st.text(alphabet="0123456789٣", max_size=12))),
)


@given(names)
def test_polyvox_itself_reads_names_by_the_same_grammar(version: str) -> None:
    here, there = parse_version(version), parse(version)
    assert (here is None) == (there is None)
    if here is not None and there is not None:
        assert here == ("consensus" if there.annotator is None else f"annotator:{there.annotator}", there.number)
