"""What a brief training carries over from the version that it goes on from.

A hundred votes more say nothing new about how the base models of a control are pooled and calibrated, how strongly
content is shrunk, or which latent factors annotators share, as long as most of what these were fitted on is still
there, and they were fitted on most of what there is now (`model.ensemble.fingerprint`): of all votes, of each
annotator's, and of those on units with votes of others. So these parts stay as they are, with rows for annotators who
came since, and only what is said of content and of each annotator is learned again. Once all units are gone through,
everything is fitted afresh.

Invariants: a control whose space has changed, or whose earlier state lacks a part, is fitted afresh; an annotator who
came since is answered for as somebody unknown was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from model.base_models.base import rows_for
from model.base_models.registry import BASE_MODELS
from model.data.spaces import Space
from model.ensemble.control import ControlState
from model.ensemble.stack import Stack


def carry_over(
    earlier: Mapping[str, ControlState], spaces: Mapping[str, Space], people: int
) -> dict[str, ControlState]:
    """The states of the controls that can be carried over, for `people` annotators, the earlier ones first."""
    return {
        name: _widened(earlier[name], people) for name, space in spaces.items()
        if name in earlier and earlier[name].space == space and _whole(earlier[name])
    }


def _whole(state: ControlState) -> bool:
    """False for a checkpoint from before there were all parts."""
    fitted = state.base_models
    return state.gaps is not None and all(name in fitted and fitted[name].whole for name in BASE_MODELS)


def _widened(state: ControlState, people: int) -> ControlState:
    """The panel is not widened: it is made of the votes anew."""
    assert state.gaps is not None
    return replace(
        state, stack=_of_more(state.stack, people),
        base_models={name: fitted.widened(people) for name, fitted in state.base_models.items()},
        gaps=replace(
            state.gaps, share=None if state.gaps.share is None else rows_for(state.gaps.share, people),
            few=_of_more(state.gaps.few, people), many=_of_more(state.gaps.many, people),
        ),
    )


def _of_more(stack: Stack, people: int) -> Stack:
    return replace(stack, bias=rows_for(stack.bias, people))

