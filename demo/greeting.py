"""Greets the person at the keyboard with what was learned of them, after 12, 30 and 60 labels.

The figures are those of their own page in Polyvox: how many of their labels were foreseen by models that had not seen
them, and which label they give more often than the others would on the same messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import requests

from demo.watch import Login

MILESTONES = (12, 30, 60)
COMMON = 10  # messages that somebody else labelled too, from which on people are compared
CLEAR = 0.1  # a share of labels that differs from what was to be expected by less than this is not spoken of


class Greeter:
    """Says each greeting once. Cheap to ask often: it makes one request, and says nothing while nobody answers."""

    def __init__(self, fetch: Callable[[], Mapping[str, Any] | None]) -> None:
        """`fetch` returns the person's profile as Polyvox has it, None while there is none."""
        self._fetch = fetch
        self._said = 0  # labels at the last greeting

    def news(self) -> str:
        """A sentence, or "" when there is nothing new to say."""
        profile = self._fetch()
        controls: Sequence[Mapping[str, Any]] = list(profile["controls"].values()) if profile else []
        if not controls:
            return ""
        reached = max((each for each in MILESTONES if each <= controls[0]["figures"]["votes"]), default=0)
        foreseen = controls[0]["figures"]["predictability"]
        if reached <= self._said or not foreseen or foreseen["votes"] < reached / 2:
            return ""  # the next training will have looked at them
        self._said = reached
        return sentence(controls[0])


def profile_of(polyvox_url: str, project: int, annotator: int, login: Login) -> Mapping[str, Any] | None:
    """Somebody's profile in Polyvox; None while it has none of them or does not answer."""
    address = f"{polyvox_url}/api/projects/{project}/annotators/{annotator}"
    try:
        response = requests.get(address, auth=login, timeout=10)
        found: Mapping[str, Any] | None = response.json() if response.ok else None
    except (requests.RequestException, ValueError):
        return None
    return found


def sentence(control: Mapping[str, Any]) -> str:
    """What was learned of somebody, from the profile of one control."""
    figures = control["figures"]
    foreseen = figures["predictability"]
    right = round(foreseen["accuracy"] * foreseen["votes"])
    said = (f"After {figures['votes']} of your labels: of {foreseen['votes']} that it had not learned from, Polyvox "
            f"foresaw {right}{_beside(figures.get('foreseen') or {}, foreseen['votes'])}.")
    return f"{said} {_habit(control)}"


def _habit(control: Mapping[str, Any]) -> str:
    """How they use the labels; beside the others only where others labelled the same messages."""
    if not control["leniency"]:  # the first messages of the demo have no labels of others
        return "Nobody else has labelled these messages, so how your labels are beside theirs cannot be told yet."
    common = max((int(each["common"]) for each in control["nearest"]), default=0)
    apart = max(control["leniency"], key=lambda each: float(each["given"]) - float(each["expected"]))
    if common < COMMON:  # the shares are of the messages that others labelled too: of so few they are no figure
        return "Nobody else has labelled enough of these messages to tell how your labels are beside theirs."
    if apart["given"] - apart["expected"] >= CLEAR:
        return (f"You say {apart['name']} more often than the others would on the same messages "
                f"({apart['given']:.0%} against {apart['expected']:.0%}).")
    return "You use the labels about as often as the others would on the same messages."


def _beside(learned: Mapping[str, Any], votes: int) -> str:
    """What is right without any model, beside it; "" while Polyvox does not say."""
    share = learned.get("usual_accuracy")
    if share is None:
        return ""
    return f", where always saying {learned['usual']} is right {round(share * votes)} times ({learned['badge']})"
