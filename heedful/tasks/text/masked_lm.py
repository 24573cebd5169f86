"""Masked language modelling: an encoder learns to find what is hidden in a text, from both sides of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import nn

from heedful.data.collate import Batch, several, to
from heedful.data.readers.corpus import Cropped, Noisy, readers_of_texts
from heedful.data.splits import Splits
from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import BEGIN, END, PAD, Crop
from heedful.errors import Refusal
from heedful.looking.page import Samples
from heedful.metrics.perplexity import HiddenTokens, LogLikelihood, Perplexity, TokenSums
from heedful.models import Spec
from heedful.models.numerics import device_of
from heedful.objectives.cross_entropy import cross_entropy
from heedful.objectives.masked_tokens import MaskedTokens, frame_crops, hide_as_learned
from heedful.pipelines.fill_mask import FillMask, MaskedText
from heedful.pipelines.pipeline import Heard
from heedful.results import Result
from heedful.results import Text as Found
from heedful.tasks.task import Task
from heedful.tasks.text.cropping import CropCollate, CropLearned, crop_texts, hidden_share, with_stride

MASK = "<mask>"
USUAL = 0.15  # of tokens, which are hidden
SIZE = 64  # crops that are scored at once
SHOWN = 40  # tokens of a sample that is shown


class Keys(Cropped, Noisy):
    """The keys of texts in which tokens are hidden."""

    whole_words: bool = False
    """Whether all tokens of a word are masked together."""


@dataclass(frozen=True)
class MaskedCrops(CropLearned, MaskedText):
    """The tokenizer of texts, which has a mask, and how much is hidden of their crops."""

    around: ClassVar[int] = 2  # BEGIN and END

    @property
    def masking(self) -> int:
        """The id of the mask that stands for tokens while learning."""
        return self.tokenizer.special[MASK]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"output": "masked", "pad": PAD, "begin": BEGIN, "end": END}

    def suited(self, spec: Spec) -> Self:
        made = MaskedText.suited(self, spec)
        if made.letters:
            raise Refusal("model.letters: what is hidden is learned without knowing how tokens are spelt; leave it out")
        return replace(made, longest=self.longest)

    def shown(self, ids: Sequence[int]) -> str:
        """Tokens as people read them, masks among them."""
        return "".join(self.tokenizer.pieces([at for at in ids[:SHOWN] if at != PAD])).replace("\n", " ⏎ ").strip()


def fit(splits: Splits[Text], reader: Any, seed: int) -> MaskedCrops:
    """Learns of texts how they become tokens."""
    own = {"longest": reader.longest, "stride": reader.stride, "whole_words": reader.whole_words}
    noise = hidden_share(reader.noise, USUAL, "masked-lm")
    return MaskedCrops.of_texts(splits, reader, seed, (MASK,), noise=noise, **own)


@dataclass(frozen=True)
class MaskedCollate(CropCollate[MaskedCrops]):
    """Crops with dice, by which tokens are hidden; texts in a row are read together (RoBERTa: Liu et al., 2019)."""

    hides: ClassVar[bool] = True

    def batch(self, samples: Sequence[Crop], learned: MaskedCrops) -> Batch:
        made = self.rows(samples, learned.window, learned)
        made.pop("documents", None)
        return made

    def as_input(self, sample: Crop, learned: MaskedCrops) -> str:
        """The first words of a crop, the middle one masked."""
        words = learned.text(sample, 0, SHOWN).split()[:16]
        return " ".join((*words[: len(words) // 2], MASK, *words[len(words) // 2 + 1 :]))


COLLATE = MaskedCollate()


@torch.no_grad()
def judge(model: nn.Module, samples: Sequence[Crop], learned: MaskedCrops, heard: Heard) -> TokenSums:
    """The losses of the tokens that are hidden in crops, and of how many the likeliest one is right."""
    model.eval()
    sums = TokenSums()
    for some in several(samples, SIZE):
        tokens, answer = hide_as_learned(to(COLLATE.batch(some, learned), device_of(model)), learned)
        logits = model(*frame_crops(tokens))[:, 1:-1]
        loss, count = cross_entropy(logits.flatten(0, 1), answer.flatten(), PAD), int((answer != PAD).sum())
        sums += TokenSums(float(loss), count, int(((logits.argmax(-1) == answer) & (answer != PAD)).sum()), count)
        heard(len(some))
    return sums


@dataclass(frozen=True)
class FillHidden(FillMask[MaskedCrops]):
    """Filling masks; of crops, which are shown, what is found where they have something hidden."""

    @torch.no_grad()
    def results(self, model: nn.Module, samples: Sequence[Any], learned: MaskedCrops, heard: Heard) -> Sequence[Result]:
        if not all(isinstance(one, Crop) for one in samples):
            return super().results(model, samples, learned, heard)
        model.eval()
        tokens, answer = hide_as_learned(to(COLLATE.batch(samples, learned), device_of(model)), learned)
        found = torch.where(answer != PAD, model(*frame_crops(tokens))[:, 1:-1].argmax(-1), tokens).tolist()
        heard(len(samples))
        return [Found(learned.shown(ids), None, tuple(ids)) for ids in found]


def table(samples: Sequence[Crop], results: Sequence[Found], learned: MaskedCrops) -> Samples:
    """Texts with what is hidden in them, and what was found."""
    batch = COLLATE.batch(samples, learned)
    read, wanted = hide_as_learned(batch, learned)[0].tolist(), batch["tokens"].tolist()
    rows = tuple((learned.shown(ids), found.text) for ids, found in zip(read, results, strict=True))
    right = tuple(list(one.tokens[:SHOWN]) == ids[:SHOWN] for one, ids in zip(results, wanted, strict=True))
    return Samples("Texts it never saw", ("read", "found"), rows, right)


TASK = Task(
    name="masked-lm",
    readers=readers_of_texts(Keys),
    fit=fit,
    learned=MaskedCrops,
    encode=crop_texts,
    again=with_stride,
    collate=COLLATE,
    objective=MaskedTokens(),
    metrics=(LogLikelihood(source=judge), Perplexity(source=judge), HiddenTokens(source=judge)),
    watch="log_likelihood",
    pipeline=FillHidden("a text with <mask> in it"),
    table=table,
    families=("bert", "roberta", "camembert", "distilbert", "albert"),
)
