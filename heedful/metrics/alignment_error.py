"""Alignment error rate of attention: which layer and head looks at the word that it translates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import CrossAttention
from heedful.data.collate import Batch, to
from heedful.data.parallel_sample import Link
from heedful.looking import look
from heedful.looking.alignment import agreement, links, words_map
from heedful.models.numerics import device_of
from heedful.models.writer import teacher_forced

Words = tuple[list[int], list[int]]  # the word of each sub-word of a source and of its target, without begin and end


@dataclass(frozen=True, order=True)
class Gaze:
    """Where to look for alignments: a layer, a head or the mean of its heads, and at which row of a word.

    A word's row is the one at which it is written, or the one at which it is read in order to write the next: of the
    two the second often looks where it should (Chen et al., 2020).
    """

    layer: str
    head: int | None  # None: the mean of all heads
    read: bool

    def __str__(self) -> str:
        """As people say it."""
        head = "mean of heads" if self.head is None else f"head {self.head}"
        return f"{self.layer}, {head}, where a word is {'read' if self.read else 'written'}"

    @classmethod
    def of(cls, value: dict[str, Any]) -> Gaze:
        """The gaze of JSON's own types."""
        layer, head, read = value["layer"], value["head"], value["read"]
        if not (isinstance(layer, str) and (head is None or type(head) is int) and isinstance(read, bool)):
            raise TypeError(f"{value} says no layer and head")
        return cls(layer, head, read)


def looks_across(model: nn.Module) -> bool:
    """Whether a model looks back at its source, so that words can be linked by where it looks."""
    return any(isinstance(part, CrossAttention) for part in model.modules())


@torch.no_grad()
def crossings(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """The cross-attention of every layer on a batch, with the mean of its heads as the last: B H+1 T S each."""
    batch = to(batch, device_of(model))
    model.eval()
    with look(model) as seen:
        teacher_forced(model, batch)
    found = {path: seen.weights(path).float().cpu() for path in seen.paths if path.endswith("cross")}
    return {path: torch.cat((weights, weights.mean(1, keepdim=True)), 1) for path, weights in found.items()}


def of_words(weights: Tensor, words: Words, read: bool) -> Tensor:
    """One sample's weights (H T S) between its words: H T' S'. Rows are those at which words are read, or written."""
    source, target = words
    rows = weights[:, int(read) : len(target) + int(read), : len(source)]
    return words_map(rows, target, source)


def every_gaze(crossed: dict[str, Tensor], words: Sequence[Words]) -> Iterator[tuple[Gaze, list[list[Link]]]]:
    """Each gaze, and the links that it gives to the samples of a batch."""
    for layer, weights in crossed.items():
        for read in (False, True):
            maps = [of_words(one, both, read) for one, both in zip(weights, words, strict=True)]
            for head in range(weights.shape[1]):
                number = head if head < weights.shape[1] - 1 else None
                yield Gaze(layer, number, read), [links(map[head]) for map in maps]


def choose(
    batches: Sequence[Batch],
    words: Sequence[Sequence[Words]],
    wanted: Sequence[Sequence[Sequence[Link]]],
    crossed: Callable[[Batch], dict[str, Tensor]],
) -> tuple[Gaze, float]:
    """The gaze whose links have the lowest error rate against those that are wanted, and that error rate."""
    found: dict[Gaze, list[list[Link]]] = {}
    for batch, both in zip(batches, words, strict=True):
        for gaze, some in every_gaze(crossed(batch), both):
            found.setdefault(gaze, []).extend(some)
    right = [sample for batch in wanted for sample in batch]
    rates = {gaze: agreement(some, right).error_rate for gaze, some in found.items()}
    best = min(rates, key=lambda gaze: (rates[gaze], gaze.layer, -1 if gaze.head is None else gaze.head, gaze.read))
    return best, rates[best]
