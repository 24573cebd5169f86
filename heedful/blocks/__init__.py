"""Blocks of attention and feed-forward, and stacks of blocks."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.blocks.block import Block, CrossBlock, PostNormBlock, PostNormCrossBlock, ScaledBlock
    from heedful.blocks.feedforward import FeedForward, GatedFeedForward
    from heedful.blocks.norms import BatchNorm, LayerNorm, RMSNorm
    from heedful.blocks.pairs import GlobalRows, Induced, Poolingformer
    from heedful.blocks.stack import Again, Stack
    from heedful.blocks.stacks import (
        ETC,
        BPTransformer,
        Exchange,
        LazyFormer,
        Luna,
        Predictive,
        RealFormer,
        StarTransformer,
    )

__getattr__ = lazily(__name__)
__all__ = [
    "ETC",
    "Again",
    "BPTransformer",
    "BatchNorm",
    "Block",
    "CrossBlock",
    "Exchange",
    "FeedForward",
    "GatedFeedForward",
    "GlobalRows",
    "Induced",
    "LayerNorm",
    "LazyFormer",
    "Luna",
    "Poolingformer",
    "PostNormBlock",
    "PostNormCrossBlock",
    "Predictive",
    "RMSNorm",
    "RealFormer",
    "ScaledBlock",
    "Stack",
    "StarTransformer",
]
