"""Crops of texts: what tasks on one stream of tokens keep of their data, and how crops become batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from pydantic import TypeAdapter

from heedful.data.collate import Batch, Collate
from heedful.data.formats.documents import lines as lines_of
from heedful.data.near_duplicates import Overlap, digests, overlap
from heedful.data.readers.reader import Share
from heedful.data.sample_dice import dice_of
from heedful.data.splits import Splits
from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import END, Crop, Crops, Stream, Whole, lines
from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.pipelines.choose_tokenizer import tokenizer_of
from heedful.pipelines.text_generation import DecoderLearned
from heedful.safe.opening import inside
from heedful.tokenizers import Tokenizer
from heedful.tokenizers.chunks import by_lines, by_words

MANY = 10_000_000  # tokens, at most, that a file may say a context has
SHARE: TypeAdapter[float] = TypeAdapter(Share)
YES_OR_NO: TypeAdapter[bool] = TypeAdapter(bool)


@dataclass(frozen=True)
class CropLearned(DecoderLearned):
    """The tokenizer of texts, how long their crops are, and how they are learned from."""

    around: ClassVar[int] = 0  # tokens of a crop that are not of its text

    noise: float = 0.0
    whole_words: bool = False  # whether words are hidden as one
    apart: bool = True  # whether texts in one row see nothing of one another
    stride: int = 0  # tokens between two crops that are scored
    seed: int = 0
    repeated: tuple[Overlap, ...] = ()  # lines that are learned from and held out too

    @classmethod
    def of_texts(cls, splits: Splits[Text], reader: Any, seed: int, special: tuple[str, ...] = (), **own: Any) -> Self:
        """What is learned of texts by any task: a tokenizer, with special tokens, and what of them is held out too."""
        pieces = by_line(splits.train) if reader.tokenizer.startswith("words") else in_parts(splits.train)
        tokenizer = tokenizer_of(reader.tokenizer, pieces, special)
        parts = (splits.train, splits.valid, splits.test)
        repeated = overlap("lines", [digests(lines_of(part)) for part in parts])
        return cls(tokenizer, seed=seed, repeated=repeated, **own)

    @property
    def window(self) -> int:
        """How many tokens of a stream a crop has."""
        return self.longest - self.around

    def facts(self) -> dict[str, Any]:
        return {"vocab": len(self.tokenizer), "length": self.longest}

    def suited(self, spec: Spec) -> Self:
        if len(self.tokenizer) > getattr(spec, "vocab", 0):
            raise Refusal(f"the tokenizer has {len(self.tokenizer)} tokens and the model fewer; copy both again")
        return self

    def text(self, crop: Crop, start: int, end: int) -> str:
        """What stands at some places of a crop."""
        found = crop.stream.tokens(slice(crop.start + start, min(crop.start + end, crop.stream.count)))
        texts = np.split(found, np.flatnonzero(found == END))
        return "\n".join(self.tokenizer.decode(ids.tolist()) for ids in texts)

    def state(self) -> dict[str, Any]:
        kept = {"longest": self.longest, "noise": self.noise, "whole_words": self.whole_words, "apart": self.apart}
        return kept | super().state()

    @classmethod
    def kept_in(cls, folder: Path, state: dict[str, Any]) -> dict[str, Any]:
        """The fields that were written beside a model."""
        longest = state["longest"]
        if type(longest) is not int or not 1 <= longest <= MANY:
            raise ValueError(f"longest is {longest!r}")
        try:
            tokenizer = Tokenizer.read(inside(folder / "tokenizer.json"))
        except Refusal as refused:
            raise Refusal(f"{refused}; copy or train it again") from None
        return {
            "tokenizer": tokenizer,
            "longest": longest,
            "noise": SHARE.validate_python(state["noise"], strict=True),
            "whole_words": YES_OR_NO.validate_python(state["whole_words"], strict=True),
            "apart": YES_OR_NO.validate_python(state.get("apart", True), strict=True),
            "search": Decoding.model_validate(state.get("decoding", {})),
        }

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        return cls(**cls.kept_in(folder, state))


def hidden_share(given: float | None, usual: float, task: str) -> float:
    """The share of tokens that are hidden, as data say it, or as is usual; none would leave nothing to find."""
    if given == 0:
        raise Refusal(f"data.noise=0 leaves nothing to find for task {task!r}; give a share, such as {usual}")
    return usual if given is None else given


def with_stride(reader: Any, learned: CropLearned) -> tuple[Any, CropLearned]:
    """Other texts are scored in crops as far apart as they say."""
    return reader, replace(learned, stride=reader.stride)


def crop_texts(splits: Splits[Text], learned: CropLearned) -> Splits[Crop]:
    """Texts to learn from as crops side by side, others as crops that judge each token once."""
    window, stride = learned.window, learned.stride
    if stride > window:
        raise Refusal(f"data.stride={stride} is beyond data.longest={learned.longest}; give at most that, or 0")
    if window < 2:
        raise Refusal(f"data.longest={learned.longest} leaves no room for a text; raise it")
    step = stride or window
    train, valid, test = streams(splits, learned)
    return Splits(crops(train, window, window), crops(valid, window, step), crops(test, window, step))


def streams(splits: Splits[Text], learned: CropLearned) -> Iterator[Stream | None]:
    """The tokens of each part in a row, with room behind them for a crop; none where no text is."""
    for part in (splits.train, splits.valid, splits.test):
        room = 2 * learned.window + 1
        yield Stream.of(part, learned.tokenizer, room, learned.whole_words) if len(part) else None


def crops(stream: Stream | None, window: int, step: int) -> Sequence[Crop]:
    """Crops of a stream, so many tokens apart."""
    return [] if stream is None else Crops(stream, window, step)


Kept = TypeVar("Kept", bound=CropLearned)


@dataclass(frozen=True)
class CropCollate(Collate[Kept]):
    """Crops as rows of tokens, of which those of an epoch begin where no others do."""

    even: ClassVar[bool] = True
    hides: ClassVar[bool] = False  # something of every crop, of what is scored too: it has dice then as well

    def overlaps(self, splits: Splits[Crop], learned: Kept) -> tuple[Overlap, ...]:
        return learned.repeated

    def length(self, sample: Crop, learned: Kept) -> int:
        return learned.longest

    def augmented(self, samples: Sequence[Any], epoch: int, learned: Kept) -> Sequence[Any]:
        """Crops of an epoch begin elsewhere, all moved alike, so that none but the last two overlap."""
        digest = hashlib.sha256(f"{learned.seed} {epoch} crops".encode()).digest()
        moved = int.from_bytes(digest[:8], "big") % learned.window
        dice = dice_of(learned.seed, epoch, [one.place for one in samples]).tolist()
        made = []
        for one, die in zip(samples, dice, strict=True):
            last = max(0, one.stream.count - 1 - learned.window)
            made.append(replace(one, start=min(one.start + moved, last), dice=die))
        return made

    def rows(self, samples: Sequence[Crop], length: int, learned: Kept) -> Batch:
        """So many tokens from the beginning of each crop, whose text each is of, and its dice, where it has some."""
        places = np.array([one.start for one in samples])[:, None] + np.arange(length)
        found = [one.stream for one in samples]
        alike = all(stream is found[0] for stream in found)

        def taken(of: Callable[[Stream, Whole], Whole]) -> torch.Tensor:
            if alike:  # one lookup for all of them
                return torch.from_numpy(of(found[0], places))
            rows = [of(stream, at[None]) for stream, at in zip(found, places, strict=True)]
            return torch.from_numpy(np.concatenate(rows))

        made = {"tokens": taken(Stream.tokens)}
        if found[0].several:
            made["documents"] = taken(Stream.owners)
        if learned.whole_words:
            made["words"] = taken(Stream.words)
        if learned.noise and (self.hides or all(one.dice is not None for one in samples)):
            steady = dice_of(0, 0, [one.place for one in samples]).tolist()  # of what is scored: the same every time
            made["dice"] = torch.tensor(
                [s if one.dice is None else one.dice for one, s in zip(samples, steady, strict=True)]
            )
        return made

    def source_of(self, sample: Crop) -> str:
        return "a crop"


def by_line(found: Sequence[Text]) -> Iterator[str]:
    """The lines of texts, as they are given to a tokenizer of whole words."""
    return (line for one in found for block in by_lines(one.pieces()) for line in lines(block))


def in_parts(found: Sequence[Text]) -> Iterator[str]:
    """Texts in parts that have their words."""
    return (part for one in found for part in by_words(one.pieces()))
