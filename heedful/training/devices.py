"""Devices (cpu, cuda, cuda:1, mps): which one a run is on, what it is called, and how many threads a CPU has for it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import torch

from heedful.errors import Refusal, unknown_word

KINDS = ("cpu", "cuda", "mps")
QUOTAS = Path("/sys/fs/cgroup/cpu.max"), Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")  # of versions 2 and 1
TENTH = 100_000  # microseconds, over which a quota is told


def device(name: str | None = None) -> torch.device:
    """The device that was asked for; where none was, a GPU of CUDA if there is one, or else the CPU."""
    limit_threads()
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = name.partition(":")
    if kind not in KINDS:
        raise unknown_word("device", name, KINDS)
    if number and (kind != "cuda" or not re.fullmatch(r"\d{1,4}", number)):
        raise Refusal(f"--device {name} is no device; write cpu, cuda, cuda:1 or mps")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise Refusal("--device mps was asked for and this is no Mac with a GPU of Apple's; use --device cpu")
    if kind == "cuda":
        check_gpu(name, int(number or 0))
    return torch.device(name)


def check_gpu(name: str, number: int) -> None:
    """Refuses a GPU that is not there, and makes another one than the first the current one."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise Refusal(f"--device {name} was asked for and no GPU is found; leave it out or use --device cpu")
    if number >= count:
        raise Refusal(f"--device {name} was asked for, and the last of {count} is cuda:{count - 1}; use one of them")
    torch.cuda.set_device(number)  # for kernels and graphs that are launched on the current one


def name_of(place: torch.device) -> str:
    """What a device is called."""
    if place.type == "cuda":
        return torch.cuda.get_device_name(place)
    return "GPU of Apple's" if place.type == "mps" else f"CPU, {torch.get_num_threads()} threads"


def limit_threads() -> None:
    """No more threads than a container may use: torch counts the machine's cores, and more only wait."""
    quota = cores_allowed()
    if "OMP_NUM_THREADS" not in os.environ and quota is not None and quota < torch.get_num_threads():
        torch.set_num_threads(quota)


def cores_allowed() -> int | None:
    """How many cores a container's quota comes to, at least one; none where there is no quota."""
    for path in QUOTAS:
        try:
            words = path.read_text(encoding="ascii").split()
            quota, period = int(words[0]), int(words[1]) if len(words) > 1 else TENTH
        except (OSError, ValueError, IndexError):  # no such file, or it says max
            continue
        if quota > 0 and period > 0:
            return max(1, quota // period)
    return None
