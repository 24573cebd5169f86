"""A model that writes, asked: a prompt in, or several, and the new part out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from torch import Tensor, nn

from heedful.decoding.logits_rules import Rules
from heedful.decoding.prompts import Asked, Prompts
from heedful.decoding.sample import stream as follow
from heedful.decoding.search_spec import Decoding, search
from heedful.decoding.stops import Stops
from heedful.engines import Weights
from heedful.errors import Refusal

Prompt = TypeVar("Prompt", str, Tensor, list[int], list[str], list[Tensor], list[list[int]])


class How(TypedDict, total=False):
    """How else an answer is searched for: keys of a `Decoding`, the seed of the dice, and what may be written."""

    top_k: int
    top_p: float
    min_p: float
    beams: int
    length_penalty: float
    repetition_penalty: float
    no_repeat_ngram: int
    weights: Weights
    steps: Literal["called", "captured", "compiled"]
    seed: int
    stop: str | Sequence[str]
    bans: Sequence[str | Sequence[int]]
    bias: Mapping[int | str, float]


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
    prompt: Prompts,
    max_new_tokens: int | None = 64,
    temperature: float = 0.0,
    stop_at_end: bool = True,
    *,
    seed: int = 0,
    stop: str | Sequence[str] = (),
    bans: Sequence[str | Sequence[int]] = (),
    bias: Mapping[int | str, float] | None = None,
    stream: bool = False,
    **how: Any,
) -> Any:
    """What a model writes to a prompt: a text in and a text out, ids in and ids out, the new part alone.

    A decoder alone goes on with the prompt; an encoder-decoder reads it as its source, a text with END behind it. Of a
    list of prompts each is answered as it would be alone. The answer is greedy, and drawn by chance with a temperature
    (see `sample`) or searched for with beams (see `beam`); what else can be said of that are the keys of a `Decoding`.
    It ends at END, which is left out, before a text of `stop`, or else after `max_new_tokens`; with `stop_at_end` false
    END is a token as any other. `bans` are texts, or rows of ids, that may not be written, and `bias` is added to the
    scores of tokens (see `Rules`). With `stream` the answer comes in pieces as it is written: whole characters, or ids.
    """
    decoding = Decoding().but(max_new_tokens=max_new_tokens, temperature=temperature, **how)
    asked = Asked(model, prompt)
    halts, rules = bounds(asked, decoding, stop_at_end, stop, bans, bias, stream)
    if stream:
        tokens = follow(asked.writer, asked.batch, decoding, seed, 0, rules)
        return halts.pieces(asked.tokenizer.stream(tokens)) if asked.texts else tokens
    answers = [asked.answer(*pair) for pair in zip(asked.prompts, write(asked, decoding, seed, rules), strict=True)]
    answers = [halts.before(text) for text in answers] if asked.texts else answers
    return answers if asked.many else answers[0]


def write(asked: Asked, decoding: Decoding, seed: int, rules: Rules) -> list[Sequence[int]]:
    """The tokens of the answer to each prompt, up to a stop string and with what of that was written."""
    numbers = [0] * len(asked.rows)  # so that a prompt is answered alike whatever stands beside it
    return [best.tokens for [best] in search(asked.writer, asked.batch, decoding, 1, seed, numbers, rules=rules)]


def bounds(
    asked: Asked,
    decoding: Decoding,
    stop_at_end: bool = True,
    stop: str | Sequence[str] = (),
    bans: Sequence[str | Sequence[int]] = (),
    bias: Mapping[int | str, float] | None = None,
    stream: bool = False,
) -> tuple[Stops, Rules]:
    """What ends answers, and what may be written in them; what cannot be had together is refused."""
    halts = Stops((stop,) if isinstance(stop, str) else stop, lambda ids: asked.tokenizer.decode(ids))
    rules = Rules(
        decoding.repetition_penalty,
        decoding.no_repeat_ngram,
        asked.banned(bans),
        asked.biased(bias or {}),
        ends=stop_at_end,
        stops=halts if halts.strings and not stream else None,
    )
    check(asked, decoding, rules, halts, stream)
    return halts, rules


def check(asked: Asked, decoding: Decoding, rules: Rules, halts: Stops, stream: bool) -> None:
    """Refuses what cannot be had together."""
    if stream and asked.many:
        raise Refusal(f"{len(asked.prompts)} prompts cannot be streamed at once; give one")
    if halts.strings and not asked.texts:
        raise Refusal("stop strings end a text and the prompt is ids; give a text, or cut the answer yourself")
    if decoding.beams > 1 and not rules.ends:
        raise Refusal(f"{decoding.beams} beams are compared at their END and cannot pass it; give beams=1")
    if decoding.beams > 1 and halts.strings:
        raise Refusal(f"{decoding.beams} beams are compared at their END, not at a stop string; give beams=1")
