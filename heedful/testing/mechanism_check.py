"""Which cases each law of mechanisms is measured on, and all of them measured on a mechanism of one's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from heedful.attention import Rotary
from heedful.attention.card import Card
from heedful.attention.mechanisms import Mechanism
from heedful.testing.attention_cases import (
    Case,
    Make,
    cases_not_refused,
    every,
    pairwise,
    refusals,
    stack_of,
    stir,
    toy_mechanism,
)
from heedful.testing.broken_law import BrokenLaw, law
from heedful.testing.mechanism_laws import (
    blind_rows,
    equation,
    few_rows,
    future,
    hidden_keys,
    hidden_values,
    one_by_one,
    padding,
    steps,
    turns,
)
from heedful.testing.toy_masks import BATCH, BIASES, FEW, HEADS, KEY, LENGTH, SIGHTS, VALUE, masks

CURE = re.compile(r"; [a-z]+ |, not ")  # what is wrong, then what to do


def ahead(dense: Tensor) -> bool:
    """Whether some row of a square mask sees what comes after it."""
    return bool((dense & (torch.arange(LENGTH) > torch.arange(LENGTH)[:, None])).any())


@dataclass(frozen=True)
class Law:
    """A law of mechanisms, or of blocks of them, and what of a case it is measured on."""

    name: str
    holds: Callable[[Any, Case], None]
    axes: Mapping[str, Iterable[Any]]
    in_blocks: bool = False


@torch.no_grad()
def causal_masks() -> list[str]:
    """The masks that show no row what comes after it."""
    return [name for name, mask in masks().items() if not ahead(mask.over(torch.empty(BATCH, LENGTH)).dense)]


LAWS = (
    Law("forward(q, k, v, sight) == weights(q, k, sight) @ v", equation, every()),
    Law(
        "the weights of a few rows are those rows of all",
        few_rows,
        {"mask": masks(), "bias": FEW, "groups": [2], "sight": SIGHTS},
    ),
    Law(
        "hidden keys weigh nothing and have no gradient",
        hidden_keys,
        {"mask": masks(), "bias": ["none", "buckets"], "groups": [HEADS, 2], "sight": ["itself", "remembered"]},
    ),
    Law(
        "a row sees no hidden value, however large",
        hidden_values,
        {"mask": ["padding", "causal", "window", "documents"], "bias": ["none", "alibi"]},
    ),
    Law(
        "a row with nothing to see is zero with zero gradient",
        blind_rows,
        {"mask": ["given for all"], "bias": BIASES, "groups": [HEADS, 2], "value": [KEY, VALUE]},
    ),
    Law(
        "many sequences are answered as each alone",
        one_by_one,
        {"mask": masks(), "bias": FEW, "groups": [2], "value": [VALUE], "sight": ["itself", "another"]},
    ),
    Law(
        "the future never leaks",
        future,
        {"mask": causal_masks(), "bias": FEW, "groups": [2], "value": [VALUE]},
        in_blocks=True,
    ),
    Law(
        "padding changes nothing",
        padding,
        {"mask": ["everything", "causal", "window"], "bias": FEW, "groups": [2], "value": [VALUE]},
        in_blocks=True,
    ),
    Law(
        "steps with a KV cache are one pass",
        steps,
        {"mask": ["causal", "causal & window"], "bias": FEW, "groups": [2], "value": [VALUE], "sight": ["remembered"]},
        in_blocks=True,
    ),
)


def few_cases(axes: Mapping[str, Iterable[Any]], refused: Mapping[str, str]) -> Iterator[Case]:
    """As many cases as it takes to ask every two values together, of those of which nothing is refused."""
    rows = [tuple(vars(case).items()) for case in cases_not_refused(axes, refused)]
    return (Case(**dict(row)) for row in pairwise(rows, "few"))


def check_mechanism(name: str, kind: type[Mechanism]) -> None:
    """Holds a mechanism to every law, in all cases that it does not refuse."""
    if not isinstance(getattr(kind, "card", None), Card):
        raise BrokenLaw(f"{name} has no card; say whose it is and what it costs: card = Card(paper, year, cost)")
    make: Make = partial(toy_mechanism, kind)
    with law(name, "it answers queries, keys and values"):
        m = stir(make()).double()
        refused = refusals(lambda: stir(make()).double())
    plain = refused.keys() & Case().parts()
    if plain:
        raise BrokenLaw(f"{name} breaks a law: it answers the plainest case ({refused[min(plain)]})")
    for part, said in refused.items():
        if "\n" in said or not CURE.search(said):
            raise BrokenLaw(f"{name} breaks a law: a refusal names the cure, after a semicolon ({part}: {said})")
    if kind.card.causal == ("mask causal" in refused):
        said = f"its card says causal={kind.card.causal} and it does otherwise"
        raise BrokenLaw(f"{name} breaks a law: a card says whether a mechanism can hide the future ({said})")
    blocks = stack_of(make, position=Rotary() if kind.turns else None) if "groups 2" not in refused else None
    for one in LAWS:
        whole = blocks if one.in_blocks else m
        needs = {"mask padding"} if one.holds is padding else set()
        if whole is None or needs & refused.keys():
            continue
        with law(name, one.name):
            for case in few_cases(one.axes, refused):
                one.holds(whole, case)
    if blocks is not None:
        with law(name, "without positions it turns with its inputs"):
            turns(stack_of(make), kind.card.ordered)
