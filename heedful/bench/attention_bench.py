"""Every kind of attention from T = 512 up: time, memory, growth, where it overtakes full attention, and how near it is.

On a GPU in bfloat16 up to T = 65,536, else in float32 on the CPU up to 16,384; forward, and forward and backward; and
the same kinds as others wrote them, where their packages are installed. Fast kinds are measured where none is named;
`heedful bench attention kinds=window,linear` measures these alone, beside softmax, `kinds=all` every kind, and
`lengths=65536` one length alone. What is no function of queries, keys and values is measured as two layers of a model.
"""

from __future__ import annotations

import ctypes
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from heedful import models
from heedful.attention import Causal, Everything, Mask
from heedful.attention.mechanisms import Mechanism, Softmax
from heedful.bench import peers
from heedful.bench.growth import BASE, NEAR, Growth
from heedful.bench.measure import interleave
from heedful.errors import Refusal, short_of_memory, unknown_word
from heedful.models import attention_kinds, part_tables, part_words
from heedful.models.attention_kinds import Kind
from heedful.models.blueprint import mask as mask_of
from heedful.models.blueprint import stack as stack_of

CPU: dict[str, Any] = {"lengths": [512, 1024, 2048, 4096, 8192, 16384], "heads": 4, "width": 32}
CUDA: dict[str, Any] = {"lengths": [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536], "heads": 16, "width": 64}
PEERS = peers.packages("cuda" if torch.cuda.is_available() else "cpu")
Given = tuple[Tensor, Tensor, Tensor]  # queries, keys and values
ALIKE = ("dot", "scaled", "general")  # softmax's kernel with other numbers
LAYERED = ("pair", "stack", "join")  # roles of kinds that are measured as layers
PATIENCE = {"cpu": 2.0, "cuda": 1.0}  # seconds: what takes longer is not asked about twice the length
SHORT = 0.05  # seconds: on a GPU, which works on while it is told what comes next, some such calls are timed as one
TOGETHER = 5
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's numbers of what `mallopt` sets


def cases(rounds: int, said: Callable[[], object], changes: Sequence[str]) -> Iterator[tuple[Growth, str]]:
    """Both directions, each with the kind that the others are compared to."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sizes = CUDA if device == "cuda" else CPU
    names, lengths = select_kinds(changes, sizes["lengths"])
    torch.manual_seed(0)
    in_hand()
    layers = [name for name in names if as_layers(timed_kinds()[name])]
    plain = [name for name in names if name not in layers]
    groups = [[BASE, *layers]] if layers else []
    if len(plain) > 1 or not layers:
        groups.insert(0, plain)
    for some in groups:
        for backward in (False, True):
            yield measure_growth(device, {**sizes, "lengths": lengths}, some, backward, rounds, said), BASE


def timed_kinds() -> dict[str, Kind]:
    """Every kind that takes time of its own while a sequence is looked at."""
    every = {**attention_kinds.every(), **attention_kinds.beside()}
    return {name: kind for name, kind in every.items() if kind.role != "pool"}


def as_layers(kind: Kind) -> bool:
    """Whether a kind is no function of queries, keys and values alone."""
    return kind.role in LAYERED or kind.name == "collaborative"


def select_kinds(changes: Sequence[str], lengths: list[int]) -> tuple[list[str], list[int]]:
    """The kinds that are asked for, and the base; every fast one where none is. And the lengths, all or some."""
    every = timed_kinds()
    chosen = [name for name, kind in every.items() if kind.role != "bias" and kind.card.tier == "A"]
    chosen = [name for name in chosen if name not in ALIKE]
    for change in changes:
        key, _, said = change.partition("=")
        asked = [name.strip() for name in said.split(",")]
        if key == "kinds":
            for name in asked:
                if name not in (*every, "all"):
                    raise unknown_word("kind", name, (*every, "all"))
            chosen = [BASE, *(name for name in every if (name in asked or "all" in asked) and name != BASE)]
        elif key == "lengths":
            for name in asked:
                if name not in map(str, lengths):
                    raise unknown_word("length", name, [str(length) for length in lengths])
            lengths = [length for length in lengths if str(length) in asked]
        else:
            raise Refusal(f"bench attention knows no {key}=; it takes kinds= and lengths=, as in kinds=window,linear")
    return chosen, lengths


def measure_growth(
    device: str, sizes: dict[str, Any], names: list[str], backward: bool, rounds: int, said: Callable[[], object]
) -> Growth:
    """Every kind at every length, the lengths in order; a kind that takes too long is left out of the longer ones."""
    heads, width, lengths = sizes["heads"], sizes["width"], sizes["lengths"]
    what = "forward and backward" if backward else "forward"
    layers = any(as_layers(timed_kinds()[name]) for name in names)
    growth = Growth(what, f"{'two layers, ' if layers else ''}{heads} heads of {width}", device, lengths)
    growth.claims = {name: timed_kinds()[name].card.cost for name in names}
    make = two_layers if layers else kind_as_look
    made: dict[str, peers.Make] = {name: partial(make, name) for name in names}
    made |= {} if layers else peers.find_peers(device, names)
    growth.seconds, growth.memory = {name: {} for name in made}, {name: {} for name in made}
    torch.compiler.reset()  # what one direction has compiled is of no use to the other
    for length in lengths:
        runs: dict[str, Callable[[], object]] = {}
        times: dict[str, int] = {}
        given = random_qkv(heads, width, length, device, peers.precision(device), backward)
        for name in [name for name in made if name not in growth.why]:
            try:
                look = made[name](heads, width, length, device)
                growth.memory[name][length], seconds = peak(step(look, given, backward), device)
                times[name] = TOGETHER if device == "cuda" and seconds < SHORT else 1
                runs[name] = step(look, given, backward, times[name])
            except Exception as error:
                growth.why[name] = reason_to_stop(error, length)
                continue
            if length == NEAR and not backward and name in names and not layers:
                growth.apart[name] = distance(name, heads, width, length)
        for name, taken in (interleave(runs, rounds, warmup=0, said=said) if runs else {}).items():
            growth.seconds[name][length] = calls = [one / times[name] for one in taken]
            if median(calls) > PATIENCE[device] and length != lengths[-1]:
                growth.why.setdefault(name, f"over {PATIENCE[device]:.0f} s at {length:,}")
    return growth


def reason_to_stop(error: Exception, length: int) -> str:
    """Why a contender goes no further, where that is the machine's doing; any other error is raised."""
    if isinstance(error, ImportError):
        return f"cannot be imported: {error}"
    if not short_of_memory(error):
        raise error
    return f"out of memory at {length:,}"


