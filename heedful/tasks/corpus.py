"""Texts as one long row of tokens, and the crops of it that a model learns from and is scored on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.checkpoints.opening import inside
from heedful.data.augment import dice_of
from heedful.data.batches import Splits
from heedful.data.near_duplicates import Overlap, digests, overlap
from heedful.data.spec import DataSpec
from heedful.data.texts import Text, texts
from heedful.data.texts import lines as lines_of
from heedful.decoding.spec import Decoding
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.models.specs import BEGIN, END, PAD
from heedful.tasks.parallel import tokenizer_of
from heedful.tasks.task import Batch, Task
from heedful.terminal import progress
from heedful.text import Tokenizer
from heedful.text.parts import by_tokens

Whole = NDArray[np.int64]
Small = NDArray[np.int32]
TOGETHER, AT_ONCE = 1 << 23, 8  # characters of texts that are encoded together, and parts of one that is longer
MANY = 10_000_000  # tokens, at most, that a file may say a context has


@dataclass(frozen=True, eq=False)
class Stream:
    """The tokens of texts one after the other, each between BEGIN and END, and which text each of them is of.

    Behind the last token stands padding, so that a crop may reach beyond it.
    """

    ids: Whole
    owners: Whole
    count: int  # of tokens without the padding
    characters: int
    several: bool  # texts, which must not be mixed
    words: Whole  # the number of each token's word, where that was asked for

    @classmethod
    def of(cls, found: Sequence[Text], tokenizer: Tokenizer, room: int, whole_words: bool = False) -> Stream:
        """The stream of texts, with room behind it."""
        whole = [one.text for one in found]
        rows = [framed(ids) for ids in encoded(whole, tokenizer)]
        lengths = [len(row) for row in rows]
        ids = np.concatenate([*rows, np.full(room, PAD)], dtype=np.int64)
        owners = np.repeat(np.arange(len(rows) + 1), [*lengths, room])
        characters = sum(map(len, whole))
        words = worded(whole, tokenizer, room) if whole_words else ids[:0]
        return cls(ids, owners, sum(lengths), characters, len(rows) > 1, words)


def worded(found: Sequence[str], tokenizer: Tokenizer, room: int) -> Whole:
    """The number of the word that each token of a stream belongs to, counted through all texts."""
    if tokenizer.kind == "words":
        raise Refusal("data.whole_words is for tokens that are parts of words, and these are words; leave it out")
    sizes = [size for words in tokenizer.by_words(found) for size in (1, *map(len, words), 1)]
    return np.repeat(np.arange(len(sizes) + 1), [*sizes, room])


def encoded(found: Sequence[str], tokenizer: Tokenizer) -> Iterator[Sequence[int] | Small]:
    """The ids of each text; where tokens are whole words each line ends in END, and blanks are nothing."""
    with progress("texts become tokens", sum(map(len, found))) as heard:
        for group in groups(found):
            if tokenizer.kind == "words":
                yield from ([at for ids in tokenizer.encode_all(lines(one)) for at in (*ids, END)] for one in group)
                heard(sum(map(len, group)))
            elif len(group) > 1:
                yield from tokenizer.encode_all(group)
                heard(sum(map(len, group)))
            else:
                yield in_parts(group[0], tokenizer, heard)


def groups(found: Sequence[str]) -> Iterator[Sequence[str]]:
    """Texts in order, as many at once as are encoded together."""
    start = room = 0
    for at, text in enumerate(found):
        if at > start and room + len(text) > TOGETHER:
            yield found[start:at]
            start, room = at, 0
        room += len(text)
    if found:
        yield found[start:]


def in_parts(text: str, tokenizer: Tokenizer, heard: Callable[[int], object]) -> Small:
    """The ids of a text, which may be too long to be encoded at once."""
    made: list[Small] = []
    parts = by_tokens(text, tokenizer.encode_all)
    while some := list(islice(parts, AT_ONCE)):
        made += [np.array(ids, dtype=np.int32) for ids in tokenizer.encode_all(some)]
        heard(sum(map(len, some)))
    return np.concatenate(made)


def lines(text: str) -> list[str]:
    """The lines of a text, words with one blank between them."""
    return [" ".join(line.split()) for line in text.removesuffix("\n").split("\n")]


def framed(ids: Sequence[int] | Small) -> Small:
    """The tokens of a text between BEGIN and END."""
    ended = len(ids) > 0 and ids[-1] == END
    return np.concatenate([[BEGIN], ids, [END] * (not ended)], dtype=np.int32, casting="unsafe")


@dataclass(frozen=True, slots=True)
class Crop:
    """A stretch of a stream, of which the last tokens are judged; dice where it is varied while learning."""

    stream: Stream
    start: int
    judged: int
    place: int = 0  # among the crops of its stream
    dice: int | None = None


class Corpus(Task):
    """A task on crops of texts: how they are opened, cut and put together. What is learned of them is its own."""

    ordered: ClassVar[bool] = True
    even: ClassVar[bool] = True
    keys: ClassVar[frozenset[str]] = frozenset({"split_seed", "document", "divide", "tokenizer", "longest", "stride"})
    input: ClassVar[str] = "a text"
    special_tokens: ClassVar[tuple[str, ...]] = ()  # that its tokenizer has beside the four of all
    usual: ClassVar[float] = 0.0  # noise, where the data say none

    hides: ClassVar[bool] = False  # something of every crop, of what is scored too: it has dice then as well
    whole_words = False  # whether words are hidden as one
    apart = True  # whether texts in one row see nothing of one another

    tokenizer: Tokenizer
    repeated: tuple[Overlap, ...] = ()  # lines that are learned from and held out too
    longest: int
    seed = 0
    noise = 0.0

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Crop]]:
        splits = texts(data, seed)
        if not len(splits.train):
            raise Refusal("data.train is not given; add data.train=FILE")
        whole = [one.text for one in splits.train]
        learned = (line for text in whole for line in lines(text)) if data.tokenizer.startswith("words") else whole
        task = cls.made(tokenizer_of(data, learned, cls.special_tokens), data.longest)
        task.seed, task.noise = seed, cls.usual if data.noise is None else data.noise
        task.whole_words, task.apart = data.whole_words, data.apart
        task.repeated = overlap(
            "lines", [digests(lines_of(part)) for part in (splits.train, splits.valid, splits.test)]
        )
        task.asks(data)
        if cls.hides and not task.noise:
            raise Refusal(
                f"data.noise=0 leaves nothing to find for task {cls.name!r}; give a share, such as {cls.usual}"
            )
        return task, task.cropped(splits, data.stride)

    def asks(self, data: DataSpec) -> None:
        """Hears what else the data say of how it learns."""
        return

    @classmethod
    def made(cls, tokenizer: Tokenizer, longest: int) -> Self:
        """The task with its tokenizer and the length of its crops."""
        task = cls.__new__(cls)
        task.tokenizer, task.longest = tokenizer, longest
        return task

    def reopen(self, data: DataSpec, seed: int) -> Splits[Crop]:
        if "apart" in data.model_fields_set:  # so that a kind can be scored that cannot keep texts apart
            self.apart = data.apart
        return self.cropped(texts(data, seed), data.stride)

    @property
    def window(self) -> int:
        """How many tokens of a stream a crop has."""
        return self.longest

    def cropped(self, splits: Splits[Text], stride: int) -> Splits[Crop]:
        """Texts to learn from as crops side by side, others as crops that judge each token once."""
        if stride > self.window:
            raise Refusal(f"data.stride={stride} is beyond data.longest={self.longest}; give at most that, or 0")
        if self.window < 2:
            raise Refusal(f"data.longest={self.longest} leaves no room for a text; raise it")
        train, valid, test = (
            Stream.of(part, self.tokenizer, 2 * self.window + 1, self.whole_words) if len(part) else None
            for part in (splits.train, splits.valid, splits.test)
        )
        step = stride or self.window
        return Splits(self.crops(train, self.window), self.crops(valid, step), self.crops(test, step))

    def crops(self, stream: Stream | None, step: int) -> list[Any]:
        """Crops that begin `step` tokens apart; the first is judged whole, each other where none before it was."""
        if stream is None:
            return []
        rest = max(0, stream.count - 1 - self.window)
        others = (Crop(stream, at * step, step, at) for at in range(1, 1 + -(-rest // step)))
        return [Crop(stream, 0, self.window), *others]

    def numbers(self) -> dict[str, int]:
        return {"vocab": len(self.tokenizer), "length": self.longest}

    def suits(self, spec: Spec) -> None:
        if len(self.tokenizer) > getattr(spec, "vocab", 0):
            raise Refusal(f"the tokenizer has {len(self.tokenizer)} tokens and the model fewer; copy both again")

    def overlaps(self, splits: Splits[Crop]) -> tuple[Overlap, ...]:
        return self.repeated

    def length(self, sample: Crop) -> int:
        return self.longest

    def fresh(self, samples: Sequence[Any], epoch: int) -> Sequence[Any]:
        """Crops of an epoch begin elsewhere, all moved alike, so that none but the last two overlap."""
        digest = hashlib.sha256(f"{self.seed} {epoch} crops".encode()).digest()
        moved = int.from_bytes(digest[:8], "big") % self.window
        dice = dice_of(self.seed, epoch, [one.place for one in samples]).tolist()
        made = []
        for one, die in zip(samples, dice, strict=True):
            last = max(0, one.stream.count - 1 - self.window)
            made.append(replace(one, start=min(one.start + moved, last), dice=die))
        return made

    def rows(self, samples: Sequence[Crop], length: int) -> Batch:
        """So many tokens from the beginning of each crop, whose text each is of, and its dice, where it has some."""
        places = np.array([one.start for one in samples])[:, None] + np.arange(length)
        streams = [one.stream for one in samples]
        alike = all(stream is streams[0] for stream in streams)

        def taken(name: str) -> torch.Tensor:
            if alike:  # one lookup for all of them
                return torch.from_numpy(getattr(streams[0], name)[places])
            found = [getattr(stream, name)[at] for stream, at in zip(streams, places, strict=True)]
            return torch.from_numpy(np.stack(found))

        made = {"tokens": taken("ids")}
        if streams[0].several:
            made["documents"] = taken("owners")
        if self.whole_words:
            made["words"] = taken("words")
        if self.noise and (self.hides or all(one.dice is not None for one in samples)):
            steady = dice_of(0, 0, [one.place for one in samples]).tolist()  # of what is scored: the same every time
            made["dice"] = torch.tensor(
                [s if one.dice is None else one.dice for one, s in zip(samples, steady, strict=True)]
            )
        return made

    def text(self, crop: Crop, start: int, end: int) -> str:
        """What stands at some places of a crop."""
        found = crop.stream.ids[crop.start + start : min(crop.start + end, crop.stream.count)]
        texts = np.split(found, np.flatnonzero(found == END))
        return "\n".join(self.tokenizer.decode(ids.tolist()) for ids in texts)

    def place(self, sample: Crop) -> str:
        return "a crop"

    # ------------------------------------------------------------------ keeping

    def state(self) -> dict[str, Any]:
        kept = {"longest": self.longest, "noise": self.noise, "whole_words": self.whole_words, "apart": self.apart}
        return kept | {"decoding": self.decoding.model_dump(exclude_none=True)}

    def write(self, folder: Path) -> None:
        super().write(folder)
        self.tokenizer.write(folder / "tokenizer.json")

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        longest = state["longest"]
        if type(longest) is not int or not 1 <= longest <= MANY:
            raise ValueError(f"longest is {longest!r}")
        try:
            task = cls.made(Tokenizer.read(inside(folder / "tokenizer.json")), longest)
        except Refusal as refused:
            raise Refusal(f"{refused}; copy or train it again") from None
        asked = DataSpec(noise=state["noise"], whole_words=state["whole_words"], apart=state.get("apart", True))
        task.noise, task.whole_words, task.apart = asked.noise or 0.0, asked.whole_words, asked.apart
        task.decoding = Decoding.model_validate(state.get("decoding", {}))
        return task
