"""Denoising: an encoder-decoder learns to write what is missing in a text (T5), or the whole text anew (BART)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from heedful.data.collate import Batch, Ids, several, to
from heedful.data.encoded_pairs import Encoded
from heedful.data.parallel_sample import Pair
from heedful.data.readers.corpus import Cropped, Noisy, readers_of_texts
from heedful.data.sample_dice import dice_of
from heedful.data.span_corruption import Corrupted, Corruption, SpanCorruption, TextInfilling
from heedful.data.splits import Splits
from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import BEGIN, END, PAD, Crop, Whole
from heedful.errors import Refusal
from heedful.looking.page import Samples
from heedful.metrics.perplexity import HiddenTokens, LogLikelihood, Perplexity, TokenSums
from heedful.models import Spec
from heedful.models.numerics import device_of
from heedful.models.text.encoder_decoder import WriterSpec
from heedful.objectives.cross_entropy import cross_entropy
from heedful.objectives.seq2seq import TeacherForcing
from heedful.pipelines.pipeline import Heard
from heedful.pipelines.seq2seq_pipeline import Seq2Seq, TextSource
from heedful.results import Text as Written
from heedful.tasks.task import Task
from heedful.tasks.text.cropping import CropCollate, CropLearned, crop_texts, hidden_share, with_stride

SIZE = 64  # crops that are scored at once
SHOWN = 24  # tokens of a crop that is shown


class Keys(Cropped, Noisy):
    """The keys of texts that get gaps."""


@dataclass(frozen=True)
class GapsLearned(CropLearned):
    """The tokenizer of texts, which has marks of gaps, and how much is hidden of their crops."""

    around: ClassVar[int] = 1  # END
    kind: ClassVar[type[Corruption]]
    marks: ClassVar[tuple[str, ...]]  # what stands for a gap

    @property
    def corruption(self) -> Corruption:
        """How texts get gaps."""
        return self.kind(self.window, self.noise, tuple(self.tokenizer.special[mark] for mark in self.marks))

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"pad": PAD, "begin": BEGIN, "end": END}

    def suited(self, spec: Spec) -> Self:
        assert isinstance(spec, WriterSpec)
        return replace(super().suited(spec), special=spec.special)

    def first(self, crop: Crop) -> Corrupted:
        """The first tokens of a crop, as they are read and written where they are shown."""
        return self.corruption.of(text_of(crop, self)[:SHOWN], 0)

    def pieced(self, ids: Ids) -> str:
        """Tokens as people read them, gaps among them."""
        return "".join(self.tokenizer.pieces(int(at) for at in ids)).strip()

    def whole(self, source: Ids, tokens: Sequence[int]) -> str:
        """The text that what was written to a source makes whole."""
        return self.tokenizer.decode(self.corruption.whole(source, tokens))


@dataclass(frozen=True)
class InfillingLearned(GapsLearned):
    """What is kept of texts with masks."""

    kind: ClassVar[type[Corruption]] = TextInfilling
    marks: ClassVar[tuple[str, ...]] = ("<mask>",)


@dataclass(frozen=True)
class SpansLearned(GapsLearned):
    """What is kept of texts with numbered gaps."""

    kind: ClassVar[type[Corruption]] = SpanCorruption
    marks: ClassVar[tuple[str, ...]] = tuple(f"<gap_{at}>" for at in range(100))


@dataclass(frozen=True)
class Fitting:
    """Learns of texts how they become tokens, for a task of a name with a usual share of hidden ones."""

    learned: type[GapsLearned]
    name: str
    usual: float

    def __call__(self, splits: Splits[Text], reader: Any, seed: int) -> GapsLearned:
        own = {"longest": reader.longest, "stride": reader.stride}
        noise = hidden_share(reader.noise, self.usual, self.name)
        return self.learned.of_texts(splits, reader, seed, self.learned.marks, noise=noise, **own)


def text_of(crop: Crop, learned: GapsLearned) -> Whole:
    """The tokens of a crop; texts that follow each other are one."""
    ids = crop.stream.tokens(slice(crop.start, crop.start + learned.window))
    return ids[ids > END]


@dataclass(frozen=True)
class GapsCollate(CropCollate[GapsLearned]):
    """Crops with gaps: a pure function of the seed, the epoch and the crop."""

    hides: ClassVar[bool] = True

    def batch(self, samples: Sequence[Crop], learned: GapsLearned) -> Batch:
        corruption = learned.corruption
        source, target = (np.full((len(samples), size), PAD) for size in corruption.room)
        answer, hidden = target.copy(), np.zeros(target.shape, dtype=bool)
        target[:, 0] = BEGIN
        for row, crop in enumerate(samples):
            dice = int(dice_of(0, 0, [crop.place])[0]) if crop.dice is None else crop.dice
            read, write, veiled = corruption.of(text_of(crop, learned), dice % (1 << 64))
            source[row, : len(read) + 1] = [*read, END]
            target[row, 1 : len(write) + 1] = write
            answer[row, : len(write) + 1] = [*write, END]
            hidden[row, : len(write)] = veiled
        made = {"source": source, "target": target, "answer": answer, "hidden": hidden}
        return {name: torch.from_numpy(array) for name, array in made.items()}

    def as_input(self, sample: Crop, learned: GapsLearned) -> str:
        return learned.pieced(learned.first(sample)[0])


COLLATE = GapsCollate()


@torch.no_grad()
def judge(model: nn.Module, samples: Sequence[Crop], learned: GapsLearned, heard: Heard) -> TokenSums:
    """The losses of all tokens that are to be written, and of how many that were hidden the likeliest one is right."""
    model.eval()
    sums = TokenSums()
    for some in several(samples, SIZE):
        batch = to(COLLATE.batch(some, learned), device_of(model))
        logits, answer, hidden = model(batch["source"], batch["target"]), batch["answer"], batch["hidden"]
        loss, right = cross_entropy(logits.flatten(0, 1), answer.flatten(), PAD), (logits.argmax(-1) == answer) & hidden
        sums += TokenSums(float(loss), int((answer != PAD).sum()), int(right.sum()), int(hidden.sum()))
        heard(len(some))
    return sums


@dataclass(frozen=True)
class GapSource(TextSource):
    """Source text with gaps, of which there must be some, counted from the first."""

    def accepts(self, given: Any, what: str, learned: Any) -> Encoded:
        made, marks = super().accepts(given, what, learned), learned.marks
        there = [learned.tokenizer.special[mark] in made.source for mark in marks]
        if not any(there):
            raise Refusal(f"the input has no gap; put {marks[0]} where something is missing")
        first = there.index(False) if False in there else len(there)
        if any(there[first:]):
            later = marks[there.index(True, first)]
            raise Refusal(f"the input has {later} and no {marks[first]}; count gaps from {marks[0]} up")
        return made

    def warning(self, given: Any, learned: Any) -> str | None:
        return None


@dataclass(frozen=True)
class FillGaps(Seq2Seq[GapsLearned]):
    """Filling gaps: a text is made whole; so are the beginnings of crops, which are shown."""

    source: TextSource = GapSource()

    def results(self, model: nn.Module, samples: Sequence[Any], learned: GapsLearned, heard: Heard) -> list[Written]:
        given = [beginning_of(one, learned) if isinstance(one, Crop) else one for one in samples]
        return super().results(model, given, learned, heard)

    def said(self, sample: Encoded, tokens: Sequence[int], learned: GapsLearned) -> str:
        return learned.whole(sample.source, tokens)


def beginning_of(crop: Crop, learned: GapsLearned) -> Encoded:
    """The beginning of a crop, as the model reads it."""
    read, write, _ = learned.first(crop)
    return Encoded(read, write, Pair("", ""))


def table(samples: Sequence[Crop], results: Sequence[Written], learned: GapsLearned) -> Samples:
    """Texts with gaps, what they should be, and what was written."""
    firsts = [learned.first(one) for one in samples]
    rows = tuple(
        (learned.pieced(read), learned.whole(read, write.tolist()), said.text or "∅")
        for (read, write, _), said in zip(firsts, results, strict=True)
    )
    return Samples("Texts it never saw", ("read", "should be", "written"), rows)


INFILLING = Task(
    name="infilling",
    readers=readers_of_texts(Keys),
    fit=Fitting(InfillingLearned, "infilling", 0.3),
    learned=InfillingLearned,
    encode=crop_texts,
    again=with_stride,
    collate=COLLATE,
    objective=TeacherForcing(),
    metrics=(LogLikelihood(source=judge), Perplexity(source=judge), HiddenTokens(source=judge)),
    watch="log_likelihood",
    pipeline=FillGaps("a text with <mask> in it"),
    table=table,
    families=("bart", "marian"),
)
SPANS = replace(
    INFILLING,
    name="span-corruption",
    fit=Fitting(SpansLearned, "span-corruption", 0.15),
    learned=SpansLearned,
    pipeline=FillGaps("a text with <gap_0>, <gap_1> and so on in it"),
    families=("t5", "bart", "marian"),
)
