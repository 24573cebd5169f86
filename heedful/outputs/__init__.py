"""Outputs: B T M becomes an answer."""

from heedful.outputs.classes import Each, First, Mean
from heedful.outputs.pools import AttentionPool, FirstPool, MeanPool
from heedful.outputs.tokens import NextToken

__all__ = ["AttentionPool", "Each", "First", "FirstPool", "Mean", "MeanPool", "NextToken"]
