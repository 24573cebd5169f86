"""Every family of models at toy size, with the same sequences alone and together, padded to one length."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from heedful import models
from heedful.models import part_tables
from tests.laws import cases
from tests.laws.cases import MECHANISMS, stir

VOCAB, CHANNELS, LENGTHS = 11, 3, (7, 4, 1)
FAMILIES: dict[str, tuple[str, dict]] = {
    "transformer": ("transformer", {"vocab": VOCAB, "tied": False}),
    "predictor of tokens": ("predictor", {"vocab": VOCAB, "classes": 4}),
    "predictor of labels": ("predictor", {"vocab": VOCAB, "classes": 4, "pool": "each"}),
    "predictor of vectors": ("predictor", {"channels": CHANNELS, "classes": 4}),
    "forecaster": ("forecaster", {"channels": CHANNELS}),
    "gpt": ("gpt", {"vocab": VOCAB, "tied": False}),
    "classes of bert": ("bert", {"vocab": VOCAB, "tied": False, "output": "classes", "classes": 4}),
    "llama": ("llama", {"vocab": VOCAB, "key": 6, "key_norm": True}),
    "t5": ("t5", {"vocab": VOCAB, "tied": False}),
    "bart": ("bart", {"vocab": VOCAB, "tied": False}),
    "marian": ("marian", {"vocab": VOCAB, "tied": False, "scale_embedding": False}),
}
WRITERS = ("transformer", "t5", "bart", "marian")  # read a source and write a target
CAUSAL = {"transformer": 1, "forecaster": 0, "gpt": 0}  # and which of their inputs runs in time; a llama is a gpt
MASKED = [f"{word}(size=3)" for word in part_tables.MASKS]
WORDS = [*MECHANISMS, *MASKED]
ALL = ("transformer", "predictor of labels")  # between them they have every stack, causal, both ways and across
PAIRS = [  # the others are made of the same parts, and need not show again what these show of every mechanism
    (name, word) for name in FAMILIES for word in WORDS if name in ALL or word in ("softmax", "window(size=3)")
]
PLACES = [
    *zip(part_tables.POSITIONS, itertools.cycle(part_tables.BIASES), strict=False)
]  # each position, with each bias in turn


NEEDED = {
    **{family: {"mask causal", "mask padding", "sight another"} for family in WRITERS},
    "forecaster": {"mask causal"},
    "gpt": {"mask causal"},
    "llama": {"mask causal"},
}


def obeys(word: str, name: str, *parts: str) -> bool:
    """Whether a word's mechanism takes what a family asks of it, by the golden table."""
    return cases.obeys(word, "groups 2", *NEEDED.get(name, {"mask padding"}), *parts)


def turns(word: str) -> bool:
    """Whether a word's mechanism has keys that rotary positions may turn."""
    return getattr(part_tables.MECHANISMS.get(word), "turns", True)


def places(word: str, name: str, *parts: str) -> list[tuple[str, str]]:
    """Positions and biases with which a family is asked about a word: all that it takes, or a few of them."""
    known = [place for place in PLACES if turns(word) or place[0] not in part_tables.ROTARY]
    every = [place for place in known if obeys(word, name, f"bias {place[1]}", *parts)]
    return cases.few_of(word, every, 1 if word in MASKED else 2)


def model(name: str, word: str = "softmax", **numbers: object) -> nn.Module:
    """A family's model in float64, a third of its heads to a group of keys."""
    torch.manual_seed(0)
    family, needed = FAMILIES[name]
    shares = getattr(part_tables.MECHANISMS.get(word), "shares", False)  # queries that are keys have no groups
    small = {
        "width": 24,
        "heads": 6,
        "groups": None if shares else 2,
        "depth": 2,
        "hidden": 20,
        "length": 16,
        "mechanism": cases.toy(word),
    }
    return stir(models.build(family, **small | needed | numbers)).double()


def tokens(length: int, seed: int) -> Tensor:
    return torch.randint(4, VOCAB, (1, length), generator=torch.Generator().manual_seed(seed))


def vectors(length: int, seed: int) -> Tensor:
    return torch.randn(1, length, CHANNELS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def alone(name: str) -> list[tuple[Tensor, ...]]:
    """The inputs of each sequence by itself."""
    if name in WRITERS:
        return [(tokens(LENGTHS[-1 - n], n), tokens(length, n + 3)) for n, length in enumerate(LENGTHS)]
    draw = tokens if "vocab" in FAMILIES[name][1] else vectors
    return [(draw(length, n),) for n, length in enumerate(LENGTHS)]


def padded(sequences: list[Tensor], filler: float) -> Tensor:
    whole = sequences[0].new_full((len(sequences), max(LENGTHS), *sequences[0].shape[2:]), filler)
    for row, sequence in zip(whole, sequences, strict=True):
        row[: sequence.shape[1]] = sequence[0]
    return whole


def together(name: str) -> tuple[Tensor, ...]:
    """The inputs of all sequences as one batch. What the future hides is padded with something, not with nothing."""
    inputs = [list(kind) for kind in zip(*alone(name), strict=True)]
    if name in WRITERS:
        return padded(inputs[0], 0), padded(inputs[1], 5)
    if name == "predictor of vectors":
        return padded(inputs[0], 9.0), torch.tensor(LENGTHS)
    return (padded(inputs[0], {"forecaster": 9.0, "gpt": 5, "llama": 5}.get(name, 0)),)


def real(name: str, answer: Tensor, length: int) -> Tensor:
    """The part of one sequence's answer that is no padding."""
    long = (*CAUSAL, *WRITERS, "llama", "predictor of labels")
    return answer[:length] if name in long else answer


def other(x: Tensor) -> Tensor:
    """Inputs like these, and each of them another."""
    return x + 1.0 if x.is_floating_point() else VOCAB + 3 - x
