"""How a text becomes tokens, to be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import tokenizers

from heedful.tokenizers.encoding import group_by_word
from heedful.tokenizers.merges import Merges

if TYPE_CHECKING:
    from heedful.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class Merge:
    """Two pieces that became one: by the how manyth of all merges, and the word's pieces after it."""

    rank: int
    left: str
    right: str
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Word:
    """A word: what its merging begins with, and its merges in order."""

    letters: tuple[str, ...]
    merges: tuple[Merge, ...]


@dataclass(frozen=True)
class Explanation:
    """The pieces of a text and their ids; for BPE, word by word, the merges that they arose by."""

    pieces: list[str]
    ids: list[int]
    words: list[Word]

    def lines(self) -> Iterator[str]:
        """The explanation for people: a line for pieces and ids, then a block for each word."""
        for at, piece in zip(self.ids, self.pieces, strict=True):
            yield f"{at:>8}  {piece_in_line(piece)}"
        for word in self.words:
            yield ""
            yield f"          {join_pieces(word.letters)}"
            for merge in word.merges:
                made = f"{piece_in_line(merge.left)} + {piece_in_line(merge.right)}"
                yield f"{merge.rank + 1:>8}  {join_pieces(merge.pieces)}    {made}"


def join_pieces(pieces: tuple[str, ...]) -> str:
    """Pieces with bars between them."""
    return "|".join(map(piece_in_line, pieces))


def piece_in_line(piece: str) -> str:
    """A piece on one line, with its blanks to be seen."""
    return "".join("␣" if sign == " " else sign if sign.isprintable() else ascii(sign)[1:-1] for sign in piece)


def explain_encoding(tokenizer: Tokenizer, made: tokenizers.Encoding) -> Explanation:
    """The explanation of what the engine made of a text."""
    words: list[Word] = []
    if tokenizer.kind in ("bpe", "bpe_characters"):
        merges = Merges(tokenizer.layout)
        words = [word(tokenizer, merges, ids) for ids in group_by_word(made.ids, made.word_ids)]
    return Explanation(tokenizer.pieces(made.ids), made.ids, words)


def word(tokenizer: Tokenizer, merges: Merges, ids: tuple[int, ...]) -> Word:
    """How a word's ids arose; a word that was found whole, as some tokenizers do, has no merges."""
    letters = tuple(letter for at in ids for letter in merges.letters(at))
    steps = list(merges.steps(letters))
    if (steps[-1].ids if steps else letters) != ids:
        return Word(tuple(tokenizer.pieces(ids)), ())
    found: list[Merge] = []
    before = letters
    for step in steps:
        left, right = tokenizer.pieces(before[step.place : step.place + 2])
        found.append(Merge(step.rank, left, right, tuple(tokenizer.pieces(step.ids))))
        before = step.ids
    return Word(tuple(tokenizer.pieces(letters)), tuple(found))
