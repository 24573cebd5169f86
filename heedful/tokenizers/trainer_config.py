"""The plan of a tokenizer: its kind and size, and how it treats digits, punctuation, case and special tokens."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.errors import Refusal, unknown_word
from heedful.tokenizers.pieces import BYTE
from heedful.tokenizers.rust_engines import CONTINUED, WAYS
from heedful.tokenizers.tokenizer_json import SPECIAL

KINDS = {
    "characters": "each character a token",
    "words": "the most frequent words",
    "bpe": "pairs of bytes merged: any text comes back as it was",
    "bpe_characters": "pairs of characters merged; one that is not known is written as bytes: any text comes back, too",
    "wordpiece": "beginnings of words and what goes on with them, the longest that fits",
    "unigram": "the likeliest pieces, by SentencePiece",
}
LARGEST = 1_000_000  # tokens of a vocabulary


@dataclass(frozen=True)
class Plan:
    """What a tokenizer shall be, as far as it can be."""

    kind: str = "bpe"
    size: int = 8000
    special: tuple[str, ...] = ()
    digits: str = "apart"
    punctuation: str = "apart"
    alphabet: int | None = None
    lower: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_word("kind of tokenizer", self.kind, KINDS)
        for what, way in (("digits", self.digits), ("punctuation", self.punctuation)):
            if way not in WAYS:
                raise unknown_word(f"way to split {what}", way, WAYS)
            if self.kind == "characters" and way != "apart":
                raise Refusal(f"characters are always single; leave out {what}={way}")
        if not 0 < self.size <= LARGEST:
            raise Refusal(f"a size of {self.size} is no size for a vocabulary; give 1 to {LARGEST}")
        if self.alphabet is not None and (self.alphabet < 1 or self.kind in ("words", "bpe")):
            cure = "give at least 1" if self.alphabet < 1 else f"{self.kind} has no use for it, leave it out"
            raise Refusal(f"an alphabet of {self.alphabet}: {cure}")
        for token in self.special:
            fault = self.fault(token)
            if fault:
                raise Refusal(f"special token {token!r}: {fault}")

    def fault(self, token: str) -> str:
        """The fault of a special token; empty where it has none."""
        if len(token) < 2 or token != token.strip():
            return "it needs two characters or more, and no white space around them"
        if token in SPECIAL:
            return "every tokenizer has it already; leave it out"
        if self.special.count(token) > 1:
            return "it is given twice; give it once"
        if BYTE.fullmatch(token) or token.startswith(CONTINUED):
            return "pieces are written like that; choose another name"
        try:
            token.encode()
        except UnicodeEncodeError:
            return "it holds half a character; choose another name"
        return ""

    def room(self, needed: int) -> int:
        """How many tokens there is room for beside special ones and those needed first."""
        first = len(SPECIAL) + len(self.special) + needed
        if first > self.size:
            fewer = "" if self.kind in ("words", "bpe") else ", or a smaller alphabet"
            cure = f"give at least {first}{fewer}"
            raise Refusal(f"a size of {self.size} is too small: {first} tokens come before any is learnt; {cure}")
        return self.size - first
