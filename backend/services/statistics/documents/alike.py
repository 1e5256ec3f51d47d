"""Who agrees with whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backend.services.statistics.documents.header import Header

MOST_IN_MATRIX = 20  # annotators; the most active ones


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementMatrix:
    """The most active annotators of one control, in an order in which those who agree stand together."""

    annotators: tuple[str, ...]
    common: tuple[tuple[int, ...], ...]  # [one][other] = questions that both answered; with several choices a task
    #                                      asks one question a class
    same: tuple[tuple[int, ...], ...]  # on how many of them they say the same
    left_out: int  # annotators of the control beyond the most that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """By control."""

    header: Header
    controls: Mapping[str, AgreementMatrix]
