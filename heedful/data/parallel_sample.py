"""Parallel text as samples: pairs of a source and a target, the files they lie in, and which words belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

Column = str | int  # of a table: its name, within an object as `translation.en`, or its number from 1
Link = tuple[int, int]  # a source word and a target word, both counted from 0


class Links(NamedTuple):
    """A word alignment by people: the sure links, and the possible links, which include them."""

    sure: frozenset[Link]
    possible: frozenset[Link]


class Sides(BaseModel):
    """Two files that belong together line by line, and a third where words are aligned by hand."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    source: str
    """The file of the sources, one a line."""
    target: str
    """The file of the targets, one a line."""
    alignment: str | None = None
    """A file that says which words belong together, as `0-0 1-2`: source and target words, counted from 0."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A source and its target, where they were read, and which of their words belong together, where that is given."""

    source: str
    target: str
    paths: tuple[str, str] = ("", "")
    line: int = 0
    links: Links | None = None

    def where(self, side: int) -> str:
        """Where the source (0) or the target (1) stands."""
        return f"{self.paths[side]}, line {self.line}" if self.line else "a sample"
