"""Text: how it becomes tokens, and tokens text."""

from heedful.text.broken import Broken
from heedful.text.explaining import Explanation
from heedful.text.joined import Joined
from heedful.text.layout import SPECIAL
from heedful.text.plan import KINDS
from heedful.text.tokenizer import Tokenizer
from heedful.text.training import train, train_files

__all__ = ["KINDS", "SPECIAL", "Broken", "Explanation", "Joined", "Tokenizer", "train", "train_files"]
