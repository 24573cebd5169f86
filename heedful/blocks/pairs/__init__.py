"""Two attentions in the place of one. One paper, one file."""

from heedful.blocks.pairs.isab import Induced
from heedful.blocks.pairs.longformer import GlobalRows
from heedful.blocks.pairs.poolingformer import Poolingformer

__all__ = ["GlobalRows", "Induced", "Poolingformer"]
