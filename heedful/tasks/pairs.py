"""From one sequence to another: reversing, sorting, any pairs of a user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor, nn

from heedful.data.data_spec import DataSpec
from heedful.data.formats.parallel_text import Pair
from heedful.data.lazy_samples import Made
from heedful.data.near_duplicates import Content
from heedful.data.splits import Splits
from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.looking.page import Samples
from heedful.models import Spec
from heedful.models.text.transformer import UNKNOWN, TransformerSpec
from heedful.safe.opening import inside
from heedful.tasks.antidiagonal import antidiagonal
from heedful.tasks.losses import written
from heedful.tasks.parallel import texts, tokenizer
from heedful.tasks.rows import Rows
from heedful.tasks.task import (
    PLAIN,
    Batch,
    Finding,
    Ids,
    Task,
    Terms,
    several,
    stack,
)
from heedful.tasks.writing import Writes
from heedful.terminal import progress
from heedful.tokenizers import Broken, Tokenizer

TOGETHER = 10_000  # pairs that are encoded together


@dataclass(frozen=True)
class Encoded:
    """A source and its target as ids, without begin and end, and as they were written."""

    source: Ids
    target: Ids
    texts: Pair
    place: int = 0  # among the pairs that were opened with it


class Pairs(Writes, Task):
    """Reads a source and writes a target, token by token; scored by how many come out exactly."""

    name: ClassVar[str] = "pairs"
    family: ClassVar[str] = "transformer"
    watch: ClassVar[str] = "exact"
    ordered: ClassVar[bool] = True
    filled: bool = True
    input: ClassVar[str] = "a sequence of characters"
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing", "consistency"})
    keys: ClassVar[frozenset[str]] = frozenset(
        {"split_seed", "shortest", "longest", "languages", "form", "tokenizer", "merge_dropout", "too_long"}
    )

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        self.broken: tuple[Broken, Broken] | None = None  # of sources and targets, where merges are left out

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Encoded]]:
        splits = texts(data, seed)
        task = cls(cls.tokenized(data, splits.train))
        if data.merge_dropout:
            sides = [pair.source for pair in splits.train], [pair.target for pair in splits.train]
            source, target = (Broken(task.tokenizer, side, data.merge_dropout, seed) for side in sides)
            task.broken = source, target
        return task, task.encoded(splits)

    @classmethod
    def tokenized(cls, data: DataSpec, pairs: Sequence[Pair]) -> Tokenizer:
        """The tokenizer of pairs to learn from."""
        return tokenizer(data, pairs)

    def ids(self, texts: Sequence[str]) -> Sequence[Ids]:
        """The ids of texts."""
        return self.tokenizer.encode_all(texts)

    def reopen(self, data: DataSpec, seed: int) -> Splits[Encoded]:
        return self.encoded(texts(data, seed))

    def encoded(self, splits: Splits[Pair]) -> Splits[Encoded]:
        """Pairs as ids."""

        def of(pairs: Sequence[Pair]) -> Sequence[Encoded]:
            with progress("pairs become tokens", len(pairs)) as heard:
                sides = Rows(len(self.tokenizer)), Rows(len(self.tokenizer))
                for some in several(pairs, TOGETHER):
                    for rows, texts in zip(sides, ([p.source for p in some], [p.target for p in some]), strict=True):
                        rows.add(self.ids(texts))
                    heard(len(some))
            source, target = sides
            made = Made(lambda at: Encoded(source[at], target[at], pairs[at], at), np.arange(len(pairs)))
            return made if isinstance(pairs, Made) else list(made)

        return Splits(of(splits.train), of(splits.valid), of(splits.test))

    def numbers(self) -> dict[str, int]:
        return {"vocab": len(self.tokenizer)}

    def suits(self, spec: Spec) -> None:
        known, self.longest = len(self.tokenizer), spec.longest
        if isinstance(spec, TransformerSpec) and (spec.source_vocab or known) < known:
            raise Refusal(f"model.source_vocab={spec.source_vocab} is less than the {known} characters; leave it out")

    def contents(self, sample: Encoded) -> dict[str, Content]:
        return {"sources": sample.texts.source, "targets": sample.texts.target}

    def length(self, sample: Encoded) -> int:
        return max(len(sample.source), len(sample.target)) + 1  # with begin or end

    def lengths(self, samples: Sequence[Encoded], epoch: int) -> Sequence[Any]:
        whole = [(len(sample.source) + 1, len(sample.target) + 1) for sample in samples]
        if self.broken is None:
            return whole
        places = [sample.place for sample in samples]
        broken = np.stack([side.lengths(epoch)[places] + 1 for side in self.broken], 1)
        return list(np.where(broken.max(1, keepdims=True) <= self.longest, broken, whole))  # as `fresh` gives them

    def place(self, sample: Encoded) -> str:
        return sample.texts.where(int(len(sample.target) > len(sample.source)))

    def fresh(self, samples: Sequence[Encoded], epoch: int) -> Sequence[Encoded]:
        if self.broken is None:
            return samples
        sources, targets = (side.many([sample.place for sample in samples], epoch) for side in self.broken)
        made = [replace(sample, source=s, target=t) for sample, s, t in zip(samples, sources, targets, strict=True)]
        return [one if self.length(one) <= self.longest else sample for one, sample in zip(made, samples, strict=True)]

    def batch(self, samples: Sequence[Encoded]) -> Batch:
        return {
            "source": self.sources([sample.source for sample in samples]),
            "target": stack([sample.target for sample in samples], first=[self.special.begin], pad=self.special.pad),
            "answer": stack([sample.target for sample in samples], last=[self.special.end], pad=self.special.pad),
        }

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        return written(model, batch, terms, self.special.pad)

    def score(self, model: nn.Module, samples: Sequence[Encoded]) -> dict[str, float]:
        right = written = 0
        exact = 0
        for sample, answer in zip(samples, self.answers(model, [sample.source for sample in samples]), strict=True):
            exact += answer == sample.target
            right += sum(a == b for a, b in zip(answer, sample.target, strict=False))
            written += max(len(answer), len(sample.target))
        return {"exact": exact / max(1, len(samples)), "tokens": right / max(1, written)}

    def doubt(self, text: str) -> str | None:
        ids = self.tokenizer.encode(text.strip())
        if len(ids) >= self.longest > 0:
            return (
                f"{text[:60]!r} and so on is {len(ids) + 1:,} tokens long, and the model learned from {self.longest:,}"
            )
        if UNKNOWN not in ids:
            return None
        parts = text.split() if self.tokenizer.kind == "words" else text.strip()
        strange = sorted({part for part in parts if UNKNOWN in self.tokenizer.encode(part)})
        return f"{text!r} holds what the model never saw: {' '.join(map(repr, strange))}"

    def show(self, model: nn.Module, samples: Sequence[Encoded]) -> Samples:
        answers = self.answers(model, [sample.source for sample in samples])
        rows = tuple(
            (sample.texts.source, sample.texts.target, self.tokenizer.decode(answer))
            for sample, answer in zip(samples, answers, strict=True)
        )
        right = tuple(answer == sample.target for sample, answer in zip(samples, answers, strict=True))
        return Samples("Samples it never saw", ("source", "target", "written"), rows, right)

    def write_input(self, sample: Encoded) -> str:
        return sample.texts.source

    def finding(self, model: nn.Module, samples: Sequence[Encoded]) -> Finding | None:
        if not all(sample.target == sample.source[::-1] for sample in samples):
            return None
        lengths = sorted({len(sample.source) for sample in samples})
        return antidiagonal(model, [self.batch([s for s in samples if len(s.source) == n]) for n in lengths])

    def state(self) -> dict[str, Any]:
        return {"decoding": self.decoding.model_dump(exclude_none=True)}

    def write(self, folder: Path) -> None:
        super().write(folder)
        self.tokenizer.write(folder / "tokenizer.json")

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        path = inside(folder / "tokenizer.json")
        try:
            task = cls(Tokenizer.read(path))
        except Refusal as refused:
            raise Refusal(f"{refused}; copy or train it again") from None
        task.decoding = Decoding.model_validate(state.get("decoding", {}))
        return task
