"""The results of the documentation: a table of what the recipes state, and one of what the benches recorded."""

from collections.abc import Iterator
from statistics import median
from typing import Any

from heedful.bench import recorded
from heedful.training.spec import recipes_by_goal
from heedful.training.spec.recipes_by_goal import Version

MEASURED = """# Results

Every row is a recipe: the command trains it, and its report states the score on samples that were held out. A spread is
the scores with seeds 2, 3 and so on. Times include reading the data and the final evaluation. Most were measured while
the machine did other work, so that yours may be shorter. `heedful recipes NAME` says the same in a terminal, and
[speed](speed.md) compares heedful with other libraries.
"""
GROWTH = """# From which length another kind of attention is faster

Full attention costs the square of the length T. Other kinds cost less on paper, and more for short sequences. The table
says from which length each kind was faster than softmax, forward and backward, and how much of softmax's time it took
at the longest length that was measured. `heedful bench attention` measures it on your machine.

The records hold every round: [CPU](bench_cpu.json) (two cores, 4 heads of 32, float32) and [GPU](bench_gpu.json) (one
H200, 16 heads of 64, bfloat16).
"""
BOTH_WAYS = "forward and backward"


def results() -> dict[str, str]:
    """The pages that are made, by their names."""
    return {"results/index.md": "".join(recipes()), "results/lengths.md": "".join(lengths())}


def recipes() -> Iterator[str]:
    """The page of all recipes, by what they are for."""
    yield MEASURED
    for goal, found in recipes_by_goal.by_goal().items():
        yield f"\n## {goal}\n\n| what is learned | score | spread | time and hardware | command |\n"
        yield "| --- | --- | --- | --- | --- |\n"
        yield "".join(row(version) for versions in found for version in versions if version.score)


def row(version: Version) -> str:
    """A recipe with one set of data as a row of a table."""
    about = version.run.about.rstrip(".") + (f" (on {version.data})" if version.data else "")
    note = f"<br><small>{version.expected.note}</small>" if version.expected.note else ""
    cells = (about + note, version.score, version.spread, version.time, f"`{version.command}`")
    return f"| {' | '.join(cells)} |\n"


def lengths() -> Iterator[str]:
    """The page of what `heedful bench attention` recorded."""
    yield GROWTH
    yield "\n| kind | faster on the CPU from | time at the longest | faster on the GPU from | time at the longest |\n"
    yield "| --- | --- | --- | --- | --- |\n"
    cases = [one for one in recorded.every() if one["direction"] == BOTH_WAYS]
    for name in dict.fromkeys(name for case in cases for name in case["kinds"] if name != "softmax"):
        cells = [cell for device in recorded.DEVICES for cell in compared(name, device, cases)]
        yield f"| `{name}` | {' | '.join(cells)} |\n"


def compared(name: str, device: str, cases: list[dict[str, Any]]) -> tuple[str, str]:
    """From which length a kind is faster than softmax on a device, and its share of softmax's time at the longest."""
    measured = [case["kinds"] for case in cases if case["device"] == device and name in case["kinds"]]
    if not measured:
        return "not measured", ""
    over = recorded.crossing(name, device)
    times = (
        {one["length"]: median(one["seconds"]) for one in measured[-1][kind]["lengths"]} for kind in (name, "softmax")
    )
    own, base = times
    longest = max(own.keys() & base.keys())
    return (f"{over:,}" if isinstance(over, int) else over), f"{own[longest] / base[longest]:.2f} x at {longest:,}"
