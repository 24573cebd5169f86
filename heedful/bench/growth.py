"""What was measured of kinds of attention at growing lengths: a table, a picture and JSON of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Any

BASE = "softmax"
FIT_FROM = 4096  # growth is told from here up, where a fixed price no longer hides it
NEAR = 1024  # the length at which the distance to softmax is told


@dataclass
class Growth:
    """What was measured of each kind at each length: seconds in every round, and bytes; and the distance to softmax."""

    direction: str
    sizes: str
    device: str
    lengths: list[int]
    seconds: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    memory: dict[str, dict[int, int]] = field(default_factory=dict)
    apart: dict[str, float] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)  # how the time grows by the paper
    why: dict[str, str] = field(default_factory=dict)  # a kind stopped before the longest

    @property
    def name(self) -> str:
        """What was done, to what, and where."""
        return f"{self.direction}, {self.sizes}, {self.device}"

    def exponent(self, kind: str) -> float | None:
        """By which power of T the time grows, fitted to the lengths from FIT_FROM up; none where there are too few."""
        points = [(math.log(n), math.log(median(s))) for n, s in self.seconds[kind].items() if n >= FIT_FROM]
        if len(points) < 2:
            return None
        x, y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
        return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)

    def overtakes(self, kind: str) -> int | None:
        """The length from which on it is faster than full attention, where it ever is."""
        both = [n for n in self.lengths if n in self.seconds[kind] and n in self.seconds[BASE]]
        slower = [n for n in both if median(self.seconds[kind][n]) >= median(self.seconds[BASE][n])]
        faster = [n for n in both if n > max(slower, default=0)]
        return faster[0] if faster else None

    def table(self, base: str) -> str:
        """A table for people: milliseconds at each length, the growth, where it overtakes `base`, MB, the distance."""
        wide = max(map(len, self.seconds))
        heads = "".join(f"{n:>9,}" for n in self.lengths)
        lines = [f"{self.name}: milliseconds at each length T; T^ is how time grows from {FIT_FROM:,} up"]
        claimed = max(map(len, ("claimed", *self.claims.values())))
        lines.append(
            f"  {'':{wide}s}{heads}     T^  {'claimed':{claimed}s}  overtakes   MB at most   from softmax at {NEAR:,}"
        )
        for kind, times in self.seconds.items():
            row = "".join(f"{1000 * median(times[n]):9.2f}" if n in times else f"{'-':>9s}" for n in self.lengths)
            grown, over, apart = self.exponent(kind), self.overtakes(kind), self.apart.get(kind)
            most = max(self.memory[kind].values(), default=0) / 1e6
            growing = f"{'-' if grown is None else f'{grown:5.2f}':>5s}  {self.claims.get(kind, ''):{claimed}s}"
            lines.append(
                f"  {kind:{wide}s}{row}  {growing}"
                f"{'never' if over is None else f'{over:,}':>11s}{most:13,.1f}"
                f"   {'' if apart is None else f'{apart:.3f}'}{'  ' + self.why[kind] if kind in self.why else ''}"
            )
        return "\n".join(lines)

    def draw(self, axes: Any) -> None:
        """Milliseconds over the length of each kind, both by powers of two; full attention is the thick line."""
        for number, (kind, times) in enumerate(self.seconds.items()):
            if times:
                thick, style = (3.0, "-") if kind == BASE else (1.2, ("-", "--", ":", "-.")[number // 10 % 4])
                shown = [1000 * median(one) for one in times.values()]
                mark = "o" if len(times) == 1 else ""  # of one point no line can be drawn
                axes.plot(list(times), shown, style, marker=mark, linewidth=thick, label=kind, color=f"C{number % 10}")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(title=self.name, xlabel="length T", ylabel="milliseconds")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6, ncols=2)

    def to_json(self, base: str) -> dict[str, Any]:
        """The same as JSON's own types, every round among them."""
        rows = {
            kind: {
                "exponent": self.exponent(kind),
                "claim": self.claims.get(kind),
                "overtakes": self.overtakes(kind),
                "from_softmax": self.apart.get(kind),
                "lengths": [
                    {"length": n, "seconds": seconds, "bytes": self.memory[kind].get(n)} for n, seconds in times.items()
                ],
                "stopped": self.why.get(kind),
            }
            for kind, times in self.seconds.items()
        }
        where = {"case": self.name, "direction": self.direction, "device": self.device}
        return {**where, "base": base, "kinds": rows}
