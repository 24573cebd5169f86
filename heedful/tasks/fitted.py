"""Fine-tuning: a model of text, begun by chance or by what it learned before, is fitted to samples of its use."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from heedful.attention import Attention
from heedful.data.collate import Batch, stack
from heedful.data.data_spec import DataSpec
from heedful.data.near_duplicates import Content
from heedful.data.splits import Splits
from heedful.data.transforms import dice_of, draw
from heedful.errors import Refusal
from heedful.looking.page import Figures, Section
from heedful.models import Spec
from heedful.models.ensemble import alone
from heedful.objectives.cross_entropy import consistent, cross_entropy
from heedful.tasks.closed import PLAIN, Task, Terms
from heedful.tasks.reading import Reading, batch_of, read
from heedful.tasks.tokenizing import tokenizer
from heedful.tokenizers import Joined

BLANKS = 51  # purpose of dice
NONE = -1  # an answer that counts for nothing: that of padding


@dataclass(frozen=True, slots=True)
class Asked:
    """A sample as it was read, its tokens, and what should be answered."""

    read: Any
    joined: Joined
    answer: Any
    at: int = 0  # its number
    dice: int | None = None  # by which words are hidden, while learning


class Fitted(Reading, Task):
    """A reading that is learned: sentences are tokenised once, read by a model, and its answers judged.

    Where `noise` is above 0, so many of the tokens that are read while learning are unknown (Iyyer et al., 2015).
    """

    family: ClassVar[str] = "bert"
    also: ClassVar[tuple[str, ...]] = ("roberta", "camembert", "distilbert", "albert", "gpt", "llama", "bart")
    ordered: ClassVar[bool] = True
    inherits: ClassVar[bool] = True
    filled: bool = True
    noise: float = 0.0
    seed: int = 0
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing", "consistency"})
    keys: ClassVar[frozenset[str]] = frozenset({"split_seed", "tokenizer", "noise", "too_long"})

    @classmethod
    @abstractmethod
    def opened(cls, data: DataSpec, seed: int) -> Splits[Any]:
        """The samples as they are written: each has `texts` and a `place`."""

    @abstractmethod
    def learn(self, samples: Sequence[Any]) -> None:
        """Hears of the samples to learn from: which classes there are."""

    @abstractmethod
    def judge(self, sample: Any, joined: Joined) -> Any:
        """What should be answered to a sample."""

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Asked]]:
        splits = cls.opened(data, seed)
        if not len(splits.train):
            raise Refusal("data.train is not given; add data.train=...")
        task = cls(tokenizer(data, (text for sample in splits.train for text in sample.texts)))
        task.learn(splits.train)
        task.seed, task.noise = seed, data.noise or 0.0
        if task.noise and task.unknown is None:
            raise Refusal("data.noise makes tokens unknown, and this tokenizer has none for that; leave it out")
        return task, task.encoded(splits)

    def reopen(self, data: DataSpec, seed: int) -> Splits[Asked]:
        splits = self.encoded(self.opened(data, seed))
        parts = (splits.train, splits.valid, splits.test)
        return Splits(*([self.shortened(one, self.longest) for one in part] for part in parts))

    def encoded(self, splits: Splits[Any]) -> Splits[Asked]:
        """Samples with their tokens."""
        return Splits(*(self.tokenised(part) for part in (splits.train, splits.valid, splits.test)))

    def tokenised(self, samples: Sequence[Any], longest: int | None = None) -> list[Asked]:
        """Samples with their tokens, cut where they are longer than asked for."""
        joined = self.tokenizer.join([sample.texts for sample in samples], longest) if samples else []
        for one, made in zip(samples, joined, strict=True):
            if not made.ids:  # where a tokenizer puts nothing around a text
                raise Refusal(f"{one.place}: no token is left of the text; drop it")
        pairs = enumerate(zip(samples, joined, strict=True))
        return [Asked(one, made, self.judge(one, made), at) for at, (one, made) in pairs]

    def shortened(self, sample: Asked, longest: int) -> Asked:
        if len(sample.joined.ids) <= longest:
            return sample
        return replace(self.tokenised([sample.read], longest)[0], at=sample.at)

    def defaults(self) -> dict[str, Any]:
        return {"vocab": len(self.tokenizer), "output": sorted(self.outputs)[0]}

    def suits(self, spec: Spec) -> None:
        labels = self.labels
        super().suits(spec)
        self.labels = labels or self.labels

    def contents(self, sample: Asked) -> dict[str, Content]:
        return {"texts": "\t".join(sample.read.texts)}

    def length(self, sample: Asked) -> int:
        return len(sample.joined.ids)

    def place(self, sample: Asked) -> str:
        return str(sample.read.place)

    def write_input(self, sample: Asked) -> str:
        return "\t".join(" ".join(text.split()) for text in sample.read.texts)

    # ------------------------------------------------------------------ learning

    @property
    def unknown(self) -> int | None:
        """The token of a word that is not known."""
        return self.tokenizer.layout.unknown

    def fresh(self, samples: Sequence[Asked], epoch: int) -> Sequence[Asked]:
        if not self.noise:
            return samples
        dice = dice_of(self.seed, epoch, [sample.at for sample in samples]).tolist()
        return [replace(sample, dice=die) for sample, die in zip(samples, dice, strict=True)]

    def batch(self, samples: Sequence[Asked]) -> Batch:
        made = batch_of([sample.joined for sample in samples], self.letters) | {"answer": self.answers_of(samples)}
        dice = [sample.dice for sample in samples if sample.dice is not None]
        if dice and self.unknown is not None:
            own = stack([[side >= 0 for side in sample.joined.sides] for sample in samples]).bool()  # no special token
            hidden = draw(torch.tensor(dice), own.shape[1], BLANKS) < self.noise
            made["tokens"] = made["tokens"].masked_fill(own & hidden, self.unknown)
            if self.letters:
                made["letters"] = made["letters"].masked_fill((own & hidden)[..., None], 0)
        return made

    @abstractmethod
    def answers_of(self, samples: Sequence[Asked]) -> Tensor:
        """What should be answered, one more than its number, so that padding is 0."""

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        answer, copies = self.wanted(batch), 2 if terms.consistency else 1
        if terms.consistency:
            batch = {name: torch.cat((tensor, tensor)) for name, tensor in batch.items()}
        logits = self.scores(read(model, batch, copies), batch).flatten(0, -2).unflatten(0, (-1, len(answer)))  # P N C
        if terms.consistency:
            total = consistent(logits, answer, NONE, terms.smoothing, terms.consistency)
        else:
            total = cross_entropy(logits[0], answer, NONE, terms.smoothing)
        return total, (answer != NONE).sum()

    @classmethod
    def labelled(cls, folder: Path, state: dict[str, Any]) -> Self:
        """The task as it was written beside a model, with its labels."""
        task = super().read(folder, {})
        if not all(isinstance(label, str) for label in state["labels"]):
            raise TypeError("labels should be words")
        task.labels = state["labels"]
        return task

    def scores(self, given: Tensor, batch: Batch) -> Tensor:
        """Scores of what may be answered, last, of what the model gives for a batch."""
        return given

    def alone(self, model: nn.Module, samples: Sequence[Asked]) -> tuple[Section, ...]:
        """What each of several models in one would have scored, beside what all do together; nothing for one model."""
        if len(members := alone(model)) == 1:
            return ()
        scores = [self.score(one, samples)[self.watch] for one in (model, *members)]
        names = ("all together", *(f"member {at} alone" for at in range(len(members))))
        cards = tuple((name, f"{100 * score:.1f} %", self.watch) for name, score in zip(names, scores, strict=True))
        return (Figures("What members are worth", cards),)

    def wanted(self, batch: Batch) -> Tensor:
        """What should be answered, by its number; `NONE` where nothing should."""
        return batch["answer"].flatten() - 1


def last_layer(model: nn.Module) -> str:
    """The path of the last attention, whose weights are shown first."""
    return ([""] + [path for path, part in model.named_modules() if isinstance(part, Attention)])[-1]