def kind_as_look(name: str, heads: int, width: int, length: int, device: str) -> peers.Look:
    """A kind as a function of queries, keys and values: a new sight at each call, as a model's forward makes one."""
    kind = timed_kinds()[name]
    word, bias, groups = kind.word(**sizes_of_kind(name, length)), None, heads
    with torch.device(device):  # where its numbers are to lie: those of T x T take minutes to draw elsewhere
        if kind.role == "bias":
            filled = {"heads": heads, "length": length, "both_ways": False, "tasks": 1}
            bias, word = part_words.choose("bias", word, part_tables.BIASES, **filled), BASE
        elif kind.role == "project":
            groups, word = int(word), BASE
        mechanism: Mechanism = part_tables.mechanism(word, heads, width, length)
    mask: Mask = (Causal() if kind.card.causal else Everything()) & (part_tables.mask(word, heads) or Everything())
    return lambda q, k, v: mechanism(q, k[:, :groups], v[:, :groups], mask.over(q[:, 0], bias=bias))


def two_layers(name: str, heads: int, width: int, length: int, device: str) -> peers.Look:
    """Two layers with a kind, as a function of what would be queries: here they are a sequence as wide as all heads."""
    wide: dict[str, Any] = {"width": heads * width, "hidden": 4 * heads * width, "heads": heads, "depth": 2}
    none: dict[str, Any] = {"vocab": 9, "classes": 2, "pool": "each", "position": "none", "length": length}
    told: Any = models.spec("predictor", **wide, **none, **timed_kinds()[name].chosen(**sizes_of_kind(name, length)))
    stack = stack_of(told.blueprint).to(device, peers.precision(device))
    mask = mask_of(told.blueprint)

    def look(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        x = q.transpose(1, 2).flatten(2)
        y: Tensor = stack(x, mask.over(x))
        return y

    return look


def sizes_of_kind(name: str, length: int) -> dict[str, int]:
    """The numbers of a kind at a length: 512 for a window, the root of the length where the paper says so."""
    root = 2 ** round(math.log2(length) / 2)
    sizes = {"window": 512, "strided": root, "fixed": root, "axial": root, "local2d": 16, "bigbird": 64}
    return {"size": sizes.get(name, 128), "row": root, "clusters": root}


def step(look: peers.Look, given: Given, backward: bool, times: int = 1) -> Callable[[], object]:
    """Calls one behind the other, each with going back through it from what it gave; it returns when all is done."""

    def run() -> None:
        for _ in range(times):
            with torch.set_grad_enabled(backward):
                y = look(*given)
                if backward:
                    torch.autograd.grad(y, given, y.detach(), allow_unused=True)
        if y.is_cuda:
            torch.cuda.synchronize()

    return run


def random_qkv(heads: int, width: int, length: int, device: str, dtype: torch.dtype, learns: bool) -> Given:
    """Queries, keys and values by chance."""
    coins = torch.Generator(device).manual_seed(length)
    size = (1, heads, length, width)
    q, k, v = (torch.randn(size, generator=coins, device=device).to(dtype).requires_grad_(learns) for _ in range(3))
    return q, k, v


def distance(name: str, heads: int, width: int, length: int) -> float:
    """How far a kind's answer is from that of softmax over all that it may see, as a share of the latter, by a CPU."""
    q, k, v = random_qkv(heads, width, length, "cpu", torch.float32, False)
    with torch.no_grad():
        mask: Mask = Causal() if timed_kinds()[name].card.causal else Everything()
        exact = Softmax()(q, k, v, mask.over(q[:, 0]))
        return float((kind_as_look(name, heads, width, length, "cpu")(q, k, v) - exact).norm() / exact.norm())


def peak(run: Callable[[], object], device: str) -> tuple[int, float]:
    """The most bytes that one call had at once beyond what was there before, and its seconds; one before warms up."""
    run()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        seconds = seconds_of(run)
        return int(torch.cuda.max_memory_allocated()) - before, seconds
    forget = Path("/proc/self/clear_refs")
    if not forget.exists():
        return 0, seconds_of(run)
    ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back to the system, and counts again when it is taken
    forget.write_text("5", encoding="ascii")  # the system's own record of the most that was used starts anew
    before = resident("VmRSS")
    seconds = seconds_of(run)
    return max(0, resident("VmHWM") - before), seconds


def in_hand() -> None:
    """What is freed stays with the process: else the clearing of pages is timed too, and T looks like T^1.4."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:  # which not every C library has
        mallopt(M_MMAP_THRESHOLD, 1 << 25)  # the most that it takes
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def seconds_of(run: Callable[[], object]) -> float:
    """The seconds of one call."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def resident(what: str) -> int:
    """The bytes of this process by the system's count."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what)]
    return int(line.split()[1]) * 1024
