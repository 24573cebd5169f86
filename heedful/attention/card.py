"""What there is to know of a kind of attention beside its formula: said once, at its class."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """Whose a kind is, what it costs in T, and what it can and cannot do; the class's own words say what it is.

    `causal`: whether it can hide the future. `ordered`: whether the order of a sequence matters to it even where no
    position is given, be it that of equals alone. `tier`: A is made to be fast, B is its definition, and may be
    quadratic whatever its paper says.
    """

    paper: str
    year: int
    cost: str
    limits: str = "none"
    causal: bool = True
    ordered: bool = False
    tier: str = "A"
