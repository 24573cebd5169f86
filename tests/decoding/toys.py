"""Small random models in float64 that say different things of different sources, and sources of unequal length."""

from typing import Any, cast

import torch
from torch import Tensor

from heedful.models import Forecaster, Transformer, build
from heedful.models.transformer import PAD

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
    return model


def sources(lengths: tuple[int, ...] = (7, 3, 0, 5, 1, 6, 7), vocab: int = 12, seed: int = 0) -> Tensor:
    """A batch of sources (B S), one of them empty."""
    torch.manual_seed(seed)
    source = torch.randint(PAD + 1, vocab, (len(lengths), max(lengths)))
    return source.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD)
