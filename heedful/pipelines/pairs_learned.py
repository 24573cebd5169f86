"""Pairs of sequences (parallel text): what is kept of them, and how they become batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from heedful.data.encoded_pairs import Encoded, encode_pairs
from heedful.data.near_duplicates import Content
from heedful.data.parallel_sample import Pair
from heedful.data.readers.parallel_pairs import Paired
from heedful.data.splits import Splits
from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.pipelines.seq2seq_pipeline import Seq2SeqCollate, TextSource
from heedful.pipelines.written_text import WrittenText
from heedful.safe.opening import inside
from heedful.tokenizers import Tokenizer

if TYPE_CHECKING:
    from heedful.tokenizers import Broken

Chosen = Callable[[str, Iterable[str]], Tokenizer]  # the tokenizer of a word, for texts


@dataclass(frozen=True)
class PairsLearned(WrittenText):
    """The tokenizer of both sides of pairs, and how merges of those to learn from are left out (BPE-dropout)."""

    broken: tuple[Broken, Broken] | None = field(default=None, compare=False)  # of sources and targets

    @classmethod
    def fit(cls, chosen: Chosen, splits: Splits[Pair], reader: Paired, seed: int) -> Self:
        """What is learned of pairs, with the tokenizer that is chosen for their reader."""
        tokenizer = chosen(reader.tokenizer, (text for pair in splits.train for text in (pair.source, pair.target)))
        if not reader.merge_dropout:
            return cls(tokenizer)
        from heedful.tokenizers import Broken

        sides = [pair.source for pair in splits.train], [pair.target for pair in splits.train]
        source, target = (Broken(tokenizer, side, reader.merge_dropout, seed) for side in sides)
        return cls(tokenizer, broken=(source, target))

    def facts(self) -> dict[str, Any]:
        return {"vocab": len(self.tokenizer)}

    def suited(self, spec: Spec) -> Self:
        known = len(self.tokenizer)
        if (read := getattr(spec, "source_vocab", None) or known) < known:
            raise Refusal(f"model.source_vocab={read} is less than the {known} characters; leave it out")
        return replace(self, longest=spec.longest)

    def write(self, folder: Path, name: str) -> None:
        super().write(folder, name)
        self.tokenizer.write(folder / "tokenizer.json")

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        path = inside(folder / "tokenizer.json")
        try:
            tokenizer = Tokenizer.read(path)
        except Refusal as refused:
            raise Refusal(f"{refused}; copy or train it again") from None
        return cls(tokenizer, search=Decoding.model_validate(state.get("decoding", {})))


Kept = TypeVar("Kept", bound=PairsLearned)


def as_ids(splits: Splits[Pair], learned: PairsLearned) -> Splits[Encoded]:
    """Pairs as ids of the tokenizer that was learned."""
    return encode_pairs(splits, learned.ids, len(learned.tokenizer))


@dataclass(frozen=True)
class KnownText(TextSource):
    """Source text of which it is told what the model never saw."""

    def warning(self, given: Any, learned: WrittenText) -> str | None:
        if said := super().warning(given.strip(), learned):
            return said
        tokenizer, unknown = learned.tokenizer, learned.tokenizer.layout.unknown
        if unknown not in tokenizer.encode(given.strip()):
            return None
        parts = given.split() if tokenizer.kind == "words" else given.strip()
        strange = sorted({part for part in parts if unknown in tokenizer.encode(part)})
        return f"{given!r} holds what the model never saw: {' '.join(map(repr, strange))}"


@dataclass(frozen=True)
class PairCollate(Seq2SeqCollate[Kept]):
    """Pairs of texts as an encoder-decoder learns them, in each epoch with other merges left out."""

    filled: ClassVar[bool] = True

    def lengths(self, samples: Sequence[Encoded], epoch: int, learned: Kept) -> Sequence[Any]:
        whole = [(len(sample.source) + 1, len(sample.target) + 1) for sample in samples]
        if learned.broken is None:
            return whole
        places = [sample.place for sample in samples]
        broken = np.stack([side.lengths(epoch)[places] + 1 for side in learned.broken], 1)
        return list(np.where(broken.max(1, keepdims=True) <= learned.longest, broken, whole))  # as `augmented` has them

    def augmented(self, samples: Sequence[Encoded], epoch: int, learned: Kept) -> Sequence[Encoded]:
        if learned.broken is None:
            return samples
        sources, targets = (side.many([sample.place for sample in samples], epoch) for side in learned.broken)
        made = [replace(sample, source=s, target=t) for sample, s, t in zip(samples, sources, targets, strict=True)]
        pairs = zip(made, samples, strict=True)
        return [one if self.length(one, learned) <= learned.longest else sample for one, sample in pairs]

    def contents(self, sample: Encoded) -> dict[str, Content]:
        return {"sources": sample.texts.source, "targets": sample.texts.target}

    def source_of(self, sample: Encoded) -> str:
        return sample.texts.where(int(len(sample.target) > len(sample.source)))
