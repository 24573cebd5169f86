"""From one sequence to another: reversing, sorting, any pairs of a user's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from heedful.data import files, toys
from heedful.data.batches import Splits, divided, opened
from heedful.data.files import Pair
from heedful.data.spec import DataSpec
from heedful.decoding import beam, greedy
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.page import Example, Samples
from heedful.models import Spec
from heedful.models.transformer import BEGIN, END, PAD, UNKNOWN, Transformer, TransformerSpec
from heedful.tasks.antidiagonal import antidiagonal
from heedful.tasks.task import Batch, Finding, Task, device_of, maps, nonempty, precise, read_all, several, stack
from heedful.text.characters import Tokenizer

MADE = {"reverse": toys.reverse, "sort": toys.sort}


@dataclass(frozen=True)
class Encoded:
    """A source and its target as ids, without begin and end, and as they were written."""

    source: list[int]
    target: list[int]
    texts: Pair


class Pairs(Task):
    """Reads a source and writes a target, character by character; scored by how many come out exactly."""

    name: ClassVar[str] = "pairs"
    family: ClassVar[str] = "transformer"
    watch: ClassVar[str] = "exact"
    ordered: ClassVar[bool] = True
    input: ClassVar[str] = "a sequence of characters"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Encoded]]:
        splits = texts(data, seed)
        task = cls(Tokenizer.of_characters(text for pair in splits.train for text in pair))
        return task, task.encoded(splits)

    def reopen(self, data: DataSpec, seed: int) -> Splits[Encoded]:
        return self.encoded(texts(data, seed))

    def encoded(self, splits: Splits[Pair]) -> Splits[Encoded]:
        """Pairs as ids."""
        encode = self.tokenizer.encode

        def ids(pairs: Sequence[Pair]) -> list[Encoded]:
            return [Encoded(encode(source), encode(target), (source, target)) for source, target in pairs]

        return Splits(ids(splits.train), ids(splits.valid), ids(splits.test))

    def numbers(self) -> dict[str, int]:
        return {"vocab": len(self.tokenizer)}

    def suits(self, spec: Spec) -> None:
        known = len(self.tokenizer)
        if isinstance(spec, TransformerSpec) and (spec.source_vocab or known) < known:
            raise Refusal(f"model.source_vocab={spec.source_vocab} is less than the {known} characters; leave it out")

    def length(self, sample: Encoded) -> int:
        return max(len(sample.source), len(sample.target)) + 1  # with begin or end

    def batch(self, samples: Sequence[Encoded]) -> Batch:
        return {
            "source": self.sources([sample.source for sample in samples]),
            "target": stack([[BEGIN, *sample.target] for sample in samples]),
            "answer": stack([[*sample.target, END] for sample in samples]),
        }

    def sources(self, ids: Sequence[list[int]]) -> Tensor:
        """Sources as the model reads them: an end after each, then padding."""
        return stack([[*row, END] for row in ids])

    def loss(self, model: nn.Module, batch: Batch, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        logits = precise(model(batch["source"], batch["target"]).flatten(0, 1))
        answer = batch["answer"].flatten()
        total = cross_entropy(logits, answer, ignore_index=PAD, reduction="sum", label_smoothing=smoothing)
        return total, (answer != PAD).sum()

    def score(self, model: nn.Module, samples: Sequence[Encoded]) -> dict[str, float]:
        right = written = 0
        exact = 0
        for sample, answer in zip(samples, self.answers(model, [sample.source for sample in samples]), strict=True):
            exact += answer == sample.target
            right += sum(a == b for a, b in zip(answer, sample.target, strict=False))
            written += max(len(answer), len(sample.target))
        return {"exact": exact / max(1, len(samples)), "tokens": right / max(1, written)}

    def answers(self, model: nn.Module, sources: Sequence[list[int]], size: int = 500) -> list[list[int]]:
        """What the model writes for each source, greedily; sources of like length together, order kept."""
        order = sorted(range(len(sources)), key=lambda at: len(sources[at]))
        made: dict[int, list[int]] = {}
        for start in range(0, len(order), size):
            places = order[start : start + size]
            batch = self.sources([sources[at] for at in places]).to(device_of(model))
            made |= {at: list(a.tokens) for at, a in zip(places, greedy(cast(Transformer, model), batch), strict=True)}
        return [made[at] for at in range(len(sources))]

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[str]:
        for group in several(read_all(inputs, self.known)):
            for answer in self.answers(model, group):
                yield self.tokenizer.decode(answer)

    def known(self, text: str) -> list[int]:
        """The ids of an input."""
        return self.tokenizer.encode(nonempty(text, self.input))

    def doubt(self, text: str) -> str | None:
        if UNKNOWN not in self.tokenizer.encode(text.strip()):
            return None
        strange = sorted({sign for sign in text.strip() if UNKNOWN in self.tokenizer.encode(sign)})
        return f"{text!r} holds what the model never saw: {' '.join(map(repr, strange))}"

    def best(
        self, model: nn.Module, inputs: Iterable[str], beams: int, best: int, length_penalty: float = 0.0
    ) -> Iterator[list[tuple[str, float]]]:
        """The n best answers to each input by beam search, with their scores."""
        for group in several(read_all(inputs, self.known), 64):
            source = self.sources(group).to(device_of(model))
            for answers in beam(cast(Transformer, model), source, beams, best, length_penalty=length_penalty):
                yield [(self.tokenizer.decode(answer.tokens), answer.score) for answer in answers]

    def look(self, model: nn.Module, text: str) -> Example:
        """One teacher-forced pass over the input and the model's own answer to it."""
        ids = self.known(text)
        answer = self.answers(model, [ids])[0]
        batch = self.sources([ids]).to(device_of(model))
        model.eval()
        with torch.no_grad(), look(model) as seen:
            model(batch, stack([[BEGIN, *answer]]).to(batch.device))
        source, written = self.tokenizer.pieces([*ids, END]), self.tokenizer.pieces([*answer, END])
        read = self.tokenizer.pieces([BEGIN, *answer])

        def words(path: str) -> tuple[list[str], list[str]]:
            if path.startswith("encoder"):
                return source, source
            return written, source if path.endswith("cross") else read

        return Example(f"{text} → {self.tokenizer.decode(answer)}", maps(seen, words))

    def show(self, model: nn.Module, samples: Sequence[Encoded]) -> Samples:
        answers = self.answers(model, [sample.source for sample in samples])
        rows = tuple((*s.texts, self.tokenizer.decode(a)) for s, a in zip(samples, answers, strict=True))
        right = tuple(answer == sample.target for sample, answer in zip(samples, answers, strict=True))
        return Samples("Samples it never saw", ("source", "target", "written"), rows, right)

    def write_input(self, sample: Encoded) -> str:
        return sample.texts[0]

    def finding(self, model: nn.Module, samples: Sequence[Encoded]) -> Finding | None:
        if not all(sample.target == sample.source[::-1] for sample in samples):
            return None
        lengths = sorted({len(sample.source) for sample in samples})
        return antidiagonal(model, [self.batch([s for s in samples if len(s.source) == n]) for n in lengths])

    def write(self, folder: Path) -> None:
        super().write(folder)
        self.tokenizer.write(folder / "tokenizer.json")

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        try:
            return cls(Tokenizer.read(folder / "tokenizer.json"))
        except Refusal as refused:
            raise Refusal(f"{refused}; copy or train it again") from None


def texts(data: DataSpec, seed: int) -> Splits[Pair]:
    """Pairs made on the fly, or a user's own."""
    if data.name in MADE:
        return MADE[data.name](data, seed)
    return opened(data, files.pairs, lambda pairs, what: divided(pairs, lambda pair: pair[0], what), MADE)
