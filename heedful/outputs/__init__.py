"""Outputs: B T M becomes an answer."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.outputs.class_output import Attended, Each, First, Mean
    from heedful.outputs.pools import AttentionPool, BothPool, FirstPool, MeanPool
    from heedful.outputs.text_encoder_output import Answer, Classes, LastClasses, MaskedToken, Pooled, States, Tags
    from heedful.outputs.token_output import NextToken, Rounded

__getattr__ = lazily(__name__)
__all__ = [
    "Answer",
    "Attended",
    "AttentionPool",
    "BothPool",
    "Classes",
    "Each",
    "First",
    "FirstPool",
    "LastClasses",
    "MaskedToken",
    "Mean",
    "MeanPool",
    "NextToken",
    "Pooled",
    "Rounded",
    "States",
    "Tags",
]
