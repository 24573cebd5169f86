"""How sure a model is of an answer, token by token, and what else it might have written."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heedful.decoding.generate import bounds, write
from heedful.decoding.prompts import Asked, One
from heedful.decoding.search_spec import Decoding
from heedful.decoding.steps import Steps, answering
from heedful.errors import Refusal
from heedful.models.writer import Writer


class Judged(NamedTuple):
    """A token of an answer, as the model holds it."""

    token: int
    piece: str  # its text, where there is a tokenizer
    chance: float  # its log-probability behind all that stands before it
    entropy: float  # in nats, of all that might have stood there


def judge_answer(model: nn.Module, prompt: One, answer: One) -> list[Judged]:
    """Each token of an answer to a prompt, of the same kind as that, with its log-probability and the entropy there.

    A text becomes tokens here; those that a model wrote itself are better given as ids.
    """
    asked = alone(model, prompt)
    ids = asked.plain(answer) if isinstance(answer, str) else [int(token) for token in answer]
    if not asked.within(ids):
        raise Refusal("an answer of no tokens cannot be judged; give one or more")
    return each(asked, ids)


def alone(model: nn.Module, prompt: One) -> Asked:
    """One prompt; several are refused."""
    asked = Asked(model, prompt)
    if asked.many:
        raise Refusal("answers are judged one by one, and this is a list of prompts; give one of them")
    return asked


def each(asked: Asked, ids: list[int]) -> list[Judged]:
    """Each token of an answer, as the model holds it."""
    with answering(asked.writer) as running:
        chances = precise(scores(running, asked, torch.tensor([ids], device=asked.device)))  # T V
        own = chances.gather(1, torch.tensor(ids, device=chances.device)[:, None]).squeeze(1)
        entropy = torch.special.entr(chances.exp()).sum(-1)
    pieces = [""] * len(ids) if asked.tokenizer is None else asked.tokenizer.pieces(ids)
    return [Judged(*one) for one in zip(ids, pieces, own.tolist(), entropy.tolist(), strict=True)]


def generate_judged(
    model: nn.Module,
    prompt: One,
    max_new_tokens: int | None = 64,
    temperature: float = 0.0,
    stop_at_end: bool = True,
    **how: Any,
) -> list[Judged]:
    """What `generate` writes to one prompt, token by token, each with its log-probability and the entropy there.

    It takes what `generate` does, but for `stream`. Of a token in which a stop string begins only some may be kept.
    """
    if how.pop("stream", False):
        raise Refusal("answers are judged when they are whole; leave stream out")
    asked, seed = alone(model, prompt), how.pop("seed", 0)
    said = {name: how.pop(name) for name in ("stop", "bans", "bias") if name in how}
    decoding = Decoding().but(max_new_tokens=max_new_tokens, temperature=temperature, **how)
    halts, rules = bounds(asked, decoding, stop_at_end, **said)
    ids = list(write(asked, decoding, seed, rules)[0])
    if halts.strings:
        text = halts.before(asked.tokenizer.decode(ids))
        while ids and asked.tokenizer.decode(ids[:-1]).startswith(text):
            ids.pop()
    return each(asked, ids) if ids else []


def scores(model: Writer, asked: Asked, answer: Tensor) -> Tensor:
    """The scores of what stands at each place of an answer (1 T): T V, in one pass over the whole."""
    context = model.begin(asked.batch)
    whole = torch.cat((context.prompt, answer), 1)[:, :-1]
    return model.decode(whole, context)[0, context.prompt.shape[1] - 1 :]


def following(model: nn.Module, prompt: One) -> Tensor:
    """The log-probability of each token of the vocabulary (V) as the first of an answer to a prompt."""
    asked = Asked(model, prompt)
    with answering(asked.writer) as running:
        return Steps(running, running.begin(asked.batch), None).chances()[0]


def precise(scores: Tensor) -> Tensor:
    """Log-probabilities in float32 or better."""
    return scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
