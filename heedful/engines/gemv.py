"""GEMV: one row times a matrix, by a few lines of C++ that are compiled when they are first asked for.

They stream the weights in twice as fast as `F.linear`, and half as fast again as oneDNN. Where there is no
compiler, or what it made does not work, there is no such product, and whoever asks takes torch's.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import mmap
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

SOURCE = Path(__file__).with_name("gemv.cpp")
STEP = 16  # columns that are read at a time: a matrix has a multiple of them
FLAGS = ("-O3", "-march=native", "-fopenmp", "-fPIC", "-std=c++17")
PAGE = 2**21  # bytes of a large page
AT_ONCE = 2**25  # numbers that room is made for
EVEN = 64  # numbers; a matrix begins at a multiple of them
PATIENCE = 60  # seconds for the compiler, which needs one
POINTER, INTEGER = ctypes.c_void_p, ctypes.c_int64

Call = Callable[[int, int, int | None, int, int, int, int], None]  # matrix, x, bias, y, rows, columns, threads
Product = Callable[[Tensor, Tensor | None], Tensor]  # x, bias -> y


def of(matrix: Tensor) -> Product | None:
    """The product of a row of float32 by a matrix of float32 or float16 as it lies; None where it cannot be had."""
    call, columns = working(matrix.dtype), matrix.shape[1]
    return None if call is None or columns % STEP else by(matrix, call)


def by(matrix: Tensor, call: Call) -> Product:
    """The product by a matrix, of which all that is asked at every token is told once."""
    (rows, columns), begin = matrix.shape, matrix.data_ptr

    def product(x: Tensor, bias: Tensor | None) -> Tensor:
        if x.numel() != columns:  # what lies beyond it would be read
            raise ValueError(f"a row of {x.numel()} numbers cannot be multiplied by a matrix of {columns} columns")
        x = x.contiguous()
        y = x.new_empty(*x.shape[:-1], rows)
        beside = None if bias is None else bias.data_ptr()
        call(begin(), x.data_ptr(), beside, y.data_ptr(), rows, columns, torch.get_num_threads())
        return y

    return product


@cache
def working(dtype: torch.dtype) -> Call | None:
    """What was compiled for matrices of a dtype, where it gives what torch gives, on numbers whose sums are exact."""
    call = getattr(load_library(), {torch.float32: "by_floats", torch.float16: "by_halves"}[dtype], None)
    if call is None:
        return None
    call.argtypes, call.restype = (*[POINTER] * 4, INTEGER, INTEGER, ctypes.c_int), None
    x, matrix, bias = torch.arange(2.0 * STEP), torch.arange(6.0 * STEP).view(3, -1).to(dtype), torch.ones(3)
    made: Call = call
    return made if torch.equal(by(matrix, made)(x, bias), matrix.float() @ x + bias) else None


class Halves:
    """Matrices rounded to half precision, side by side on large pages where the system has them.

    A large page is larger than many a matrix, so that each in a place of its own would lie on small ones.
    """

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.at_once, self.left = at_once, torch.empty(0, dtype=torch.float16)

    def __call__(self, matrix: Tensor) -> Tensor:
        """The numbers of a matrix, rounded, behind those of the last one."""
        count = matrix.numel()
        if self.left.numel() < count:
            self.left = on_large_pages(max(count, self.at_once))
        made, self.left = self.left[:count], self.left[even(count) :]
        return made.view_as(matrix).copy_(matrix)


def even(count: int) -> int:
    """So many numbers that what comes behind them begins at a multiple of EVEN."""
    return -(-count // EVEN) * EVEN


def on_large_pages(count: int) -> Tensor:
    """Room for so many numbers of half precision, which takes no memory until they are written."""
    made = torch.empty(count + PAGE // 2, dtype=torch.float16)
    made = made[-made.data_ptr() % PAGE // 2 :][:count]
    ask = getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None
    if ask is not None:
        ask.argtypes = (POINTER, ctypes.c_size_t, ctypes.c_int)
        ask(made.data_ptr(), 2 * count, mmap.MADV_HUGEPAGE)
    return made


@cache
def load_library() -> ctypes.CDLL | None:
    """The library, compiled for this processor or found where it was left the last time; None where that fails."""
    compiler = find_compiler()
    if compiler is None:
        return None
    folder = cache_folder()
    with (
        contextlib.suppress(OSError, subprocess.SubprocessError),
        contextlib.nullcontext(str(folder)) if folder else tempfile.TemporaryDirectory() as there,
    ):
        place = Path(there) / f"gemv-{known_by(compiler)}.so"
        if not place.exists():
            compile(compiler, place)
        return ctypes.CDLL(str(place))
    return None


def find_compiler() -> str | None:
    """The C++ compiler of this machine, where it has one that is called as it is here."""
    if os.name != "posix":
        return None
    return os.environ.get("CXX") or next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)


def compile(compiler: str, place: Path) -> None:
    """Compiles the source. It is linked to torch, so that torch's threads do the work and not as many more."""
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        parts, whole = Path(folder, "gemv.o"), Path(folder, "gemv.so")
        libraries = Path(torch.__file__).parent / "lib"
        linked = ("-shared", "-Wl,--no-as-needed", f"-L{libraries}", "-ltorch_cpu")
        for words in ((*FLAGS, "-c", SOURCE, "-o", parts), (parts, *linked, "-o", whole)):
            call = [*compiler.split(), *map(str, words)]
            subprocess.run(call, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
        whole.replace(place)  # at once: another process may be looking for it


def cache_folder() -> Path | None:
    """The user's own folder for what can be made again, where there is one that nobody else may write to."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "heedful"
    with contextlib.suppress(OSError):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = home.stat()
        if state.st_uid == os.getuid() and not state.st_mode & 0o022 and os.access(home, os.W_OK):
            return home
    return None


def known_by(compiler: str) -> str:
    """The key of a compiled library: its source, torch, the compiler and the processor."""
    processor = Path("/proc/cpuinfo")
    about = processor.read_text(encoding="utf-8", errors="replace").split("\n\n")[0] if processor.exists() else ""
    flags = "".join(line for line in about.splitlines() if line.startswith(("flags", "Features", "model")))
    said = (SOURCE.read_text(encoding="utf-8"), torch.__version__, compiler, platform.machine(), flags)
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]
