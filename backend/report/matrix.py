"""The matrix of agreement: who gives the same labels as whom, for a heat map that is a table as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.services.statistics.documents import AgreementMatrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Two annotators; `share` is None where they share no task, or are the same one."""

    other: str
    common: int
    same: int
    share: float | None
    step: int  # of the colour, 1..10; 0 where nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One annotator beside all others."""

    annotator: str
    cells: Sequence[Cell]


def rows_of(matrix: AgreementMatrix | None) -> list[Row]:
    """In the document's order; [] where there are no two annotators. Colours span the shares that there are, so that
    differences are seen where all agree well."""
    if matrix is None or len(matrix.annotators) < 2:
        return []
    people = range(len(matrix.annotators))
    shares = {(one, other): matrix.same[one][other] / matrix.common[one][other]
              for one in people for other in people if one != other and matrix.common[one][other]}
    low, high = min(shares.values(), default=0.0), max(shares.values(), default=1.0)
    low = min(low, high - 0.2)  # a crowd that agrees alike is not made to look divided
    return [
        Row(annotator=matrix.annotators[one], cells=[
            Cell(other=matrix.annotators[other], common=matrix.common[one][other], same=matrix.same[one][other],
                 share=(share := shares.get((one, other))),
                 step=0 if share is None else 1 + round(9 * (share - low) / (high - low)))
            for other in people
        ])
        for one in people
    ]  # fmt: skip
