"""Attention maps: weights with words on both axes, and their way to and from JSON."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from heedful.errors import Failure, Refusal
from heedful.safe import outfile

if TYPE_CHECKING:
    from heedful.looking.look import Seen

PICTURES = {" ": "␣", "\n": "↵", "\t": "⇥"}
JOINERS = "\u200c\u200d"  # they build one sign out of several, in emoji and in Persian
UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}  # the Unicode categories that leave no ink


@dataclass(frozen=True, eq=False)
class Map:
    """One attention's weights on one input, with words on both axes."""

    path: str  # the attention's dotted path in the model: "decoder.blocks.0.cross"
    weights: Tensor  # H T S, float32 on the CPU
    rows: tuple[str, ...]  # T words: who looks
    columns: tuple[str, ...]  # S words: what is looked at
    note: str = ""  # what else a title says of it: "mean over windows"
    whole: str = ""  # what it shows where that is no head but all layers: "rollout"

    def __post_init__(self) -> None:
        w, t, s = self.weights, len(self.rows), len(self.columns)
        if w.ndim != 3 or w.shape[1:] != (t, s) or not w.numel():
            raise ValueError(f"{self.path}: weights are {_size(w)}; heads x {t} rows x {s} columns needed")
        if w.dtype != torch.float32 or w.device.type != "cpu":
            raise ValueError(f"{self.path}: weights are {w.dtype} on {w.device}; pass weights.float().cpu()")
        if not w.isfinite().all():
            raise Failure(f"{self.path}: some weights are not finite; train with a lower rate or in a wider dtype")

    @property
    def heads(self) -> int:
        """How many heads look."""
        return self.weights.shape[0]

    @property
    def title(self) -> str:
        """The title: its path, and the note where there is one."""
        return f"{self.path}, {self.note}" if self.note else self.path

    def named(self, head: int) -> str:
        """The caption of one of its pictures."""
        return self.whole or f"head {head}"

    @property
    def said(self) -> dict[str, str]:
        """The note and what it shows as JSON's own types, where they are given."""
        return {name: text for name, text in (("note", self.note), ("whole", self.whole)) if text}

    @property
    def span(self) -> tuple[float, float]:
        """The least and the greatest weight of all heads, zero among them: the ends of a colour scale."""
        low, high = min(0.0, float(self.weights.min())), max(0.0, float(self.weights.max()))
        return (low, high) if low < high else (0.0, 1.0)

    def _repr_html_(self) -> str:
        from heedful.looking import draw, notebook

        return notebook.frame(self.title, [draw.explore([self])])

    def to_json(self) -> dict[str, Any]:
        """The map as JSON's own types; every number is exact."""
        words = {"rows": list(self.rows), "columns": list(self.columns)}
        return {"path": self.path, **self.said, **words, "weights": self.weights.tolist()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The map that `to_json` gave."""
        weights = torch.tensor(value["weights"], dtype=torch.float32)  # H T S
        said = {name: value[name] for name in ("note", "whole") if name in value}
        return cls(value["path"], weights, tuple(value["rows"]), tuple(value["columns"]), **said)


def write_json(maps: Sequence[Map], path: str | Path) -> None:
    """Writes `{"maps": [...]}`, one map a line."""
    lines = ",\n".join(json.dumps(m.to_json()) for m in maps)
    outfile.write(path, f'{{"maps": [\n{lines}\n]}}\n')


def span_of(maps: Sequence[Map]) -> tuple[float, float]:
    """One colour scale for several maps that are compared: from the least weight of them to the greatest."""
    spans = [map.span for map in maps]
    return min(low for low, _ in spans), max(high for _, high in spans)


def visible(word: str) -> str:
    """The word as it can be seen: blanks as signs, other signs without ink as escapes."""
    return "".join(_sign(sign, alone=len(word) == 1) for sign in word) or "∅"


def _sign(sign: str, alone: bool) -> str:
    if sign in PICTURES:
        return PICTURES[sign]
    if unicodedata.category(sign) in UNSEEN and (alone or sign not in JOINERS):
        return sign.encode("unicode_escape").decode()
    return sign


def _size(weights: Tensor) -> str:
    return " x ".join(map(str, weights.shape)) or "a single number"


def maps_of_seen(
    seen: Seen, words: Callable[[str], tuple[Sequence[str], Sequence[str]]], item: int = 0
) -> tuple[Map, ...]:
    """All that was seen of one item of a batch; `words` gives a path's words, who looks and what is looked at.

    An attention that several layers share was called by each: its calls are numbered.
    """
    if not seen.paths:
        raise Refusal(
            "nothing in this model attends that could be looked into; of a graph, name the model it was made of"
        )
    made = []
    for path in seen.paths:
        rows, columns = words(path)
        for call in range(seen.calls(path)):
            name = path if seen.calls(path) == 1 else f"{path}[{call}]"
            weights = seen.weights(path, call=call)[item].detach().float().cpu()
            made.append(Map(name, weights, fitting(rows, weights.shape[-2]), fitting(columns, weights.shape[-1])))
    return tuple(made)


def fitting(words: Sequence[str], count: int) -> tuple[str, ...]:
    """The words, where there are as many; else numbers: a kind may look from or at nodes of its own that none names."""
    return tuple(words) if len(words) == count else tuple(f"node {at}" for at in range(count))
