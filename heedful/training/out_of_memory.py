"""Out of memory: which part of a run asked for how much, how much there was, and which settings would fit."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful.errors import Failure, Refusal, short_of_memory
from heedful.models import Spec
from heedful.training.spec.run_spec import RunSpec

UNITS = {"b": 1, "bytes": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
AMOUNT = r"([\d.]+) (bytes|[KMGT]iB)"
HALF = 2  # bytes of a number, at the least
LEARNING = ("forward", "backward", "forward and backward")  # these take less of a smaller batch


@contextlib.contextmanager
def name_what_lacked(part: str, run: RunSpec) -> Iterator[None]:
    """Says in one sentence what a part of a run lacked, where that is memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, Failure) or not short_of_memory(error):
            raise
        raise Failure(sentence(part, str(error), run)) from None


def check_batch(run: RunSpec, spec: Spec, lengths: Sequence[int]) -> None:
    """Refuses batches whose states alone, which every block keeps for its gradient, no memory here could hold."""
    training, there = run.training, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = sum(lengths)  # tokens of an epoch: no step has more
    given = training.tokens or most * min(training.batch, len(lengths)) // len(lengths)
    pieces = training.accumulate * int(os.environ.get("WORLD_SIZE", "1"))
    needed = HALF * min(given, most) // pieces * spec.states_per_token
    if needed > there:
        key, one = ("tokens", training.tokens) if training.tokens else ("batch", training.batch)
        raise Refusal(
            f"training.{key}={one} would take {size(needed)} for the states of one step and there are {size(there)}; "
            f"set training.accumulate={training.accumulate * 4 * -(-needed // there)}, or a smaller training.{key}"
        )


def sentence(part: str, said: str, run: RunSpec) -> str:
    """The error of an allocator, as a sentence with a cure."""
    asked, (free, total) = amount(rf"allocate {AMOUNT}", said), room(said)
    known = f"{size(asked)} more was asked for" if asked else "more was asked for"
    there = f"{size(free)} of {size(total)} is free" if free is not None and total else "no more is free"
    times = 2
    while asked and free and asked / times > free and times < 1024:
        times *= 2
    return f"out of memory in {part}: {known} and {there}; {cures(part, run, times)}"


def amount(pattern: str, said: str) -> float | None:
    """The bytes that a pattern finds."""
    found = re.search(pattern, said, re.IGNORECASE)
    return float(found[1]) * UNITS[found[2].lower()] if found else None


def size(amount: float | None) -> str:
    """Bytes as people read them."""
    unit = next((name for name in ("GiB", "MiB", "KiB") if (amount or 0) >= UNITS[name.lower()]), "bytes")
    return f"{(amount or 0) / UNITS[unit.lower()]:.3g} {unit}"


def room(said: str) -> tuple[float | None, float | None]:
    """The memory that is free and that there is: a GPU says it itself, of the CPU's the system does."""
    if total := amount(rf"capacity of {AMOUNT}", said):
        return amount(rf"of which {AMOUNT} is free", said), total
    lines = dict(re.findall(r"^(\w+): +(\d+) kB", text("/proc/meminfo") + text("/proc/self/status"), re.MULTILINE))
    free, total = (1024 * float(lines[name]) if name in lines else None for name in ("MemAvailable", "MemTotal"))
    found = re.search(r"Max address space +(\d+)", text("/proc/self/limits"))
    if found and total and free and float(found[1]) < total:
        total = float(found[1])
        free = max(0.0, min(free, total - 1024 * float(lines.get("VmSize", 0))))
    return free, total


def text(path: str) -> str:
    """What the system says in a file, where it has it."""
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8")
    return ""


def cures(part: str, run: RunSpec, times: int) -> str:
    """The settings that take so many times less: those that change no result first."""
    training, model, said = run.training, run.model, []
    if part in LEARNING and (training.tokens or training.accumulate * times <= training.batch):
        said.append(f"training.accumulate={training.accumulate * times}, which makes the same step in smaller pieces")
    if part in (*LEARNING, "data") and (training.tokens or training.batch) // times:
        key, size = ("tokens", training.tokens) if training.tokens else ("batch", training.batch)
        said.append(f"training.{key}={size // times}")
    if part == "optimiser" and training.optimiser in ("adamw", "muon"):
        said.append("training.optimiser=adafactor, which keeps less")
    width, heads = int(model.get("width") or 0), int(model.get("heads") or 1)
    if width >= 2 * heads and part != "data":
        said.append(f"model.width={width // 2 // heads * heads}")
    return f"set {', or '.join(said)}" if said else "use a machine that has more"
