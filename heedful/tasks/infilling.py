"""Texts with gaps: an encoder-decoder learns to write what is missing, or the whole text anew."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.collate import Batch, Ids, several, to
from heedful.data.crops import Crop, Whole
from heedful.data.transforms import dice_of
from heedful.errors import Refusal
from heedful.looking.page import Samples
from heedful.models import Spec
from heedful.models.numerics import device_of
from heedful.models.specs import BEGIN, END, PAD
from heedful.models.text.encoder_decoder import WriterSpec
from heedful.objectives.cross_entropy import cross_entropy
from heedful.tasks.closed import PLAIN, Terms
from heedful.tasks.corpus import Corpus
from heedful.tasks.losses import written
from heedful.tasks.writing import Writes

SPAN = 3  # tokens of a gap, on average
SIZE = 64  # crops that are scored at once
SHOWN = 24  # tokens of a crop that is shown
MASK = "<mask>"
MARKS = tuple(f"<gap_{at}>" for at in range(100))

Gaps = list[tuple[int, int]]  # where each begins, and where the text goes on
Corrupted = tuple[Whole, Whole, NDArray[np.bool_]]


class Corruption(Corpus, Writes):
    """Reads texts with gaps and writes; scored by how likely it finds what should be written."""

    ordered: ClassVar[bool] = True
    watch: ClassVar[str] = "log_likelihood"
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing", "consistency"})
    keys: ClassVar[frozenset[str]] = Corpus.keys | {"noise"}
    hides: ClassVar[bool] = True
    marks: ClassVar[tuple[str, ...]]  # what stands for a gap

    @abstractmethod
    def gaps(self, length: int, random: np.random.Generator) -> Gaps:
        """Where a text of so many tokens has gaps, in order; they do not touch."""

    @abstractmethod
    def made_of(self, ids: Whole, gaps: Gaps) -> Corrupted:
        """What is read of a text and what is written, and which of the tokens that are written were hidden."""

    @property
    @abstractmethod
    def room(self) -> tuple[int, int]:
        """How many tokens are read and written at most, END counted."""

    @property
    def window(self) -> int:
        return self.longest - 1  # before END

    def suits(self, spec: Spec) -> None:
        super().suits(spec)
        assert isinstance(spec, WriterSpec)
        self.special = spec.special

    def numbers(self) -> dict[str, int]:
        return super().numbers() | {"pad": PAD, "begin": BEGIN, "end": END}

    def corrupted(self, crop: Crop) -> Corrupted:
        """What is read of a crop and what is written: a pure function of the seed, the epoch and the crop."""
        ids = crop.stream.tokens(slice(crop.start, crop.start + self.window))
        ids = ids[ids > END]  # texts that follow each other are one to it
        dice = int(dice_of(0, 0, [crop.place])[0]) if crop.dice is None else crop.dice
        return self.made_of(ids, self.gaps(len(ids), np.random.default_rng(dice % (1 << 64))))

    def batch(self, samples: Sequence[Crop]) -> Batch:
        source, target = (np.full((len(samples), size), PAD) for size in self.room)
        answer, hidden = target.copy(), np.zeros(target.shape, dtype=bool)
        target[:, 0] = BEGIN
        for row, crop in enumerate(samples):
            read, write, veiled = self.corrupted(crop)
            source[row, : len(read) + 1] = [*read, END]
            target[row, 1 : len(write) + 1] = write
            answer[row, : len(write) + 1] = [*write, END]
            hidden[row, : len(write)] = veiled
        made = {"source": source, "target": target, "answer": answer, "hidden": hidden}
        return {name: torch.from_numpy(array) for name, array in made.items()}

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        return written(model, batch, terms)

    @torch.no_grad()
    def score(self, model: nn.Module, samples: Sequence[Crop]) -> dict[str, float]:
        model.eval()
        total, count, right, hidden = 0.0, 0, 0, 0
        for some in several(samples, SIZE):
            batch = to(self.batch(some), device_of(model))
            logits, answer = model(batch["source"], batch["target"]), batch["answer"]
            total += float(cross_entropy(logits.flatten(0, 1), answer.flatten(), PAD))
            count += int((answer != PAD).sum())
            right += int(((logits.argmax(-1) == answer) & batch["hidden"]).sum())
            hidden += int(batch["hidden"].sum())
            self.tell(len(some))
        nats = total / max(1, count)
        perplexity = math.exp(min(nats, 700.0))
        return {"log_likelihood": -nats, "perplexity": perplexity, "accuracy": right / max(1, hidden)}

    # ------------------------------------------------------------------ showing

    def known(self, text: str) -> list[int]:
        ids = super().known(text)
        there = [self.tokenizer.special[mark] in ids for mark in self.marks]
        if not any(there):
            raise Refusal(f"the input has no gap; put {self.marks[0]} where something is missing")
        first = there.index(False) if False in there else len(there)
        if any(there[first:]):
            later = self.marks[there.index(True, first)]
            raise Refusal(f"the input has {later} and no {self.marks[first]}; count gaps from {self.marks[0]} up")
        return ids

    def show(self, model: nn.Module, samples: Sequence[Crop]) -> Samples:
        short = [self.made_of(ids, self.gaps(len(ids), np.random.default_rng(0))) for ids in map(self.first, samples)]
        answers = self.answers(model, [read for read, _, _ in short])
        rows = tuple(
            (self.pieced(read), self.said(read, write.tolist()), self.said(read, answer) or "∅")
            for (read, write, _), answer in zip(short, answers, strict=True)
        )
        return Samples("Texts it never saw", ("read", "should be", "written"), rows)

    def first(self, crop: Crop) -> Whole:
        """The first tokens of a crop."""
        ids = crop.stream.tokens(slice(crop.start, crop.start + self.window))
        return ids[ids > END][:SHOWN]

    def pieced(self, ids: Ids) -> str:
        """Tokens as people read them, gaps among them."""
        return "".join(self.tokenizer.pieces(int(at) for at in ids)).strip()

    def write_input(self, sample: Crop) -> str:
        ids = self.first(sample)
        return self.pieced(self.made_of(ids, self.gaps(len(ids), np.random.default_rng(0)))[0])


class Infilling(Corruption):
    """Writes a whole text anew of which spans are masked, none or many tokens each (BART: Lewis et al., 2020)."""

    name: ClassVar[str] = "infilling"
    family: ClassVar[str] = "bart"
    also: ClassVar[tuple[str, ...]] = ("marian",)
    input: ClassVar[str] = "a text with <mask> in it"
    special_tokens: ClassVar[tuple[str, ...]] = (MASK,)
    usual: ClassVar[float] = 0.3
    marks: ClassVar[tuple[str, ...]] = (MASK,)

    @property
    def room(self) -> tuple[int, int]:
        return self.window + 1, self.window + 1

    def gaps(self, length: int, random: np.random.Generator) -> Gaps:
        """Spans whose lengths are Poisson's, at places by chance, until enough tokens are hidden."""
        wanted, read, found = round(self.noise * length), length, []
        free = np.ones(length + 1, dtype=bool)
        for _ in range(length):
            if wanted <= 0:
                break
            size = min(int(random.poisson(SPAN)), wanted)
            at = int(random.integers(0, length - size + 1))
            room = size > 0 or read < self.window  # a gap of no token makes what is read longer
            if room and free[max(0, at - 1) : at + size + 1].all():
                free[at : at + max(1, size)] = False
                found.append((at, at + size))
                wanted -= max(1, size)
                read += 1 - size
        return sorted(found)

    def made_of(self, ids: Whole, gaps: Gaps) -> Corrupted:
        mask = np.array([self.tokenizer.special[MASK]])
        hidden = np.zeros(len(ids), dtype=bool)
        for start, end in gaps:
            hidden[start:end] = True
        return np.concatenate([*between(ids, gaps, [mask] * len(gaps))]), ids, hidden


