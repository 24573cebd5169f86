"""What every law is proved on: each mechanism's word, in as many cases as it obeys by the golden table."""

from __future__ import annotations

import functools
import itertools
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from heedful.attention import Attention, Rotary
from heedful.attention.mechanisms import Mechanism
from heedful.blocks import Block, Stack
from heedful.models import part_tables
from heedful.testing import attention_cases
from heedful.testing.attention_cases import (
    Case,
    agree,
    every,
    gradients,
    pairwise,
    parameters,
    probe,
    queries_keys_values,
    states,
    stir,
)
from heedful.testing.toy_masks import (
    BATCH,
    BIASES,
    EXACT,
    FEW,
    HEADS,
    KEY,
    LENGTH,
    LONGEST,
    PLAIN,
    SIGHTS,
    VALUE,
    WIDTH,
    masks,
)

__all__ = [
    "BATCH",
    "BIASES",
    "EXACT",
    "FEW",
    "HEADS",
    "KEY",
    "LENGTH",
    "SIGHTS",
    "VALUE",
    "WIDTH",
    "Case",
    "agree",
    "every",
    "gradients",
    "masks",
    "parameters",
    "probe",
    "queries_keys_values",
    "states",
    "stir",
]  # fmt: skip
GOLDEN = Path(__file__).with_name("refusals.json")
MECHANISMS = sorted(part_tables.MECHANISMS)


@functools.cache
def refused(word: str) -> set[str]:
    """The parts that a mechanism refuses, by the golden table."""
    return set(json.loads(GOLDEN.read_text(encoding="utf-8"))["mechanisms"].get(word, {}))


def obeys(word: str, *parts: str) -> bool:
    """Whether a mechanism takes all of these parts, by the golden table."""
    return refused(word).isdisjoint(parts)


def cases(word: str, **chosen: Iterable) -> Iterator[Case]:
    """The cases that a mechanism obeys, of the product of the axes chosen, less what the golden table says it refuses.

    Softmax, on which all else is built, is asked every one of them; the others are asked every pair of parts, or a few
    where they are made like one that was asked, or have no other road than their definition.
    """
    axes = {part: [value for value in values if obeys(word, f"{part} {value}")] for part, values in chosen.items()}
    every = itertools.product(*axes.values())
    chosen_ones = (
        every if word == "softmax" else itertools.islice(pairwise(list(every), word), 20 if alike(word) else None)
    )
    for values in chosen_ones:
        case = Case(**dict(zip(axes, values, strict=True)))
        if obeys(word, *case.parts()):
            yield case


def alike(word: str) -> bool:
    """Whether a mechanism is of tier B, or has its forward and weights from one before it, as Performer from linear."""
    if word in part_tables.MECHANISMS and part_tables.MECHANISMS[word].card.tier == "B":
        return True
    known, kind = part_tables.MECHANISMS, part_tables.MECHANISMS.get(word)
    before = [known[name] for name in itertools.takewhile(lambda name: name != word, known)]
    return kind is not None and any(one.forward is kind.forward and one.weights is kind.weights for one in before)


def few_of(word: str, every: Iterable, most: int = 2) -> list:
    """All of them for softmax; a few of them for another mechanism, and another few for the next."""
    every = list(every)
    return (
        every if word == "softmax" else random.Random(word).sample(every, min(1 if alike(word) else most, len(every)))
    )


def everywhere(word: str) -> Iterator[Case]:
    """Masks, biases, groups, widths and sights together: for softmax masks times biases times each of the rest."""
    axes = every()
    if word != "softmax":
        yield from cases(word, **axes)
        return
    yield from cases(word, **axes | {"bias": PLAIN, "value": [VALUE], "sight": ["itself"]})
    yield from cases(
        word, **axes | {"bias": sorted({*BIASES} - {*PLAIN}), "groups": [2], "value": [VALUE], "sight": ["itself"]}
    )
    yield from cases(word, **axes | {"value": [KEY], "bias": ["none", "table"], "sight": ["itself"]})
    yield from cases(word, **axes | {"bias": PLAIN, "groups": [2], "value": [VALUE], "sight": [*SIGHTS][1:]})


def toy(word: str) -> str:
    """A mechanism's word with its numbers so small that they matter to toys: `linformer(rank=3)`."""
    return attention_cases.toy_word(word, part_tables.MECHANISMS[word]) if word in part_tables.MECHANISMS else word


def plain(word: str) -> Mechanism:
    """A word's mechanism at toy size, as it begins."""
    return part_tables.mechanism(toy(word), HEADS, KEY, LONGEST)


def mechanism(word: str, width: int = KEY, dtype: torch.dtype = torch.float64) -> Mechanism:
    return stir(part_tables.mechanism(toy(word), HEADS, width, LONGEST)).to(dtype)


def attention(word: str, groups: int = 2, position: Rotary | None = None) -> Attention:
    """Attention whose keys and values have widths of their own."""
    return attention_cases.attention_of(functools.partial(plain, word), groups, position)


def stack(
    word: str, groups: int = 2, position: Rotary | None = None, depth: int = 2, kind: type[Block] = Block
) -> Stack:
    return attention_cases.stack_of(functools.partial(plain, word), groups, position, depth, kind)
