"""Texts as one long row of tokens, and the crops of it that a model learns from and is scored on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from heedful.data.collate import Batch
from heedful.data.crops import Crop, Crops, Stream, Whole, lines
from heedful.data.data_spec import DataSpec
from heedful.data.formats.documents import Text, texts
from heedful.data.formats.documents import lines as lines_of
from heedful.data.near_duplicates import Overlap, digests, overlap
from heedful.data.splits import Splits
from heedful.data.transforms import dice_of
from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.models.specs import END
from heedful.pipelines.choose_tokenizer import tokenizer_of
from heedful.safe.opening import inside
from heedful.tasks.closed import Task
from heedful.tokenizers import Tokenizer
from heedful.tokenizers.chunks import by_lines, by_words

MANY = 10_000_000  # tokens, at most, that a file may say a context has


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
        learned = by_line(splits.train) if data.tokenizer.startswith("words") else in_parts(splits.train)
        task = cls.made(tokenizer_of(data.tokenizer, learned, cls.special_tokens), data.longest)
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

    def crops(self, stream: Stream | None, step: int) -> Sequence[Any]:
        """Crops of a stream, so many tokens apart."""
        return [] if stream is None else Crops(stream, self.window, step)

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

        def taken(of: Callable[[Stream, Whole], Whole]) -> torch.Tensor:
            if alike:  # one lookup for all of them
                return torch.from_numpy(of(streams[0], places))
            found = [of(stream, at[None]) for stream, at in zip(streams, places, strict=True)]
            return torch.from_numpy(np.concatenate(found))

        made = {"tokens": taken(Stream.tokens)}
        if streams[0].several:
            made["documents"] = taken(Stream.owners)
        if self.whole_words:
            made["words"] = taken(Stream.words)
        if self.noise and (self.hides or all(one.dice is not None for one in samples)):
            steady = dice_of(0, 0, [one.place for one in samples]).tolist()  # of what is scored: the same every time
            made["dice"] = torch.tensor(
                [s if one.dice is None else one.dice for one, s in zip(samples, steady, strict=True)]
            )
        return made

    def text(self, crop: Crop, start: int, end: int) -> str:
        """What stands at some places of a crop."""
        found = crop.stream.tokens(slice(crop.start + start, min(crop.start + end, crop.stream.count)))
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


def by_line(found: Sequence[Text]) -> Iterator[str]:
    """The lines of texts, as they are given to a tokenizer of whole words."""
    return (line for one in found for block in by_lines(one.pieces()) for line in lines(block))


def in_parts(found: Sequence[Text]) -> Iterator[str]:
    """Texts in parts that have their words."""
    return (part for one in found for part in by_words(one.pieces()))
