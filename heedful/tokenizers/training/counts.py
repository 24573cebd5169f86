"""How often each word of a text occurs, in bounded memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain

from heedful.tokenizers.chunks import BETWEEN, by_words
from heedful.tokenizers.tokenizer_json import SPECIAL

MOST = 1_500_000  # different words that are kept in mind at once: about 300 MB
KEPT = 500_000  # and that are learnt from: the trainers take about 1 kB for each


@dataclass
class Counts:
    """How often pieces of text and their characters occur, and how many rare words were let go."""

    words: dict[str, int]
    characters: Counter[str]
    let_go: int

    def spelt_in(self, letters: Iterable[str]) -> dict[str, int]:
        """The words that are written in these letters alone."""
        strange = self.characters.keys() - set(letters)
        return {word: count for word, count in self.words.items() if strange.isdisjoint(word)}


class Texts:
    """Takes texts apart at special tokens, which are no text to learn from; with small letters alone, where asked."""

    def __init__(self, special: Iterable[str] = (), lower: bool = False) -> None:
        self.lower = lower
        apart = sorted({*SPECIAL, *special}, key=len, reverse=True)
        self.cut = re.compile("|".join([*map(re.escape, apart), "<0x[0-9A-F]{2}>"]))
        self.signs = sorted({token[0] for token in apart})

    def between(self, text: str) -> Iterable[str]:
        """What stands between special tokens, without the white space around these."""
        parts = self.cut.split(text) if any(sign in text for sign in self.signs) else [text]
        if self.lower:
            # At the end of a word a capital sigma is small in another way; the engine looks at no letter's neighbours.
            parts = [part.replace("Σ", "\N{GREEK SMALL LETTER SIGMA}").lower() for part in parts]
        if len(parts) == 1:
            return parts
        return (parts[0].rstrip(), *(part.strip() for part in parts[1:-1]), parts[-1].lstrip())


class Letters(Texts):
    """Counts characters."""

    def __init__(self, special: Iterable[str] = (), lower: bool = False) -> None:
        super().__init__(special, lower)
        self.characters: Counter[str] = Counter()

    def add(self, text: str, heard: Callable[[int], object] = lambda count: None) -> None:
        """Counts the characters of a text."""
        for part in self.between(text):
            self.characters.update(part)
            heard(len(part))

    def add_lines(self, block: str) -> None:
        """Counts the characters of many lines, each of them a text."""
        for part in self.between(block):
            self.characters.update(part.replace("\n", ""))


class Words(Texts):
    """Counts words between blanks. When there are too many, the rarest are let go, and again when there are again.

    Other white space stays in a word, so that it is cut later as it would be in the text.
    """

    def __init__(self, special: Iterable[str] = (), most: int = MOST, lower: bool = False) -> None:
        super().__init__(special, lower)
        self.counts: Counter[str] = Counter()
        self.characters: Counter[str] = Counter()  # of the words that were let go
        self.let_go, self.most = 0, most

    def add(self, text: str, heard: Callable[[int], object] = lambda count: None) -> None:
        """Counts the words of a text; `heard` is told how many characters were read since it was last told."""
        for part in chain.from_iterable(by_words([one]) for one in self.between(text)):
            words = part.split(" ")
            if words == part.split():
                self.counts.update(words)
            elif part:
                self.counts.update(BETWEEN.split(part))
            if len(self.counts) > self.most:
                self._let_go()
            heard(len(part))

    def add_lines(self, block: str) -> None:
        """Counts the words of many lines, each of them a text."""
        flat = block.replace("\n", " ")
        if flat[:1] != " " and flat[-1:] != " " and "  " not in flat:
            self.add(flat)  # the same words, and much faster
        else:
            for line in block.split("\n"):
                self.add(line)

    def _let_go(self) -> None:
        before, floor = len(self.counts), 0
        while len(self.counts) > self.most // 2:
            floor += 1
            for word, count in self.counts.items():
                if count <= floor:
                    self._remember(word, count)
            self.counts = Counter({word: count for word, count in self.counts.items() if count > floor})
        self.let_go += before - len(self.counts)

    def _remember(self, word: str, count: int) -> None:
        for character in word:
            self.characters[character] += count

    def split(self, cut: Callable[[str], list[str]], kept: int = KEPT) -> Counts:
        """The counts of what words are cut into; this empties the words."""
        found: Counter[str] = Counter()
        while self.counts:
            word, count = self.counts.popitem()
            for part in cut(f" {word}"):
                found[part] += count
        for part, count in found.items():
            self._remember(part, count)
        words = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return Counts(dict(words[:kept]), self.characters, self.let_go + max(0, len(words) - kept))
