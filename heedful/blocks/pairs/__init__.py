"""Two attentions in the place of one. One paper, one file."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.blocks.pairs.global_rows import GlobalRows
    from heedful.blocks.pairs.isab import Induced
    from heedful.blocks.pairs.poolingformer import Poolingformer

__getattr__ = lazily(__name__)
__all__ = ["GlobalRows", "Induced", "Poolingformer"]
