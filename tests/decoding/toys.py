"""Small random models in float64 that say different things of different sources, and sources of unequal length."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from heedful import decoding
from heedful.attention import Context, Memory
from heedful.decoding import Answer
from heedful.decoding.beam import beam as by_beams
from heedful.decoding.greedy import greedy as greedily
from heedful.decoding.sample import sample as by_chance
from heedful.models import Forecaster, Transformer, build
from heedful.models.text.transformer import BEGIN, END, PAD, SPECIAL
from heedful.models.writer import Beginning, Writer

KINDS: dict[str, dict[str, Any]] = {
    "sine": {},
    "sine_beside": {"position": "sine_beside"},
    "learned": {"position": "learned"},
    "rotary": {"position": "rotary"},
    "alibi": {"position": "none", "bias": "alibi"},
    "buckets": {"position": "none", "bias": "buckets"},
    "window": {"mechanism": "window(size=3)"},
    "blocks": {"mechanism": "blocks(size=4)"},
    "window with rotary and buckets": {"mechanism": "window(size=3)", "position": "rotary", "bias": "buckets"},
    "additive": {"mechanism": "additive"},
    "general": {"mechanism": "general"},
    "shared keys, post-norm": {"groups": 1, "order": "post"},
}


def writer(seed: int = 0, vocab: int = 12, **words: Any) -> Transformer:
    """An encoder-decoder whose weights are enlarged, so that it is sure of itself and its answers end early or late."""
    torch.manual_seed(seed)
    numbers = {"width": 16, "heads": 2, "depth": 2, "hidden": 32, "length": 40, "tied": False, "dropout": 0.1}
    model = cast(Transformer, build("transformer", vocab=vocab, **numbers | words)).double()
    return sharpened(model).eval()


def forecaster(seed: int = 0, **words: Any) -> Forecaster:
    torch.manual_seed(seed)
    model = build("forecaster", channels=3, **{"width": 16, "heads": 2, "depth": 2, "hidden": 32, "length": 40} | words)
    return cast(Forecaster, model).double().eval()


def sharpened(model: Transformer) -> Transformer:
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0 if weight.dim() > 1 else 1.0)
        model.outputs.matrix.weight[END] *= 2.0
    return model


def sources(lengths: tuple[int, ...] = (7, 3, 0, 5, 1, 6, 7), vocab: int = 12, seed: int = 0) -> Tensor:
    """A batch of sources (B S), one of them empty."""
    torch.manual_seed(seed)
    source = torch.randint(PAD + 1, vocab, (len(lengths), max(lengths)))
    return source.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD)


def told(model: Writer, tokens: Tensor) -> dict[str, Tensor]:
    """Sources or prompts as the batch that a model reads."""
    return {next(iter(model.reads), "prompt"): tokens}


def on_tokens(search: Callable[..., Any]) -> Callable[..., Any]:
    """A search that goes on from the context of sources, or of prompts."""
    return lambda model, tokens, *how, **more: search(model, decoding.begin(model, told(model, tokens)), *how, **more)


greedy, beam, sample = map(on_tokens, (greedily, by_beams, by_chance))


class Biased(Writer):
    """A writer that scores some tokens otherwise than its model does, and counts the targets of every step."""

    special, reads = SPECIAL, frozenset({"source"})

    def __init__(self, model: Transformer, scores: dict[int, float] | None = None) -> None:
        super().__init__()
        self.model, self.scores, self.memory = model, scores or {}, model.memory
        self.encoded = 0
        self.rows: list[int] = []

    def begin(self, batch: Mapping[str, Tensor]) -> Beginning:
        self.encoded += 1
        return self.model.begin(batch)

    def states(
        self, tokens: Tensor, context: Context, memory: Memory | None = None, positions: Tensor | None = None
    ) -> Tensor:
        self.rows.append(tokens.numel() if memory else len(tokens))
        return self.model.states(tokens, context, memory, positions)

    def outputs(self, states: Tensor) -> Tensor:
        logits = self.model.outputs(states)
        for token, score in self.scores.items():
            logits[..., token] = score
        return logits


def same(ours: list[Answer], theirs: list[Answer]) -> None:
    """Asserts that two searches found the same."""
    assert [(a.tokens, a.finished) for a in ours] == [(a.tokens, a.finished) for a in theirs]
    assert [a.score for a in ours] == pytest.approx([a.score for a in theirs], abs=1e-10, rel=0)


def taught(model: Transformer, source: Tensor, answer: Answer) -> float:
    """The score of an answer by one pass over the whole of it."""
    written = torch.tensor([BEGIN, *answer.tokens, *([END] if answer.finished else [])])
    with torch.no_grad():
        chances = model(source[None], written[None, :-1])[0].log_softmax(-1)
    return float(chances.gather(1, written[1:, None]).sum())
