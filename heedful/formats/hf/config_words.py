"""Words of a spec to and from what configs say: activations, norms with their eps, scores with their dropout."""

from __future__ import annotations

from heedful.models.part_words import parse

ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
THEIRS = {"gelu_tanh": "gelu_new", "gelu": "gelu", "relu": "relu", "silu": "silu"}


def activation(word: str) -> str:
    """What configs call the activation of a feed-forward: that of its word, or the one that its word names."""
    name, given = parse(word)
    name = given.get("activation", "silu") if name == "gated" else name
    return THEIRS.get(name, name)


def norm_word(word: str, eps: float) -> str:
    """The word of a norm with its eps."""
    return f"{word}(eps={eps!r})"


def eps(word: str, default: float) -> float:
    """The eps that the word of a norm says."""
    return float(parse(word)[1].get("eps", default))


def with_dropout(word: str, share: float) -> str:
    """The word of a mechanism with a dropout of its weights, where there is one."""
    return f"{word}(dropout={share!r})" if share else word
