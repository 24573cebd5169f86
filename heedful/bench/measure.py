"""Contenders measured side by side: interleaved, so that a machine's slow spells hit all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from statistics import median
from typing import Any

STARTED_BY = {"timm": ("torchvision",)}  # not on every machine where the package is


def is_installed(package: str) -> bool:
    """Whether a package is installed, by the name that pip knows it by."""
    return next(iter(metadata.distributions(name=package)), None) is not None


def lacking(package: str) -> list[str]:
    """The packages to install before a peer can take part: the peer, and those without which it does not start."""
    return [one for one in (package, *STARTED_BY.get(package, ())) if not is_installed(one)]


@dataclass(frozen=True)
class Case:
    """One comparison: what was done, how much of it, and the seconds that each contender took in each round."""

    name: str
    unit: str  # what is counted: "tokens", "MB"
    amount: float  # how many units one call makes
    seconds: dict[str, list[float]]

    def ratio(self, contender: str, base: str) -> float:
        """A contender's time over the base's: the median of the rounds' ratios. Below 1 is faster."""
        return median(a / b for a, b in zip(self.seconds[contender], self.seconds[base], strict=True))

    def speed(self, contender: str) -> float:
        """Units a second, by the median time."""
        return self.amount / median(self.seconds[contender])

    def table(self, base: str) -> str:
        """A table for people: each contender's median time, speed and ratio to the base."""
        lines = [f"{self.name}: time relative to {base}"]
        for contender in self.seconds:
            taken = 1000 * median(self.seconds[contender])
            lines.append(
                f"  {contender:34s} {self.ratio(contender, base):6.3f}   {taken:10.1f} ms"
                f"   {self.speed(contender):12,.1f} {self.unit}/s"
            )
        return "\n".join(lines)

    def to_json(self, base: str) -> dict[str, Any]:
        """The same as JSON's own types, every round among them."""
        rows = {
            name: {"ratio": self.ratio(name, base), "per_second": self.speed(name), "seconds": rounds}
            for name, rounds in self.seconds.items()
        }
        return {"case": self.name, "unit": self.unit, "base": base, "contenders": rows}


def interleave(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int = 7,
    warmup: int = 1,
    said: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """The seconds of each contender in each round, every round in another order; `said` is called after each call."""
    names = list(contenders)
    for name in names:
        for _ in range(warmup):
            contenders[name]()
            said()
    seconds: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.freeze()  # what is there now is not looked through again before every call
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            gc.collect()
            began = time.perf_counter()
            contenders[name]()
            seconds[name].append(time.perf_counter() - began)
            said()
    gc.unfreeze()
    return seconds
