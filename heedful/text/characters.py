"""Where the tokenizer of characters used to stand."""

from heedful.text.tokenizer import SPECIAL, Tokenizer

__all__ = ["SPECIAL", "Tokenizer"]
