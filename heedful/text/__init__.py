"""Text: how it becomes tokens, and tokens text."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.text.broken import Broken
    from heedful.text.explaining import Explanation
    from heedful.text.joined import Joined
    from heedful.text.layout import SPECIAL
    from heedful.text.plan import KINDS
    from heedful.text.tokenizer import Tokenizer
    from heedful.text.training import train, train_files

__getattr__ = lazily(__name__)
__all__ = ["KINDS", "SPECIAL", "Broken", "Explanation", "Joined", "Tokenizer", "train", "train_files"]
