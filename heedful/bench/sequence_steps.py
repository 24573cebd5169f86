"""Path length and parallel steps: how long one layer takes for a sequence, and how far apart its ends are in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import Attention, Everything, Join, MultiHead
from heedful.attention.mechanisms import Softmax
from heedful.bench.measure import interleave
from heedful.blocks.recurrent_networks import Recurrent

LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
WIDTH, HEADS, SEEN = 256, 4, 3  # of layers; columns that a convolution sees
Layer = Callable[[Tensor], Tensor]
STEPS: dict[str, Callable[[int], tuple[int, int]]] = {  # layers or steps between a sequence's ends, and steps in a row
    "LSTM": lambda length: (length - 1, length),
    "GRU": lambda length: (length - 1, length),
    "convolution of 3": lambda length: (-(-(length - 1) // (SEEN // 2)), 1),
    "attention": lambda length: (1, 1),
}


@dataclass(frozen=True)
class Steps:
    """What a layer of each kind takes for one sequence, forwards and back, at each length."""

    seconds: dict[str, dict[int, float]]  # medians, by kind and length
    threads: int

    def table(self, base: str) -> str:
        """A table for people: milliseconds, then the path between the ends and the steps that wait for each other."""
        lengths = list(next(iter(self.seconds.values())))
        heads = "".join(f"{length:>9,}" for length in lengths)
        lines = [f"one layer of width {WIDTH}, one sequence, forwards and back, {self.threads} threads: milliseconds"]
        lines.append(f"  {'':18s}{heads}   path, and steps in a row, at {lengths[-1]:,}")
        for kind, times in self.seconds.items():
            path, row = STEPS[kind](lengths[-1])
            lines.append(
                f"  {kind:18s}" + "".join(f"{1000 * times[n]:9.2f}" for n in lengths) + f"   {path:,}, {row:,}"
            )
        return "\n".join(lines)

    def to_json(self, base: str) -> dict[str, Any]:
        """The same as JSON's own types."""
        counts = {kind: {n: STEPS[kind](n) for n in times} for kind, times in self.seconds.items()}
        return {"case": "steps", **asdict(self), "path_and_steps": counts}


def measure_steps(rounds: int, said: Callable[[], object], lengths: tuple[int, ...] = LENGTHS) -> Steps:
    """Each kind at each length, in turns."""
    torch.manual_seed(0)
    kinds, found = layers(), {kind: dict[int, float]() for kind in STEPS}
    for length in lengths:
        x = torch.randn(1, length, WIDTH, requires_grad=True)
        times = interleave({kind: there_and_back(layer, x) for kind, layer in kinds.items()}, rounds, said=said)
        for kind, each in times.items():
            found[kind][length] = median(each)
    return Steps(found, torch.get_num_threads())


def layers() -> dict[str, Layer]:
    """A layer of each kind, from a sequence to one of the same width: B T M -> B T M."""
    lstm, gru = (Recurrent(cell, WIDTH, WIDTH) for cell in ("lstm", "gru"))
    attention = Attention(MultiHead(WIDTH, HEADS), Softmax(), Join(WIDTH, WIDTH))
    convolution = nn.Conv1d(WIDTH, WIDTH, SEEN, padding=SEEN // 2)
    return {
        "LSTM": lambda x: lstm(x)[0],
        "GRU": lambda x: gru(x)[0],
        "convolution of 3": lambda x: convolution(x.mT).mT,
        "attention": lambda x: attention(x, Everything().over(x)),
    }


def there_and_back(layer: Layer, x: Tensor) -> Callable[[], None]:
    """A pass of a layer, and its gradients."""
    return lambda: layer(x).sum().backward()
