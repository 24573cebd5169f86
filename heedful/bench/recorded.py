"""From which length on a kind of attention overtakes full attention: what was measured, and lies in the package.

`heedful bench attention --json heedful/bench/records/cpu.json` writes such a record, of whichever device it ran on; the
GPU's is of several processes, `kinds=...` each, that compiled side by side and were measured one after the other, and
the CPU's of linear was measured by itself (`kinds=linear`), since another process had been in its way, and that of
clustered, routing and gated_rfa since they have become what they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).with_name("records")
DEVICES = ("cpu", "cuda")
Crossing = int | str  # a length, "never", or "not measured"


def crossings(kind: str) -> dict[str, dict[str, Crossing]]:
    """For each device and direction, the length from which on a kind is faster than full attention."""
    found: dict[str, dict[str, Crossing]] = {device: {} for device in DEVICES}
    for case in every():
        if (row := case["kinds"].get(kind)) is not None:
            over = row["overtakes"]
            found[case["device"]][case["direction"]] = "never" if over is None else over
    return found


def crossing(kind: str, device: str) -> Crossing:
    """The same for learning, which goes both ways; said in one word where nothing was measured."""
    return crossings(kind)[device].get("forward and backward", "not measured")


def longest(device: str) -> int:
    """Up to which length was measured on a device; 0 where nothing was."""
    lengths = [at["length"] for one in every() if one["device"] == device for at in one["kinds"]["softmax"]["lengths"]]
    return max(lengths, default=0)


def every() -> Iterator[dict[str, Any]]:
    """Every case of every record."""
    for path in sorted(RECORDS.glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
            if case["bench"] == "attention":
                yield case
