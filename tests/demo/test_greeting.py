"""What the person at the keyboard reads of themselves, and when."""

from __future__ import annotations

from typing import Any

from demo.greeting import Greeter


def profile(
    votes: int, *, foreseen: int | None, accuracy: float = 0.75, given: float = 0.5, common: int = 20
) -> dict[str, Any]:
    predictability = None if foreseen is None else {"votes": foreseen, "accuracy": accuracy}
    leniency = [
        {"name": "Polite", "given": 1 - given, "expected": 0.7}, {"name": "Impolite", "given": given, "expected": 0.3},
    ]
    figures = {"votes": votes, "predictability": predictability}
    return {"controls": {"politeness": {"figures": figures, "leniency": leniency, "nearest": [{"common": common}]}}}


def test_after_12_30_and_60_labels_one_sentence_each() -> None:
    now: list[Any] = [None]
    greeter = Greeter(lambda: now[0])
    said = []
    for votes in (0, 3, 11, 12, 12, 13, 29, 31, 44, 61, 90):
        now[0] = profile(votes, foreseen=votes) if votes else None
        said.append(greeter.news())
    assert [bool(each) for each in said] == [False] * 3 + [True] + [False] * 3 + [True, False, True, False]
    assert said[3] == ("After 12 of your labels: of 12 that it had not learned from, Polyvox foresaw 9. You say "
                       "Impolite more often than the others would on the same messages (50% against 30%).")


def test_nothing_is_said_before_a_training_has_looked() -> None:
    now = [profile(12, foreseen=None)]
    greeter = Greeter(lambda: now[0])
    assert greeter.news() == ""
    now[0] = profile(13, foreseen=3)
    assert greeter.news() == ""
    now[0] = profile(14, foreseen=8)
    assert greeter.news().startswith("After 14 of your labels: of 8 ")


def test_their_commonest_label_stands_beside_it() -> None:
    now = profile(30, foreseen=24)
    (control,) = now["controls"].values()
    control["figures"]["foreseen"] = {"badge": "learned", "usual": "Neutral", "usual_accuracy": 0.5}
    assert "foresaw 18, where always saying Neutral is right 12 times (learned)." in Greeter(lambda: now).news()


def test_a_small_difference_is_none() -> None:
    greeter = Greeter(lambda: profile(12, foreseen=12, given=0.35))
    assert "about as often as the others" in greeter.news()


def test_nobody_is_compared_on_messages_that_nobody_else_labelled() -> None:
    said = Greeter(lambda: profile(12, foreseen=12, given=0.6, common=3)).news()
    assert said.endswith("foresaw 9. Nobody else has labelled enough of these messages to tell how your labels are "
                         "beside theirs."), "no share either: it would be one of those few messages"


def test_the_first_messages_have_no_labels_of_others_and_the_demo_goes_on() -> None:
    now = profile(12, foreseen=12)
    now["controls"]["politeness"] |= {"leniency": [], "nearest": []}  # as Polyvox has it without a task in common
    assert "Nobody else has labelled these messages" in Greeter(lambda: now).news()
