"""Word alignments: which words belong together, by where a model looks, and how well that agrees with people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from heedful.data.parallel_sample import Link, Links
from heedful.errors import Failure
from heedful.looking.maps import Map
from heedful.safe import outfile

__all__ = ["Agreement", "Alignment", "Link", "agreement", "guide", "links", "words_map", "write_json"]


@dataclass(frozen=True, eq=False)
class Alignment:
    """A source and its target as words, how much each target word looked at each source word, and what was linked."""

    source: tuple[str, ...]  # S words
    target: tuple[str, ...]  # T words
    matrix: Tensor  # T S, float32 on the CPU
    links: tuple[Link, ...]
    gold: Links | None = None  # what people say of the pair, where that is known

    def __post_init__(self) -> None:
        shape, matrix = (len(self.target), len(self.source)), self.matrix
        if matrix.shape != shape or matrix.dtype != torch.float32 or matrix.device.type != "cpu":
            found = f"{tuple(matrix.shape)} in {matrix.dtype} on {matrix.device}"
            raise ValueError(f"the matrix is {found}; {shape}, target by source words, in float32 on the CPU is needed")
        if not matrix.isfinite().all():
            raise Failure("some weights are not finite; train with a lower rate or in a wider dtype")
        if not all(0 <= source < shape[1] and 0 <= target < shape[0] for source, target in self.links):
            raise ValueError(
                f"some link of {self.links} goes to no word of {shape[1]} source and {shape[0]} target words"
            )

    @property
    def map(self) -> Map:
        """The matrix with its words: target words look, source words are looked at. There must be some of both."""
        return Map("alignment", self.matrix[None], self.target, self.source)

    @property
    def given(self) -> tuple[Link, ...]:
        """Every link that people gave, sure or possible."""
        return tuple(sorted(self.gold.possible)) if self.gold else ()

    def to_json(self) -> dict[str, Any]:
        """The alignment as JSON's own types; every number is exact."""
        words = {"source": list(self.source), "target": list(self.target)}
        given = zip(("sure", "possible"), map(sorted, self.gold or ()), strict=False)
        links = {"links": self.links, **dict(given)}
        return {**words, **{name: [*map(list, some)] for name, some in links.items()}, "matrix": self.matrix.tolist()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The alignment that `to_json` gave."""
        matrix = torch.tensor(value["matrix"]).float().view(len(value["target"]), len(value["source"]))
        links, sure, possible = (map(tuple, value.get(name, ())) for name in ("links", "sure", "possible"))
        gold = Links(frozenset(sure), frozenset(possible)) if "sure" in value else None
        return cls(tuple(value["source"]), tuple(value["target"]), matrix, tuple(links), gold)


@dataclass(frozen=True)
class Agreement:
    """How well links that were found agree with links that people gave (Och and Ney, 2003)."""

    precision: float  # of the found links, the share that is at least possible
    recall: float  # of the sure links, the share that was found
    error_rate: float  # less is better


def words_map(weights: Tensor, rows: Sequence[int], columns: Sequence[int]) -> Tensor:
    """The weights of sub-words, (...) T S, as weights of words: columns of a word are summed, its rows averaged.

    `rows` and `columns` say to which word each sub-word belongs, from 0; -1 is none, such as the end, and is left out.
    Rows are not made to sum to one again: what a row lacks is what it gave to no word, and `links` can ask for it. A
    word without sub-words has zeros. It carries gradient.
    """
    if weights.shape[-2:] != (len(rows), len(columns)):
        raise ValueError(f"weights are {tuple(weights.shape)}, for {len(rows)} rows and {len(columns)} columns")
    row, column = (_membership(places).to(weights) for places in (rows, columns))  # T' T, S' S
    return (row / row.sum(1, keepdim=True).clamp(min=1)) @ weights @ column.T


def links(matrix: Tensor, least: float = 0.0) -> list[Link]:
    """The source word that each target word looks at most (T S), unless that is not at all or by less than `least`.

    With `least` a half, a target word that looks mostly at the end, or at nothing, stays without a link.
    """
    if not matrix.numel():
        return []
    best, places = matrix.max(1)
    found = zip(places.tolist(), best.tolist(), strict=True)
    return sorted((at, word) for word, (at, weight) in enumerate(found) if weight > 0 and weight >= least)


def guide(links: Iterable[Link], rows: Sequence[int], columns: Sequence[int]) -> Tensor:
    """Where each target sub-word should look if words are so linked: T S, evenly over all sub-words of linked words.

    A row sums to one, or to zero where its word has no link and nothing is said. A model learns from it by the
    cross-entropy with its own weights (Chen et al., 2016).
    """
    row, column = _membership(rows), _membership(columns)  # T' T, S' S
    linked = torch.zeros(len(row), len(column))
    for source, target in links:
        linked[target, source] = 1.0
    wanted = row.T @ linked @ column  # T S
    return wanted / wanted.sum(1, keepdim=True).clamp(min=1)


def agreement(
    found: Sequence[Iterable[Link]], sure: Sequence[Iterable[Link]], possible: Sequence[Iterable[Link]] = ()
) -> Agreement:
    """How well links agree with people's, over all sentences: 1 - (|A and S| + |A and P|) / (|A| + |S|).

    Sure links are possible ones too, and where `possible` is not given, the only ones (Och and Ney, 2003).
    """
    hits = chances = all_found = all_sure = 0
    for one, certain, other in zip(found, sure, possible or sure, strict=True):
        a, s, p = set(one), set(certain), set(other) | set(certain)
        hits, chances = hits + len(a & s), chances + len(a & p)
        all_found, all_sure = all_found + len(a), all_sure + len(s)
    return Agreement(
        _share(chances, all_found), _share(hits, all_sure), 1 - _share(hits + chances, all_found + all_sure)
    )


def write_json(alignments: Sequence[Alignment], path: str | Path) -> None:
    """Writes `{"alignments": [...]}`, one alignment a line."""
    lines = ",\n".join(json.dumps(one.to_json()) for one in alignments)
    outfile.write(path, f'{{"alignments": [\n{lines}\n]}}\n')


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0  # of nothing, nothing is wrong


def _membership(places: Sequence[int]) -> Tensor:
    """Which sub-words belong to which word, as 0 and 1: words x sub-words."""
    words = torch.arange(max((0, *(place + 1 for place in places))))
    return (words[:, None] == torch.tensor(places, dtype=torch.long)).float()
