"""Where the time of a step goes, and how much of what the chip can do is done."""

from __future__ import annotations

import time

import torch

from heedful.models.numerics import synchronize
from heedful.training.cost import operations_a_step
from heedful.training.loop import Loop
from heedful.training.stages import TRACE, Watch

SIDES = {"cuda": 8192, "cpu": 1024}  # of the matrices by which the peak is measured
SECONDS = 0.5  # for which it is


def profile_lines(loop: Loop, watch: Watch) -> str:
    """The stages of a step by their time, samples a second, and the share of the chip's peak, for people."""
    if not watch.steps:
        return "profile   the run was too short to be timed; set a larger training.steps"
    whole = watch.ended - watch.began
    rows = [*watch.seconds.items(), ("all else", whole - sum(watch.seconds.values()))]
    lines = [f"profile   {watch.steps:,} steps of {1000 * whole / watch.steps:.2f} ms; {loop.folder / TRACE}"]
    for name, seconds in rows:
        lines.append(f"          {1000 * seconds / watch.steps:9.3f} ms  {100 * seconds / whole:5.1f} %  {name}")
    learning = sum(watch.seconds[name] for name in watch.seconds if name not in ("evaluation", "saving", "logging"))
    with loop.precision.products():
        done, most = operations_a_step(loop) * watch.steps / learning, peak(loop.precision.dtype, loop.device)
    lines.append(
        f"          {watch.samples / learning:,.0f} samples/s and {done / 1e12:.3g} TFLOP/s while learning: "
        f"{100 * done / most:.1f} % of the {most / 1e12:.3g} that a product of matrices reaches here"
    )
    return "\n".join(lines)


@torch.no_grad()
def peak(dtype: torch.dtype, device: torch.device) -> float:
    """The operations a second of a product of large matrices, the best of as many as fit into a moment."""
    side = SIDES.get(device.type, SIDES["cpu"])
    one = torch.full((side, side), 0.5, dtype=dtype, device=device)
    best, until = float("inf"), time.perf_counter() + SECONDS
    while best == float("inf") or time.perf_counter() < until:
        began = time.perf_counter()
        torch.mm(one, one)
        synchronize(device)
        best = min(best, time.perf_counter() - began)
    return float(2 * side**3 / best)
