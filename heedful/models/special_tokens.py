"""The special tokens of a model, by their ids."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.models.specs import BEGIN, END, PAD


@dataclass(frozen=True)
class Special:
    """What fills rows up, what a target begins with, and what ends it; ids that no model may write, or must first.

    An id of -1 is no token: the model has none of that kind.
    """

    pad: int
    begin: int
    end: int
    never: tuple[int, ...] = ()  # is written
    first: int | None = None  # what every target has to begin with, after `begin`
    others: tuple[int, ...] = ()  # that end a target too

    @property
    def ends(self) -> tuple[int, ...]:
        """All that ends a target."""
        return (*((self.end,) if self.end >= 0 else ()), *self.others)


SPECIAL = Special(PAD, BEGIN, END, never=(PAD, BEGIN))  # of models that are made here
