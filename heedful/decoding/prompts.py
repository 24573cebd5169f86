"""Prompts: one or several, texts or ids, as a model reads them; and answers of the same kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from heedful.errors import Refusal
from heedful.models.writer import writes

One = str | Tensor | list[int]  # a prompt
Prompts = One | list[str] | list[Tensor] | list[list[int]]


class Asked:
    """Prompts as the model reads them, and the kind in which answers are given: that of the prompts."""

    def __init__(self, model: nn.Module, prompts: Prompts) -> None:
        spec: Any = getattr(model, "spec", None)
        family = getattr(spec, "family", type(model).__name__)
        if not writes(model):
            told = getattr(spec, "output", "")
            asked = f" that is asked for {told}" if told else ""
            raise Refusal(
                f"a model of family {family!r}{asked} does not write; generate is for one that does, such as a gpt"
            )
        if others := sorted(model.reads - {"source"}):
            raise Refusal(
                f"a model of family {family!r} reads {' and '.join(others)}, not prompts; ask it by decoding.search"
            )
        self.writer, self.spec, self.reads_source = model, spec, "source" in model.reads
        self.tokenizer = cast(Any, getattr(model, "tokenizer", None))
        prompts = list(prompts) if isinstance(prompts, tuple) else prompts
        self.many = isinstance(prompts, list) and bool(prompts) and not isinstance(prompts[0], int)
        self.prompts = cast(list[One], prompts if self.many else [prompts])
        self.texts = isinstance(self.prompts[0], str)
        for prompt in self.prompts:
            if not fits(prompt) or isinstance(prompt, str) != self.texts:
                told = str(prompt)[:40]
                raise Refusal(f"prompt: {told!r} does not fit; give a text, a list of ids, or a list of either kind")
        self.rows = [self.checked(self.read(prompt)) for prompt in self.prompts]
        self.device = next(model.parameters()).device
        filling = self.writer.special.pad if self.reads_source else -1
        self.batch = {"source" if self.reads_source else "prompt": pad_rows(self.rows, filling).to(self.device)}

    def read(self, prompt: One) -> list[int]:
        """The ids of a prompt; a source ends with END, and where there is nothing to go on with, BEGIN stands there."""
        special = self.writer.special
        if isinstance(prompt, str):
            ids = self.encode(prompt)
            return [*ids, special.end] if self.reads_source and ids[-1:] != [special.end] else self.begun(ids)
        if isinstance(prompt, Tensor) and prompt.dim() != 1:
            raise Refusal(f"a prompt of {prompt.dim()} axes is not one sequence of ids; give a list of sequences")
        return self.begun(prompt.tolist() if isinstance(prompt, Tensor) else list(prompt))

    def begun(self, ids: list[int]) -> list[int]:
        """The ids themselves, or BEGIN where a model that goes on with them has none."""
        if ids:
            return ids
        if self.reads_source:
            raise Refusal("the prompt has no ids, and a source has one at least; give END alone for an empty one")
        if self.writer.special.begin < 0:
            raise Refusal("the prompt is empty and the model has no token to begin with; give it something to go on")
        return [self.writer.special.begin]

    def checked(self, ids: list[int]) -> list[int]:
        """The ids themselves, where the model has all of them."""
        known = getattr(self.spec, "source_vocab", None) or self.spec.vocab
        pad = self.writer.special.pad
        for at in ids:
            if not 0 <= at < known or (self.reads_source and at == pad):
                but = f" but for {pad}" if self.reads_source else ""
                raise Refusal(f"prompt: {at} is no token of the model, which reads ids from 0 to {known - 1}{but}")
        return ids

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        if self.tokenizer is None:
            raise Refusal("the model has no tokenizer to read a text with; give ids, or load it from where it has one")
        return cast(list[int], self.tokenizer.encode(text))

    def answer(self, prompt: One, tokens: Sequence[int]) -> Any:
        """An answer in the kind of its prompt."""
        if isinstance(prompt, Tensor):
            return prompt.new_tensor(tokens, dtype=torch.long)
        return self.tokenizer.decode(tokens) if isinstance(prompt, str) else list(tokens)

    def banned(self, bans: Sequence[str | Sequence[int]]) -> list[list[int]]:
        """Bans as rows of ids: of a text, as it begins a text and as it follows a blank."""
        rows = [[self.plain(ban), self.plain(f" {ban}")] if isinstance(ban, str) else [list(ban)] for ban in bans]
        made = [self.within(row) for ways in rows for row in ways]
        if len({row[0] for row in made if len(row) == 1}) >= self.spec.vocab:
            raise Refusal("bans leave no token to write; ban fewer")
        return made

    def biased(self, bias: Mapping[int | str, float]) -> dict[int, float]:
        """The logit bias by token id; a text must be one token."""
        made: dict[int, float] = {}
        for token, added in bias.items():
            ids = self.plain(token) if isinstance(token, str) else [token]
            if len(ids) != 1:
                raise Refusal(f"a bias is for one token and {token!r} is {len(ids)}; give the ids of tokens")
            made[self.within(ids)[0]] = float(added)
        return made

    def plain(self, text: str) -> list[int]:
        """The ids of a text without the special tokens that a tokenizer adds."""
        special = self.writer.special
        return [at for at in self.encode(text) if at not in (special.begin, special.end)]

    def within(self, ids: list[int]) -> list[int]:
        """Ids that the model can write, all of them."""
        for at in ids:
            if not 0 <= at < self.spec.vocab:
                raise Refusal(f"{at} is no token that the model writes; give ids from 0 to {self.spec.vocab - 1}")
        return ids


def fits(prompt: object) -> bool:
    """Whether something can be read as a prompt."""
    if isinstance(prompt, Tensor):
        return not prompt.is_floating_point() and not prompt.is_complex()
    return isinstance(prompt, str) or (isinstance(prompt, list) and all(type(at) is int for at in prompt))


def pad_rows(rows: Sequence[Sequence[int]], filling: int) -> Tensor:
    """Rows of ids of unequal length as one tensor, filled up at the end: B S."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[filling] * (width - len(row))] for row in rows], dtype=torch.long).view(-1, width)
