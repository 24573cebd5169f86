"""Translation: sub-words in, sub-words out, scored by BLEU; and which word was translated by which."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import sacrebleu
import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, Ids, alike, pick, to
from heedful.data.data_spec import DataSpec
from heedful.data.formats.parallel_text import Pair
from heedful.data.ibm_model1 import lexicon
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.alignment import Alignment, agreement, guide, links
from heedful.looking.page import Alignment as Aligned
from heedful.looking.page import Example, Figures, Samples
from heedful.models.numerics import device_of, precise
from heedful.models.text.transformer import UNKNOWN
from heedful.pipelines.reading_inputs import nonempty
from heedful.tasks.closed import PLAIN, Terms
from heedful.tasks.gaze import Gaze, Words, choose, crossings, of_words
from heedful.tasks.pairs import Encoded, Pairs
from heedful.views.finding import Finding

LOOKED_AT = 500  # validation samples by which layer and head are chosen
ROOM = 8192  # tokens of a batch that is read and not written


class Translation(Pairs):
    """Reads a sentence and writes its translation; scored by BLEU and chrF on whole texts."""

    name: ClassVar[str] = "translation"
    watch: ClassVar[str] = "bleu"
    input: ClassVar[str] = "a sentence"
    told: ClassVar[int] = 2
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing", "consistency", "guidance"})
    keys: ClassVar[frozenset[str]] = Pairs.keys | {"bleu"}

    bleu: str = "13a"
    gaze: Gaze | None = None
    guided = False

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Encoded]]:
        task, splits = super().open(data, seed)
        task.bleu = data.bleu
        return task, splits

    def reopen(self, data: DataSpec, seed: int) -> Splits[Encoded]:
        self.bleu = data.bleu
        return super().reopen(data, seed)

    # ------------------------------------------------------------------ learning

    def asked(self, terms: Terms, splits: Splits[Encoded]) -> None:
        self.guided = bool(terms.guidance)
        if self.guided and any(sample.texts.links is None for sample in splits.train):
            raise Refusal("training.guidance learns from alignments; name them with data.train.alignment=FILE")

    def batch(self, samples: Sequence[Encoded]) -> Batch:
        batch = super().batch(samples)
        if self.guided and all(sample.texts.links is not None for sample in samples):
            batch["guide"] = torch.zeros(*batch["answer"].shape, batch["source"].shape[1])  # B T S
            for at, sample in enumerate(samples):
                source, target = self.words(sample)
                wanted = guide(sample.texts.links.sure if sample.texts.links else (), target, source)
                batch["guide"][at, : len(target), : len(source)] = wanted
        return batch

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        if not terms.guidance:
            return super().loss(model, batch, terms)
        with look(model) as seen:
            total, count = super().loss(model, batch, terms)
        layer = [path for path in seen.paths if path.endswith("cross")][-2:][0]  # last but one (Garg et al., 2019)
        weights = precise(seen.weights(layer, heads=[0])[:, 0])  # B T S, or twice as many with two passes
        wanted = batch["guide"].to(weights).repeat(len(weights) // len(batch["guide"]), 1, 1)
        missed = -(wanted * weights.clamp(min=1e-9).log()).sum() * len(batch["guide"]) / len(weights)
        return total + terms.guidance * missed, count

    # ------------------------------------------------------------------ scoring

    def score(self, model: nn.Module, samples: Sequence[Encoded]) -> dict[str, float]:
        answers = self.answers(model, [sample.source for sample in samples])
        written, references = self.tokenizer.decode_all(answers), [[sample.texts.target for sample in samples]]
        return {
            "bleu": sacrebleu.corpus_bleu(written, references, tokenize=self.bleu, force=True).score,
            "chrf": sacrebleu.corpus_chrf(written, references).score,
            "perplexity": self.perplexity(model, samples),
        }

    @torch.no_grad()
    def perplexity(self, model: nn.Module, samples: Sequence[Encoded]) -> float:
        """How many tokens the model is torn between on average, told the right beginning."""
        model.eval()
        total, count = 0.0, 0
        for batch in self.batches(samples):
            loss, tokens = super().loss(model, to(batch, device_of(model)))
            total, count = total + float(loss), count + int(tokens)
        return math.exp(min(total / max(1, count), 700.0))

    def batches(self, samples: Sequence[Encoded]) -> Iterator[Batch]:
        """Samples of like length as tensors, to be read and not written."""
        for places in alike([self.length(sample) for sample in samples], ROOM):
            yield self.batch([samples[at] for at in places])

    def show(self, model: nn.Module, samples: Sequence[Encoded]) -> Samples:
        return Samples("Sentences it never saw", ("source", "reference", "written"), super().show(model, samples).rows)

    def known(self, text: str) -> list[int]:
        return self.tokenizer.encode(text) if text.strip() else []  # a blank line translates a blank line

    # ------------------------------------------------------------------ aligning

    def words(self, sample: Encoded) -> Words:
        """The word of each of a sample's sub-words."""
        pair = sample.texts
        return self.worded(sample.source, pair.source)[1], self.worded(sample.target, pair.target)[1]

    def worded(self, ids: Ids, text: str) -> tuple[list[str], list[int]]:
        """The words of a text, and the word of each of its ids; an id that is not known stands where it was read."""
        if UNKNOWN in ids:
            return text.split(), self.tokenizer.placed(text)
        return self.tokenizer.words(tuple(ids))

    def settle(self, model: nn.Module, splits: Splits[Encoded]) -> None:
        """Chooses layer and head: by the alignments given for validation, or by those of a lexicon of the data."""
        some = pick(splits.valid, LOOKED_AT)
        if all(sample.texts.links is not None for sample in some):
            wanted = [sorted(sample.texts.links.sure) for sample in some if sample.texts.links]
        else:
            wanted = lexicon(split(sample) for sample in splits.train).silver([split(sample) for sample in some])
        groups = list(alike([self.length(sample) for sample in some], ROOM))
        self.gaze, _ = choose(
            [self.batch([some[at] for at in group]) for group in groups],
            [[self.words(some[at]) for at in group] for group in groups],
            [[wanted[at] for at in group] for group in groups],
            lambda batch: crossings(model, batch),
        )

    def align(self, model: nn.Module, pairs: Sequence[tuple[str, str | None]]) -> Iterator[Alignment]:
        """Which words belong together in each pair, in order; a source without a target is translated first."""
        sources = [source for source, target in pairs if target is None]
        written = iter([answer.plain() for answer in self.predict(model, sources)])
        whole = [(source, next(written) if target is None else target) for source, target in pairs]
        for start in range(0, len(whole), LOOKED_AT):
            some = [Pair(source, target) for source, target in whole[start : start + LOOKED_AT]]
            yield from self.aligned(model, self.encoded(Splits(some, (), ())).train)

    def aligned(self, model: nn.Module, samples: Sequence[Encoded]) -> Iterator[Alignment]:
        """Which words belong together in each sample, in order."""
        made: dict[int, Alignment] = {}
        for places in alike([self.length(sample) for sample in samples], ROOM):
            crossed = crossings(model, self.batch([samples[at] for at in places]))
            gaze = self.gaze or Gaze(list(crossed)[-1], None, read=False)
            if gaze.layer not in crossed or not 0 <= (gaze.head or 0) < crossed[gaze.layer].shape[1] - 1:
                raise Refusal(f"task.json: the model has no {gaze}; copy or train it again")
            for at, weights in zip(places, crossed[gaze.layer], strict=True):
                head = weights[-1:] if gaze.head is None else weights[gaze.head : gaze.head + 1]
                made[at] = self.alignment(samples[at], head, gaze.read)
        yield from (made[at] for at in range(len(samples)))

    def alignment(self, sample: Encoded, weights: Tensor, read: bool) -> Alignment:
        """The alignment that one head's weights (1 T S) show."""
        source, _ = self.worded(sample.source, sample.texts.source)
        target, _ = self.worded(sample.target, sample.texts.target)
        matrix = of_words(weights, self.words(sample), read)[0]
        return Alignment(tuple(source), tuple(target), matrix, tuple(links(matrix)), sample.texts.links)

    def look(self, model: nn.Module, text: str) -> Example:
        example = super().look(model, nonempty(text, self.input))
        found = next(self.align(model, [(text, None)]))
        if not found.source or not found.target:
            return example
        return replace(example, maps=(found.map, *example.maps), words=found)

    def finding(self, model: nn.Module, samples: Sequence[Encoded]) -> Finding | None:
        if self.gaze is None:
            return None
        gaze, shown = self.gaze, list(self.aligned(model, pick(samples, LOOKED_AT)))
        head = "mean" if gaze.head is None else str(gaze.head)
        gold = [one for one in shown if one.gold is not None]
        rate = agreement([one.links for one in gold], [one.gold.sure for one in gold if one.gold]).error_rate
        said = [("words are linked by", gaze.layer, str(gaze))]
        if gold:
            said.append(
                ("alignment error rate", f"{100 * rate:.1f} %", f"of the links given for {len(gold):,} samples")
            )
        note = "Each word with the words it was linked to by where the model looks, references in place of its answers."
        pictures = Aligned("Alignments", tuple(shown[:8]), note)
        return Finding(Figures("Word by word", tuple(said)), gaze.layer, head, (pictures,))

    # ------------------------------------------------------------------ keeping

    def state(self) -> dict[str, Any]:
        return super().state() | {"bleu": self.bleu, "gaze": asdict(self.gaze) if self.gaze else None}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        task = super().read(folder, state)
        task.bleu = DataSpec(bleu=state["bleu"]).bleu
        task.gaze = Gaze.of(state["gaze"]) if state["gaze"] is not None else None
        return task


def split(sample: Encoded) -> tuple[list[str], list[str]]:
    """The words of a sample's source and target."""
    return sample.texts.source.split(), sample.texts.target.split()
