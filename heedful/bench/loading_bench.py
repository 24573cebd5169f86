"""Loading GPT-2 small from its file: the most memory that a process takes for it, beside the file, and the time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from statistics import median
from typing import Any

from heedful.terminal import say

PEERS = ("transformers",)
OURS, NATIVE, THEIRS = "heedful, Hugging Face's layout", "heedful, own layout", "transformers"
MODEL: dict[str, Any] = {"family": "gpt", "size": "gpt2"}
TINY: dict[str, Any] = {"family": "gpt", "width": 8, "heads": 1, "depth": 1, "vocab": 9}


@dataclass(frozen=True)
class Loads:
    """What each contender took in each round: bytes at the most beyond what it had before, and seconds."""

    name: str
    size: int  # of the file
    bytes: dict[str, list[int]]
    seconds: dict[str, list[float]]

    def share(self, contender: str) -> float:
        """The most memory over the file's size, of the worst round."""
        return max(self.bytes[contender]) / self.size

    def table(self, base: str) -> str:
        """A table for people: each contender's memory, beside the file, and its time."""
        lines = [f"{self.name}: the most memory beyond an empty process, relative to {base}"]
        for contender in self.bytes:
            taken = max(self.bytes[contender]) / 1e6
            lines.append(
                f"  {contender:34s} {self.share(contender):6.3f}   {taken:8.1f} MB"
                f"   {1000 * median(self.seconds[contender]):8.1f} ms"
            )
        return "\n".join(lines)

    def to_json(self, base: str) -> dict[str, Any]:
        """The same as JSON's own types, every round among them."""
        rows = {
            name: {"ratio": self.share(name), "bytes": rounds, "seconds": self.seconds[name]}
            for name, rounds in self.bytes.items()
        }
        return {"case": self.name, "unit": "bytes", "base": base, "contenders": rows}


def cases(rounds: int, said: Callable[[], object]) -> Iterator[tuple[Loads, str]]:
    """Random weights in both layouts, loaded by a process each, which then reads every number once."""
    import heedful

    with tempfile.TemporaryDirectory() as place:
        folders = {OURS: Path(place) / "hf", NATIVE: Path(place) / "own"}
        for model, name in ((heedful.build(**MODEL), ""), (heedful.build(**TINY), "-tiny")):
            heedful.save(model, f"{folders[OURS]}{name}", layout="hf")
            heedful.save(model, f"{folders[NATIVE]}{name}")
        if util.find_spec("transformers"):
            folders[THEIRS] = folders[OURS]
        size = (folders[OURS] / "model.safetensors").stat().st_size
        found: dict[str, list[tuple[int, float]]] = {name: [] for name in folders}
        for _ in range(rounds):
            for name, folder in folders.items():
                found[name].append(load_once(folder, name))
                said()
    taken = {name: [one[0] for one in many] for name, many in found.items()}
    lasted = {name: [one[1] for one in many] for name, many in found.items()}
    yield Loads(f"Loading {size / 1e6:.0f} MB", size, taken, lasted), "the file's size"


def load_once(folder: Path, contender: str) -> tuple[int, float]:
    """The bytes and seconds that a new process takes to load a model and read all of it once."""
    command = [sys.executable, "-m", "heedful.bench.loading_bench", str(folder), contender]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    taken, lasted = json.loads(answer.splitlines()[-1])
    return int(taken), float(lasted)


def measure(folder: str, contender: str) -> tuple[int, float]:
    """In a process of its own: loads the model, and reads every number once, so that all of it is in memory."""
    if contender == THEIRS:
        from transformers import AutoModelForCausalLM

        load: Callable[[str], Any] = AutoModelForCausalLM.from_pretrained
    else:
        import heedful

        load = heedful.load
    load(f"{folder}-tiny")  # what the libraries themselves take
    before, began = memory("VmRSS"), time.perf_counter()
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark, set back
    model = load(folder)
    lasted = time.perf_counter() - began
    for parameter in model.parameters():
        parameter.sum()
    return memory("VmHWM") - before, lasted


def memory(key: str) -> int:
    """The memory of this process in bytes, as the kernel reports it."""
    told = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in told.splitlines() if line.startswith(f"{key}:"))


if __name__ == "__main__":
    say(json.dumps(measure(sys.argv[1], sys.argv[2])))
