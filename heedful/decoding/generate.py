"""A model that writes, asked for one answer: a prompt in, the new part out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast, overload

import torch
from torch import Tensor, nn

from heedful.decoding.sample import follow
from heedful.decoding.spec import Decoding, search
from heedful.decoding.steps import Writer, answering
from heedful.errors import Refusal
from heedful.models.encoder_decoder import EncoderDecoder

Prompt = TypeVar("Prompt", str, Tensor, list[int])


class How(TypedDict, total=False):
    """How else an answer is searched for: numbers of a `Decoding`, and the seed of the dice."""

    top_k: int
    top_p: float
    min_p: float
    beams: int
    length_penalty: float
    seed: int


@overload
def generate(
    model: nn.Module,
    prompt: Prompt,
    max_new_tokens: int | None = 64,
    temperature: float = 0.0,
    stop_at_end: bool = True,
    *,
    stream: Literal[False] = False,
    **how: Unpack[How],
) -> Prompt: ...
@overload
def generate(
    model: nn.Module,
    prompt: str,
    max_new_tokens: int | None = 64,
    temperature: float = 0.0,
    stop_at_end: bool = True,
    *,
    stream: Literal[True],
    **how: Unpack[How],
) -> Iterator[str]: ...
@overload
def generate(
    model: nn.Module,
    prompt: Tensor | list[int],
    max_new_tokens: int | None = 64,
    temperature: float = 0.0,
    stop_at_end: bool = True,
    *,
    stream: Literal[True],
    **how: Unpack[How],
) -> Iterator[int]: ...
def generate(
    model: nn.Module,
    prompt: str | Tensor | list[int],
    max_new_tokens: int | None = 64,
    temperature: float = 0.0,
    stop_at_end: bool = True,
    *,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    beams: int = 1,
    length_penalty: float = 0.0,
    seed: int = 0,
    stream: bool = False,
) -> Any:
    """What a model writes to a prompt: a text in and a text out, ids in and ids out, the new part alone.

    An encoder-decoder reads the prompt as its source; a text gets END behind it, ids are read as they are. The answer
    is greedy, and drawn by chance with a temperature (see `sample`) or searched for with beams (see `beam`). It ends
    at END, which is left out, or else after `max_new_tokens`; with `stop_at_end` false END is a token as any other.
    With `stream` it comes in pieces as it is written: whole characters of a text, or ids.
    """
    decoding = Decoding().but(
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        beams=beams,
        length_penalty=length_penalty,
    )
    asked = Asked(model, prompt)
    if stream or decoding.beams == 1:
        tokens = follow(asked.writer, asked.source, decoding, seed, 0, stop_at_end=stop_at_end)
        if stream:
            return asked.pieces(tokens)
        with answering(asked.writer):  # once for all steps
            return asked.whole(list(tokens))
    if not stop_at_end:
        raise Refusal(f"{decoding.beams} beams are compared at their END and cannot pass it; give beams=1")
    return asked.whole(list(search(asked.writer, asked.source, decoding)[0][0].tokens))


class Asked:
    """A prompt, as the model reads it and in the kind in which the answer is given."""

    def __init__(self, model: nn.Module, prompt: str | Tensor | list[int]) -> None:
        if not isinstance(model, EncoderDecoder):
            family = getattr(getattr(model, "spec", None), "family", type(model).__name__)
            raise Refusal(f"a model of family {family!r} does not write; generate is for a transformer")
        self.prompt, self.tokenizer = prompt, cast(Any, getattr(model, "tokenizer", None))
        self.special = model.special
        ids = self.read(prompt)
        known, pad = model.source.table.num_embeddings, self.special.pad
        for at in ids:
            if not 0 <= at < known or at == pad:
                told = f"prompt: {at} is no token of the model"
                raise Refusal(f"{told}, which reads ids from 0 to {known - 1} but for {pad}, its padding")
        self.source = torch.tensor([ids], dtype=torch.long, device=next(model.parameters()).device)
        self.writer: Writer = model

    def read(self, prompt: str | Tensor | list[int]) -> list[int]:
        """The ids of a prompt."""
        if isinstance(prompt, Tensor):
            if prompt.dim() != 1:
                raise Refusal(f"a prompt of {prompt.dim()} axes is not one sequence of ids; give one at a time")
            return prompt.tolist()
        if not isinstance(prompt, str):
            return list(prompt)
        if self.tokenizer is None:
            raise Refusal("the model has no tokenizer to read a text with; give ids, or load it from where it has one")
        ids: list[int] = self.tokenizer.encode(prompt)
        end = self.special.end
        return ids if ids[-1:] == [end] else [*ids, end]  # tokenizers of checkpoints add it themselves

    def whole(self, tokens: list[int]) -> str | Tensor | list[int]:
        """An answer in the kind of its prompt."""
        if isinstance(self.prompt, Tensor):
            return self.prompt.new_tensor(tokens, dtype=torch.long)
        return self.tokenizer.decode(tokens) if isinstance(self.prompt, str) else tokens

    def pieces(self, tokens: Iterator[int]) -> Iterator[str] | Iterator[int]:
        """The pieces of an answer as its tokens come."""
        return self.tokenizer.stream(tokens) if isinstance(self.prompt, str) else tokens
