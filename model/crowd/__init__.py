"""Aggregation of crowd votes without a network: numpy and scipy only.

`AnswerMatrix` is the input, `AGGREGATORS` (or `make(name)`) the methods, `Aggregate` the result.
"""

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator
from model.crowd.registry import AGGREGATORS, make

__all__ = ["AGGREGATORS", "Aggregate", "Aggregator", "AnswerMatrix", "make"]
