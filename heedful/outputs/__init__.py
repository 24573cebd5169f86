"""Outputs: B T M becomes an answer."""

from heedful.outputs.classes import Each, First, Mean
from heedful.outputs.sentences import Answer, Classes, MaskedToken, Pooled, States, Tags
from heedful.outputs.tokens import NextToken, Rounded

__all__ = [
    "Answer",
    "Classes",
    "Each",
    "First",
    "MaskedToken",
    "Mean",
    "NextToken",
    "Pooled",
    "Rounded",
    "States",
    "Tags",
]
