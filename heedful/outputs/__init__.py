"""Outputs: B T M becomes an answer."""

from heedful.outputs.classes import Each, First, Mean
from heedful.outputs.tokens import NextToken, Rounded

__all__ = ["Each", "First", "Mean", "NextToken", "Rounded"]
