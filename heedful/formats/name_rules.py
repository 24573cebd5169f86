"""Rules between a tensor of ours and those in a file: each can be read in both directions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Same:
    """One tensor under two names, in which `{holes}` stand for the same on both sides: a layer's number, say."""

    ours: str
    theirs: str
    copies: ClassVar[bool] = False  # whether what is read is a copy, so that the file's own pages can be given back

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the file."""
        return (self.theirs,)

    def filled(self, name: str) -> Self | None:
        """The rule for one tensor of ours, its holes filled; none where it is for others."""
        found = re.fullmatch(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^.]+)", re.escape(self.ours)), name)
        return None if found is None else type(self)(name, self.theirs.format(**found.groupdict()))

    def shapes(self, ours: Shape) -> list[Shape]:
        """The shapes that tensors in the file have."""
        return [ours]

    def read(self, theirs: Sequence[Tensor]) -> Tensor:
        """Our tensor, of those in the file."""
        return theirs[0]

    def write(self, ours: Tensor) -> list[Tensor]:
        """The tensors of the file, of ours."""
        return [ours]


@dataclass(frozen=True)
class Transposed(Same):
    """A matrix that lies the other way round in the file."""

    copies = True

    def shapes(self, ours: Shape) -> list[Shape]:
        return [ours[::-1]]

    def read(self, theirs: Sequence[Tensor]) -> Tensor:
        return theirs[0].T.contiguous()

    def write(self, ours: Tensor) -> list[Tensor]:
        return [ours.T]


@dataclass(frozen=True)
class Row(Same):
    """A tensor that has one more axis, of one, before the others in the file."""

    def shapes(self, ours: Shape) -> list[Shape]:
        return [(1, *ours)]

    def read(self, theirs: Sequence[Tensor]) -> Tensor:
        return theirs[0][0]

    def write(self, ours: Tensor) -> list[Tensor]:
        return [ours[None]]


@dataclass(frozen=True)
class Stacked:
    """A tensor of ours that is several in the file, one below the other: their names, with how many rows each has."""

    ours: str
    theirs: dict[str, int]
    copies: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the file."""
        return tuple(self.theirs)

    def filled(self, name: str) -> Self | None:
        """The rule for one tensor of ours, its holes filled; none where it is for others."""
        made = [Same(self.ours, one).filled(name) for one in self.theirs]
        named = [one.theirs for one in made if one is not None]
        return type(self)(name, dict(zip(named, self.theirs.values(), strict=True))) if named else None

    def shapes(self, ours: Shape) -> list[Shape]:
        """The shapes that tensors in the file have."""
        return [(rows, *ours[1:]) for rows in self.theirs.values()]

    def read(self, theirs: Sequence[Tensor]) -> Tensor:
        """Our tensor, of those in the file."""
        return torch.cat(list(theirs))

    def write(self, ours: Tensor) -> list[Tensor]:
        """The tensors of the file, of ours."""
        return list(ours.split(list(self.theirs.values())))


Rule = Same | Stacked


def rules_of(names: Iterable[str], table: Sequence[Rule]) -> dict[str, Rule]:
    """The rule of each tensor of ours, its holes filled. A table has one rule for each, and none leads to one name."""
    made: dict[str, Rule] = {}
    for name in names:
        fitting = [filled for rule in table if (filled := rule.filled(name)) is not None]
        if len(fitting) != 1:
            raise KeyError(f"the table of names has {len(fitting)} rules for {name!r}")
        made[name] = fitting[0]
    theirs = [name for rule in made.values() for name in rule.names]
    if len(set(theirs)) < len(theirs):
        raise KeyError("the table of names leads to one name twice")
    return made
