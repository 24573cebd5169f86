"""Masked tokens: an encoder learns to find what is hidden in a text, from both sides of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, several, to
from heedful.data.transforms import draw
from heedful.errors import Refusal
from heedful.looking.page import Example, Samples
from heedful.models import Spec
from heedful.models.numerics import device_of
from heedful.models.specs import BEGIN, END, PAD
from heedful.objectives.cross_entropy import cross_entropy
from heedful.pipelines.fill_mask import FillMask, MaskedText
from heedful.results import Result
from heedful.tasks.closed import PLAIN, Terms
from heedful.tasks.corpus import Corpus
from heedful.tasks.crops import Crop

CHOSEN, HOW, WHICH = 51, 52, 53  # purposes of dice
MASKED, OTHER = 0.8, 0.1  # shares of the chosen tokens that are masked, and that are another token; the rest stays
MASK = "<mask>"
SIZE = 64  # crops that are scored at once
SHOWN = 40  # tokens of a sample that is shown
FILL = FillMask("a text with <mask> in it")


class Masking(Corpus):
    """Finds the tokens that are hidden in texts (BERT: Devlin et al., 2019); scored by how likely it finds them.

    Of the tokens that are chosen, 80 % are masked, 10 % are others by chance, and 10 % stay. Which are chosen follows
    from the seed, the epoch and the crop.
    """

    name: ClassVar[str] = "masking"
    family: ClassVar[str] = "bert"
    also: ClassVar[tuple[str, ...]] = ("roberta", "camembert", "distilbert", "albert")
    watch: ClassVar[str] = "log_likelihood"
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing"})
    keys: ClassVar[frozenset[str]] = Corpus.keys | {"noise", "whole_words"}
    input: ClassVar[str] = FILL.input
    special_tokens: ClassVar[tuple[str, ...]] = (MASK,)
    usual: ClassVar[float] = 0.15
    hides: ClassVar[bool] = True

    @property
    def window(self) -> int:
        return self.longest - 2  # between BEGIN and END

    def numbers(self) -> dict[str, Any]:
        ids = {"pad": PAD, "begin": BEGIN, "end": END}
        return super().numbers() | {"output": "masked"} | ids

    @property
    def asked_with(self) -> MaskedText:
        """What is kept of it for those who ask it."""
        return MaskedText(self.tokenizer, longest=self.longest)

    def suits(self, spec: Spec) -> None:
        if self.asked_with.suited(spec).letters:
            raise Refusal("model.letters: what is hidden is learned without knowing how tokens are spelt; leave it out")

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        return FILL.predict(model, inputs, self.asked_with, self.tell)

    def doubt(self, text: str) -> str | None:
        return FILL.warning(text, self.asked_with)

    def look(self, model: nn.Module, text: str) -> Example:
        return FILL.look(model, text, self.asked_with)

    def batch(self, samples: Sequence[Crop]) -> Batch:
        made = self.rows(samples, self.window)
        made.pop("documents", None)  # texts that follow each other are read together (RoBERTa: Liu et al., 2019)
        return made

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        tokens, answer = hidden(batch, self.noise, self.tokenizer.special[MASK], len(self.tokenizer))
        logits = model(*framed(tokens))[:, 1:-1].flatten(0, 1)
        return cross_entropy(logits, answer.flatten(), PAD, terms.smoothing), (answer != PAD).sum()

    @torch.no_grad()
    def score(self, model: nn.Module, samples: Sequence[Crop]) -> dict[str, float]:
        model.eval()
        total, right, count = 0.0, 0, 0
        for some in several(samples, SIZE):
            batch = to(self.batch(some), device_of(model))
            tokens, answer = hidden(batch, self.noise, self.tokenizer.special[MASK], len(self.tokenizer))
            logits = model(*framed(tokens))[:, 1:-1]
            total += float(cross_entropy(logits.flatten(0, 1), answer.flatten(), PAD))
            right += int(((logits.argmax(-1) == answer) & (answer != PAD)).sum())
            count += int((answer != PAD).sum())
            self.tell(len(some))
        nats = total / max(1, count)
        perplexity = math.exp(min(nats, 700.0))
        return {"log_likelihood": -nats, "perplexity": perplexity, "accuracy": right / max(1, count)}

    # ------------------------------------------------------------------ showing

    @torch.no_grad()
    def show(self, model: nn.Module, samples: Sequence[Crop]) -> Samples:
        model.eval()
        batch = to(self.batch(samples), device_of(model))
        tokens, answer = hidden(batch, self.noise, self.tokenizer.special[MASK], len(self.tokenizer))
        found = torch.where(answer != PAD, model(*framed(tokens))[:, 1:-1].argmax(-1), tokens)
        rows, right = [], []
        for read, written, wanted in zip(tokens.tolist(), found.tolist(), batch["tokens"].tolist(), strict=True):
            rows.append((self.pieced(read), self.pieced(written)))
            right.append(written[:SHOWN] == wanted[:SHOWN])
        return Samples("Texts it never saw", ("read", "found"), tuple(rows), tuple(right))

    def pieced(self, ids: Sequence[int]) -> str:
        """Tokens as people read them, masks among them."""
        return "".join(self.tokenizer.pieces([at for at in ids[:SHOWN] if at != PAD])).replace("\n", " ⏎ ").strip()

    def write_input(self, sample: Crop) -> str:
        """The first words of a crop, the middle one masked."""
        words = self.text(sample, 0, SHOWN).split()[:16]
        return " ".join((*words[: len(words) // 2], MASK, *words[len(words) // 2 + 1 :]))


def framed(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Crops (B T) as an encoder reads them, and where they stand: BEGIN before them, END behind, padding last."""
    there = tokens != PAD
    whole = torch.nn.functional.pad(tokens, (1, 1))
    whole[:, 0] = BEGIN
    whole.scatter_(1, there.sum(1, keepdim=True) + 1, END)
    places = torch.arange(whole.shape[1], device=tokens.device)
    return whole, torch.where(places <= there.sum(1, keepdim=True) + 1, places, -1)


def hidden(batch: Batch, share: float, mask: int, vocab: int) -> tuple[Tensor, Tensor]:
    """The tokens of crops, some of them hidden, and what these were, PAD where nothing is asked: B T each.

    Where the words of tokens are told, those of a word are hidden together.
    """
    tokens, dice, length = batch["tokens"], batch["dice"], batch["tokens"].shape[1]
    numbers = batch["words"] - batch["words"][:, :1] if "words" in batch else None
    chance, how, which = (draw(dice, length, purpose) for purpose in (CHOSEN, HOW, WHICH))
    chance = chance if numbers is None else chance.gather(1, numbers.clamp(0, length - 1))
    chosen = (chance < share) & (tokens > END)
    other = mask + 1 + (which * (vocab - mask - 1)).long()  # any token of a text
    read = torch.where(how < MASKED, mask, torch.where(how < MASKED + OTHER, other, tokens))
    return torch.where(chosen, read, tokens), torch.where(chosen, tokens, PAD)
