"""Blocks of attention and feed-forward, and stacks of blocks."""

from heedful.blocks.block import Block, CrossBlock, PostNormBlock, PostNormCrossBlock, ScaledBlock
from heedful.blocks.feedforward import FeedForward, GatedFeedForward
from heedful.blocks.norms import BatchNorm, LayerNorm, RMSNorm
from heedful.blocks.stack import Again, Stack

__all__ = [
    "Again",
    "BatchNorm",
    "Block",
    "CrossBlock",
    "FeedForward",
    "GatedFeedForward",
    "LayerNorm",
    "PostNormBlock",
    "PostNormCrossBlock",
    "RMSNorm",
    "ScaledBlock",
    "Stack",
]
