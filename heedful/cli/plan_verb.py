"""`heedful plan`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from heedful.cli.arguments import Changes
from heedful.errors import Refusal
from heedful.terminal import say

UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def plan(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name, or a YAML file.")],
    changes: Changes = None,
    gpus: Annotated[int, typer.Option(metavar="N", help="How many GPUs.")] = 8,
    memory: Annotated[str, typer.Option(metavar="BYTES", help="What each of them has, such as 80GB.")] = "80GB",
) -> None:
    """Estimate what a run would need on many GPUs, without any: memory and traffic, for each way to lay it out.

    The run's own steps are taken with tensors that hold no numbers, over processes that do not exist. Activations are
    those of the largest step of the first epoch.
    """
    room = bytes_of(memory)
    if not 1 <= gpus <= 65536:
        raise Refusal(f"--gpus {gpus} is no number of GPUs that can be planned for; choose one from 1 to 65536")

    from heedful.training import memory_estimate
    from heedful.training.spec import recipes

    spec = recipes.resolve(recipe, changes or [])
    say(f"{'layout':<18} weights  gradients  optimiser  activations     total  sent a step  fits {memory}")
    for layout, need in memory_estimate.needs(spec, gpus):
        if isinstance(need, Refusal):
            say(f"{layout:<18} {need}")
            continue
        cells = [need.weights, need.gradients, need.optimiser, need.activations, need.peak, need.sent]
        columns = "  ".join(
            in_words(cell).rjust(width) for cell, width in zip(cells, (7, 9, 9, 11, 8, 11), strict=True)
        )
        say(f"{layout:<18} {columns}  {'yes' if need.peak <= room else 'no'}")


def bytes_of(text: str) -> int:
    """A number of bytes as people write it."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", text.strip())
    if not found or found[2].upper() not in UNITS:
        raise Refusal(f"--memory {text!r} is no number of bytes; write it like 80GB or 640MiB")
    return int(float(found[1]) * UNITS[found[2].upper()])


def in_words(count: int) -> str:
    """Bytes as people read them."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
