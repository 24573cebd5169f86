"""The tokens of texts in a row, in as few bytes as their ids need, and the crops of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from heedful.data.encoded_pairs import Row
from heedful.data.texts_on_disk import Text
from heedful.errors import Refusal
from heedful.terminal import progress
from heedful.tokenizers import SPECIAL, Tokenizer
from heedful.tokenizers.chunks import LONG, by_lines, by_tokens

Whole = NDArray[np.int64]
Part = tuple[Sequence[int], Sequence[bool]]  # ids, and whether each begins a word, where that is asked for
PAD, BEGIN, END = map(SPECIAL.index, ("<pad>", "<begin>", "<end>"))
FIRST = 8  # tokens of a crop, among which a word stands for it
NONE = np.zeros(0, dtype=bool)
TOGETHER, AT_ONCE = 1 << 23, 4  # characters of texts that are encoded together, and parts of one that is longer


@dataclass(frozen=True, eq=False)
class Stream:
    """The tokens of texts one after the other, each between BEGIN and END, and where each text begins.

    Behind the last token stands padding, so that a crop may reach beyond it.
    """

    ids: NDArray[Any]  # as bytes, or two or four of them
    starts: Whole  # of the texts, and of the padding
    count: int  # of tokens without the padding
    characters: int
    begins: NDArray[np.bool_]  # whether a token begins a word, where that was asked for

    @classmethod
    def of(cls, found: Sequence[Text], tokenizer: Tokenizer, room: int, whole_words: bool = False) -> Stream:
        """The stream of texts, with room behind it."""
        if whole_words and tokenizer.kind == "words":
            raise Refusal("data.whole_words is for tokens that are parts of words, and these are words; leave it out")
        ids, begins, starts = Row(np.min_scalar_type(max(len(tokenizer), END + 1) - 1)), Row(np.dtype(bool)), [0]
        for parts in encode_parts(found, tokenizer, whole_words):
            last = BEGIN
            ids.add([BEGIN])
            begins.add([True])
            for part, flags in parts:
                ids.add(part)
                begins.add(flags)
                last = part[-1] if len(part) else last
            ids.add([END] * (last != END))
            begins.add([True])
            starts.append(len(ids))
        ids.add([PAD] * room)
        begins.add([True] + [False] * (room - 1))
        characters = sum(len(one.text) for one in found)
        return cls(ids.array(), np.array(starts), starts[-1], characters, begins.array() if whole_words else NONE)

    @property
    def several(self) -> bool:
        """Whether it has texts that must not be mixed."""
        return len(self.starts) > 2

    def tokens(self, places: slice | Whole) -> Whole:
        """The ids at some places."""
        return self.ids[places].astype(np.int64)

    def owners(self, places: Whole) -> Whole:
        """The number of the text that stands at each of some places."""
        return np.searchsorted(self.starts, places, side="right") - 1

    def words(self, places: Whole) -> Whole:
        """The number of the word at each of some places, B T, counted along T."""
        return self.begins[places].cumsum(1)


def encode_parts(found: Sequence[Text], tokenizer: Tokenizer, whole_words: bool) -> Iterator[Iterable[Part]]:
    """The ids of each text, in parts; where tokens are whole words each line ends in END, and blanks are nothing."""

    def of(texts: Sequence[str]) -> Iterator[Part]:
        flags = map(word_starts, tokenizer.by_words(texts)) if whole_words else repeat((), len(texts))
        return zip(tokenizer.encode_all(texts), flags, strict=True)

    with progress("texts become tokens", sum(len(one.text) for one in found)) as heard:
        for group in groups(found, tokenizer.room):
            if tokenizer.kind == "words":
                yield from (in_lines(one, tokenizer, heard) for one in group)
            elif len(group) > 1:
                yield from ([part] for part in of([str(one.text) for one in group]))
                heard(sum(len(one.text) for one in group))
            else:
                yield in_parts(group[0], tokenizer, of, heard)


def groups(found: Sequence[Text], longest: int) -> Iterator[Sequence[Text]]:
    """Texts in order, as many at once as are encoded together; one beyond the longest stands alone."""
    start = room = 0
    for at, one in enumerate(found):
        alone = max(len(one.text), len(found[start].text)) > longest
        if at > start and (alone or room + len(one.text) > TOGETHER):
            yield found[start:at]
            start, room = at, 0
        room += len(one.text)
    if found:
        yield found[start:]


def in_parts(
    one: Text, tokenizer: Tokenizer, of: Callable[[Sequence[str]], Iterator[Part]], heard: Callable[[int], object]
) -> Iterator[Part]:
    """The ids of a text that may be too long to be encoded at once."""
    parts = by_tokens(one.pieces(), tokenizer.encode_all, min(LONG, tokenizer.room // 2))
    while some := list(islice(parts, AT_ONCE)):
        yield from of(some)
        heard(sum(map(len, some)))


def in_lines(one: Text, tokenizer: Tokenizer, heard: Callable[[int], object]) -> Iterator[Part]:
    """The ids of a text's lines, END behind each."""
    for block in by_lines(one.pieces(), min(16 * LONG, tokenizer.room)):
        yield [at for ids in tokenizer.encode_all(lines(block)) for at in (*ids, END)], ()
        heard(len(block))


def lines(block: str) -> list[str]:
    """The lines of a text, words with one blank between them."""
    return [" ".join(line.split()) for line in block.split("\n")]


def word_starts(words: Iterable[Sequence[int]]) -> list[bool]:
    """Whether each token of words is the first of its word."""
    return [place == 0 for word in words for place in range(len(word))]


@dataclass(frozen=True, slots=True)
class Crop:
    """A stretch of a stream, of which the last tokens are judged; dice where it is varied while learning."""

    stream: Stream
    start: int
    judged: int
    place: int = 0  # among the crops of its stream
    dice: int | None = None

    @property
    def first(self) -> Whole:
        """Its first tokens, a few."""
        return self.stream.tokens(slice(self.start, min(self.start + FIRST, self.stream.count)))


@dataclass(frozen=True, eq=False)
class Crops(Sequence[Crop]):
    """Crops that begin `step` tokens apart; the first is judged whole, each other where none before it was.

    Each is made when it is asked for: there may be millions.
    """

    stream: Stream
    window: int
    step: int

    def __len__(self) -> int:
        return 1 + -(-max(0, self.stream.count - 1 - self.window) // self.step)

    @overload
    def __getitem__(self, at: int) -> Crop: ...

    @overload
    def __getitem__(self, at: slice) -> list[Crop]: ...

    def __getitem__(self, at: int | slice) -> Crop | list[Crop]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        place = range(len(self))[at]
        return Crop(self.stream, place * self.step, self.step if place else self.window, place)
