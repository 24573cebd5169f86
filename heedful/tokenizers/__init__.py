"""Text: how it becomes tokens, and tokens text."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.tokenizers.bpe_dropout import Broken
    from heedful.tokenizers.encoding import Joined
    from heedful.tokenizers.explain import Explanation
    from heedful.tokenizers.tokenizer import Tokenizer
    from heedful.tokenizers.tokenizer_json import SPECIAL
    from heedful.tokenizers.trainer_config import KINDS
    from heedful.tokenizers.training.train import train, train_files

__getattr__ = lazily(__name__)
__all__ = ["KINDS", "SPECIAL", "Broken", "Explanation", "Joined", "Tokenizer", "train", "train_files"]
