"""Fine-tuning: what the tasks of an encoder of text share, which begins by chance or with what it learned before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor

from heedful.data.collate import Batch, Collate, stack
from heedful.data.encoded_text import EncodedText, batch_of
from heedful.data.near_duplicates import Content
from heedful.data.sample_dice import dice_of, draw
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.pipelines.choose_tokenizer import tokenizer_for
from heedful.pipelines.encoder_text import TextLearned
from heedful.tokenizers import Joined

FAMILIES = ("bert", "roberta", "camembert", "distilbert", "albert", "gpt", "llama", "bart")
BLANKS = 51  # purpose of dice


@dataclass(frozen=True)
class FineTuned(TextLearned):
    """What is kept of texts to learn from, and the noise (Iyyer et al., 2015): the share of tokens made unknown."""

    noise: float = 0.0
    seed: int = 0

    @classmethod
    def of_texts(cls, splits: Splits[Any], reader: Any, seed: int, **more: Any) -> Self:
        """Learns how the texts to learn from become tokens, beside what else is known of them."""
        texts = (text for sample in splits.train for text in sample.texts)
        made = cls(tokenizer_for(reader.tokens_of, texts), noise=reader.noise or 0.0, seed=seed, **more)
        if made.noise and made.unknown is None:
            raise Refusal(
                "data.noise replaces tokens by the unknown token, and this tokenizer has no such token; leave it out"
            )
        return made

    @property
    def unknown(self) -> int | None:
        """The token of a word that is not known."""
        return self.tokenizer.layout.unknown

    def defaults(self) -> dict[str, Any]:
        return {"vocab": len(self.tokenizer), "output": sorted(self.outputs)[0]}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        return super().read(folder, {})


@dataclass(frozen=True)
class Labelled(FineTuned):
    """The same, with labels that the model is told too."""

    def facts(self) -> dict[str, Any]:
        return {"classes": len(self.labels), "labels": list(self.labels)}

    def state(self) -> dict[str, Any]:
        return {"labels": list(self.labels)}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        if not all(isinstance(label, str) for label in state["labels"]):
            raise TypeError("labels should be words")
        return replace(super().read(folder, state), labels=tuple(state["labels"]))


Kept = TypeVar("Kept", bound=FineTuned)


@dataclass(frozen=True)
class TextCollate(Collate[Kept]):
    """Texts are tokenised once, and some of their tokens are made unknown while learning."""

    filled: ClassVar[bool] = True

    @abstractmethod
    def judge(self, read: Any, joined: Joined, learned: Kept) -> Any:
        """The right answer to a sample."""

    @abstractmethod
    def answers(self, samples: Sequence[EncodedText]) -> Tensor:
        """What should be answered, one more than its number, so that padding is 0."""

    def encoded(self, splits: Splits[Any], learned: Kept) -> Splits[EncodedText]:
        """Samples with their tokens, cut where a model that has learned reads no more."""
        parts = (splits.train, splits.valid, splits.test)
        return Splits(*(self.tokenised(part, learned, learned.longest or None) for part in parts))

    def tokenised(self, read: Sequence[Any], learned: Kept, longest: int | None) -> list[EncodedText]:
        """Samples with their tokens, cut where they are longer than asked for."""
        joined = learned.join(read, longest) if read else []
        for one, made in zip(read, joined, strict=True):
            if not made.ids:  # where a tokenizer puts nothing around a text
                raise Refusal(f"{one.place}: no token is left of the text; drop it")
        pairs = enumerate(zip(read, joined, strict=True))
        return [EncodedText(one, made, self.judge(one, made, learned), at) for at, (one, made) in pairs]

    def shortened(self, sample: EncodedText, longest: int, learned: Kept) -> EncodedText:
        if len(sample.joined.ids) <= longest:
            return sample
        return replace(self.tokenised([sample.read], learned, longest)[0], at=sample.at)

    def length(self, sample: EncodedText, learned: Kept) -> int:
        return len(sample.joined.ids)

    def augmented(self, samples: Sequence[EncodedText], epoch: int, learned: Kept) -> Sequence[EncodedText]:
        if not learned.noise:
            return samples
        dice = dice_of(learned.seed, epoch, [sample.at for sample in samples]).tolist()
        return [replace(sample, dice=die) for sample, die in zip(samples, dice, strict=True)]

    def batch(self, samples: Sequence[EncodedText], learned: Kept) -> Batch:
        made = batch_of([one.joined for one in samples], learned.letters) | {"answer": self.answers(samples)}
        dice = [sample.dice for sample in samples if sample.dice is not None]
        if dice and learned.unknown is not None:
            own = stack([[side >= 0 for side in sample.joined.sides] for sample in samples]).bool()  # no special token
            hidden = draw(torch.tensor(dice), own.shape[1], BLANKS) < learned.noise
            made["tokens"] = made["tokens"].masked_fill(own & hidden, learned.unknown)
            if learned.letters:
                made["letters"] = made["letters"].masked_fill((own & hidden)[..., None], 0)
        return made

    def contents(self, sample: EncodedText) -> dict[str, Content]:
        return {"texts": "\t".join(sample.read.texts)}

    def source_of(self, sample: EncodedText) -> str:
        return str(sample.read.place)

    def as_input(self, sample: EncodedText, learned: Kept) -> str:
        return sample.tabbed