class Spans(Corruption):
    """Writes the spans that are missing in a text, each behind the mark of its gap (T5: Raffel et al., 2020)."""

    name: ClassVar[str] = "spans"
    family: ClassVar[str] = "t5"
    also: ClassVar[tuple[str, ...]] = ("bart", "marian")
    input: ClassVar[str] = "a text with <gap_0>, <gap_1> and so on in it"
    special_tokens: ClassVar[tuple[str, ...]] = MARKS
    usual: ClassVar[float] = 0.15
    marks: ClassVar[tuple[str, ...]] = MARKS

    @property
    def room(self) -> tuple[int, int]:
        hidden, gaps = self.counts(self.window)
        return self.window + 1, hidden + gaps + 2

    def counts(self, length: int) -> tuple[int, int]:
        """How many tokens of a text are hidden, and in how many gaps."""
        hidden = min(max(1, round(self.noise * length)), length - 1)
        gaps = max(1, min(round(hidden / SPAN), length - hidden))
        if gaps >= len(MARKS):
            raise Refusal(f"{gaps} gaps in {length} tokens are more than the {len(MARKS)} marks; lower data.noise")
        return hidden, gaps

    def gaps(self, length: int, random: np.random.Generator) -> Gaps:
        """As many tokens are hidden in as many gaps, whatever the dice say: a text has one shape."""
        if length < 2:
            return []
        hidden, gaps = self.counts(length)
        kept, veiled = parts(length - hidden, gaps, random), parts(hidden, gaps, random)
        ends = np.cumsum(np.stack((kept, veiled), 1).ravel())
        return [(int(ends[2 * at]), int(ends[2 * at + 1])) for at in range(gaps)]

    def made_of(self, ids: Whole, gaps: Gaps) -> Corrupted:
        marks = [np.array([self.tokenizer.special[mark]]) for mark in MARKS[: len(gaps) + 1]]
        read = np.concatenate([*between(ids, gaps, marks[: len(gaps)])])
        spans = [part for (start, end), mark in zip(gaps, marks, strict=False) for part in (mark, ids[start:end])]
        write = np.concatenate([*spans, marks[-1]])
        return read, write, ~np.isin(write, np.concatenate(marks))

    def said(self, source: Ids, tokens: Sequence[int]) -> str:
        """The text with what was written in its gaps."""
        marks = {self.tokenizer.special[mark] for mark in MARKS}
        spans: dict[int, list[int]] = {}
        mark = -1
        for at in tokens:
            mark = at if at in marks else mark
            spans.setdefault(mark, []).append(at)
        return self.tokenizer.decode([one for at in map(int, source) for one in spans.get(at, [at])])


def between(ids: Whole, gaps: Gaps, marks: Sequence[Whole]) -> Iterator[Whole]:
    """What stands around gaps, with a mark in the place of each."""
    last = 0
    for (start, end), mark in zip(gaps, marks, strict=True):
        yield ids[last:start]
        yield mark
        last = end
    yield ids[last:]


def parts(total: int, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """So many numbers of 1 or more by chance that sum to a total."""
    cuts = np.sort(random.choice(total - 1, count - 1, replace=False)) + 1
    return np.diff(np.concatenate(([0], cuts, [total])))
