"""Stacks whose layers exchange something. One paper, one file."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.blocks.stacks.bp import BPTransformer
    from heedful.blocks.stacks.etc import ETC
    from heedful.blocks.stacks.exchange import Exchange
    from heedful.blocks.stacks.lazyformer import LazyFormer
    from heedful.blocks.stacks.luna import Luna
    from heedful.blocks.stacks.predictive import Predictive
    from heedful.blocks.stacks.realformer import RealFormer
    from heedful.blocks.stacks.star import StarTransformer

__getattr__ = lazily(__name__)
__all__ = [
    "ETC",
    "BPTransformer",
    "Exchange",
    "LazyFormer",
    "Luna",
    "Predictive",
    "RealFormer",
    "StarTransformer",
]
