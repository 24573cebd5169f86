"""Continuing texts: a decoder learns what comes next, token by token, and so to write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, several, to
from heedful.data.crops import Crop
from heedful.data.transforms import draw
from heedful.decoding import Decoding, search
from heedful.looking.page import Example, Samples
from heedful.models.numerics import device_of
from heedful.models.specs import PAD, UNKNOWN
from heedful.models.text.gpt import GPT
from heedful.models.writer import Writer, longest
from heedful.objectives.cross_entropy import consistent, cross_entropy
from heedful.tasks.closed import PLAIN, Terms
from heedful.tasks.continuing import Continuing
from heedful.tasks.corpus import Corpus

SCORES = 1 << 26  # scores of tokens that are made at once where nothing is learned
GIVEN, AHEAD = 48, 48  # tokens of a text that are shown, and that are written then
LOOKED = 24  # tokens of a text that is looked into, and at most as many that are written
BLANKS = 50  # purpose of dice


class Continuation(Corpus, Continuing):
    """Predicts each next token of texts; scored by how likely it finds those that come.

    Where `noise` is above 0, so many of the tokens that are read while learning are unknown (Xie et al., 2017).
    """

    name: ClassVar[str] = "continuation"
    family: ClassVar[str] = "gpt"
    also: ClassVar[tuple[str, ...]] = ("llama",)
    watch: ClassVar[str] = "log_likelihood"
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing", "consistency"})
    keys: ClassVar[frozenset[str]] = Corpus.keys | {"noise", "apart"}
    told: ClassVar[int] = 1

    def prepare(self, model: nn.Module) -> None:
        vars(model)["tokenizer"] = self.tokenizer  # as one that is loaded has it

    def batch(self, samples: Sequence[Crop]) -> Batch:
        made = self.rows(samples, self.longest + 1)
        whole = made["tokens"]
        made |= {"tokens": whole[:, :-1].contiguous(), "answer": whole[:, 1:].contiguous()}
        if "documents" in made:
            owners = made.pop("documents")
            made["answer"] = made["answer"].masked_fill(owners[:, 1:] != owners[:, :-1], PAD)  # BEGIN is not foreseen
            if self.apart:
                made["documents"] = owners[:, :-1].contiguous()
        return made

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        answer = batch["answer"].flatten()
        batch = {name: tensor for name, tensor in batch.items() if name != "answer"}
        if terms.consistency:
            batch = {name: torch.cat((tensor, tensor)) for name, tensor in batch.items()}
        logits = model(blanked(batch, self.noise), documents=batch.get("documents"))
        logits = logits.flatten(0, 1).unflatten(0, (-1, len(answer)))  # P N V
        if terms.consistency:
            total = consistent(logits, answer, PAD, terms.smoothing, terms.consistency)
        else:
            total = cross_entropy(logits[0], answer, PAD, terms.smoothing)
        return total, (answer != PAD).sum()

    # ------------------------------------------------------------------ scoring

    @torch.no_grad()
    def score(self, model: nn.Module, samples: Sequence[Crop]) -> dict[str, float]:
        """The mean log-likelihood of a token, and the same as perplexity and as bits a character."""
        assert isinstance(model, GPT)
        model.eval()
        total, count = 0.0, 0
        for size in sorted({one.judged for one in samples}):
            alike = [one for one in samples if one.judged == size]
            for some in several(alike, max(1, SCORES // (size * model.spec.vocab))):
                loss, tokens = self.judge(model, some, size)
                total, count = total + loss, count + tokens
                self.tell(len(some))
        nats, stream = total / max(1, count), samples[0].stream
        bits = total / math.log(2) / max(1, stream.characters)
        return {"log_likelihood": -nats, "perplexity": math.exp(min(nats, 700.0)), "bits_per_character": bits}

    def judge(self, model: GPT, samples: Sequence[Crop], size: int) -> tuple[float, int]:
        """The sum of losses of the last `size` tokens of crops, and how many of them there are."""
        batch = to(self.batch(samples), device_of(model))
        states = model.read(batch["tokens"], documents=batch.get("documents"))
        answer = batch["answer"][:, -size:].flatten()
        loss = cross_entropy(model.outputs(states[:, -size:]).flatten(0, 1), answer, PAD)
        return float(loss), int((answer != PAD).sum())

    # ------------------------------------------------------------------ showing

    @property
    def given(self) -> int:
        """How many tokens of a crop are shown, so that as many can be written."""
        return max(1, min(GIVEN, self.longest // 2))

    def shown(self, ahead: int) -> Decoding:
        """How answers to be shown are searched for: of so many tokens, at most."""
        asked = self.decoding.max_new_tokens or ahead
        return self.decoding.but(max_new_tokens=max(1, min(asked, ahead, self.longest - self.given)))

    def show(self, model: nn.Module, samples: Sequence[Crop]) -> Samples:
        model.eval()
        ids = torch.stack(
            [torch.from_numpy(one.stream.tokens(slice(one.start, one.start + self.given))) for one in samples]
        )
        found = search(cast(Writer, model), {"prompt": ids.to(device_of(model))}, self.shown(AHEAD))
        rows = tuple(
            (
                plain(self.text(one, 0, self.given)),
                plain(self.text(one, self.given, self.given + AHEAD)),
                plain(self.tokenizer.decode(answer.tokens)),
            )
            for one, [answer] in zip(samples, found, strict=True)
        )
        return Samples("Texts it never saw", ("text", "goes on", "written"), rows)

    def look(self, model: nn.Module, text: str) -> Example:
        room = longest(model) - len(self.tokenizer.encode(text))  # a text may be cut anew, into more
        return self.looked(model, text, self.shown(max(1, min(LOOKED, room))))

    def write_input(self, sample: Crop) -> str:
        return self.text(sample, 0, min(self.given, LOOKED))

    def doubt(self, text: str) -> str | None:
        if self.tokenizer.kind not in ("characters", "words"):
            return None
        parts = text if self.tokenizer.kind == "characters" else text.split()
        never = sorted({part for part in parts if UNKNOWN in self.tokenizer.encode(part)})
        return f"{text!r} holds what the model never saw: {' '.join(map(repr, never))}" if never else None


def blanked(batch: Batch, noise: float) -> Tensor:
    """The tokens of a batch, some of them unknown where they have dice: B T."""
    tokens = batch["tokens"]
    if "dice" not in batch:
        return tokens
    return tokens.masked_fill(draw(batch["dice"], tokens.shape[1], BLANKS) < noise, UNKNOWN)


def plain(text: str) -> str:
    """A text in one line; ends of lines are signs, and so is that there is none."""
    return text.replace("\n", " ⏎ ").strip() or "∅"
