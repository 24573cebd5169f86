"""Masks for mechanisms that support few: which columns are there, and whether the mask hides the future."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.attention.mask_and_bias import Causal, may_ask
from heedful.attention.mechanism import Mechanism
from heedful.attention.plain_masks import Documents, Padding
from heedful.attention.sight import Sight
from heedful.errors import Refusal


@dataclass(frozen=True)
class Reading:
    """A sight that hides padding and the future alone: `there` (B|1 1 S 1) says which columns are no padding."""

    causal: bool
    there: Tensor


def reading_of(sight: Sight, name: str, hides: str = "padding and the future", other: str = "softmax") -> Reading:
    """The reading of a sight, or a refusal in the mechanism's name with an `other` that can; made once per forward."""
    if sight.bias is not None:
        raise Refusal(f"{name} adds nothing to its scores; use {other} with a bias, or {name} without one")
    return sight.once("reading", lambda: _make_reading(sight, name, hides, other))


def _make_reading(sight: Sight, name: str, hides: str, other: str) -> Reading:
    parts = sight.mask.all_of()
    others = {type(part) for part in parts} - {Causal, Padding}
    if others == {Documents}:
        raise Refusal(
            f"{name} cannot keep texts in one row apart; use {other}, or let them see one another with data.apart=false"
        )
    if others:
        raise Refusal(f"{name} can hide {hides} alone; use {other} with any other mask")
    return Reading(any(isinstance(part, Causal) for part in parts), present(sight, sight.columns))


def present(sight: Sight, at: Tensor) -> Tensor:
    """Which of the members that stand at `at` (B|1 S) are no padding: B|1 1 S 1."""
    b, there = torch.arange(sight.batch, device=at.device)[:, None], at >= 0
    for part in sight.mask.all_of():
        there = there & part.sees(b, b, at, at) if isinstance(part, Padding) else there
    return there[:, None, :, None]


def read_whole(sight: Sight, name: str, other: str = "softmax") -> Tensor:
    """Which columns are there (B|1 1 S 1), for a mechanism that looks at all of them at once: causal is refused."""
    hidden = {type(part) for part in sight.mask.all_of()}
    if Causal in hidden:
        can = f"linear or {other}" if other == "softmax" and hidden <= {Causal, Padding} else other
        raise Refusal(f"{name} looks at the whole sequence, the future too; use {can} where that hides")
    return reading_of(sight, name, "padding", other).there


def read_itself(sight: Sight, name: str, other: str = "softmax") -> Tensor:
    """The same for a mechanism that needs rows and columns to be one sequence: which of its members are there."""
    there = read_whole(sight, name, other)
    if sight.rows is not sight.columns:
        raise Refusal(f"{name} is for a sequence that looks at itself as a whole; use {other} elsewhere")
    return there


def check_positions(sight: Sight, mechanism: Mechanism) -> None:
    """Refuses columns that stand beyond the positions that a mechanism has learned."""
    length, count = mechanism.length, sight.columns.shape[-1]
    last = count
    if not sight.counted and (count > length or may_ask(sight.columns)):  # else a GPU would have to be waited for
        last = int(sight.columns.max()) + 1
    if last > length:
        raise Refusal(
            f"{mechanism.word} was made for {length} positions and {last} came; shorten the input, or train with a "
            "larger model.length"
        )
