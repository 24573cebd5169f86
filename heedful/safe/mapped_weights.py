"""Weights that stay in their file until they are used: tensors over pages of memory that the file is mapped to."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from heedful.errors import Refusal
from heedful.safe.json_and_tensors import cure
from heedful.safe.opening import inside
from heedful.safe.safetensors_header import Entry, entries

AGAIN = "copy or train it again"
EVEN, SMALL = 16, 1 << 20  # bytes: a CPU sums one row by a matrix in another order where that begins elsewhere
PART = 1 << 18  # numbers that are looked at one by one at once


class File:
    """A safetensors file: what it says of its tensors, and the tensors over its own pages, all of them finite.

    What is written to a tensor stays in memory and never reaches the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = inside(path)
        try:
            self.entries = entries(path)
        except FileNotFoundError:
            raise Refusal(f"{path} does not exist, so the folder is not whole; {cure(path.parent) or AGAIN}") from None
        except (OSError, ValueError, RecursionError) as error:
            raise Refusal(f"{path} cannot be read: {error}; {AGAIN}") from None
        self._pages: mmap.mmap | None = None

    @property
    def pages(self) -> mmap.mmap:
        """The file as memory, once its makers' own library finds no fault in it: no two tensors share a byte, say."""
        if self._pages is None:
            try:
                with safe_open(self.path, framework="pt"):
                    pass
                with self.path.open("rb") as file:
                    self._pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            except (SafetensorError, OSError) as error:
                raise Refusal(f"{self.path} cannot be read: {error}; {AGAIN}") from None
        return self._pages

    def tensor(self, name: str) -> Tensor:
        """A tensor over the file's own pages, once it is finite; one that begins at an odd place is copied.

        No answer can be trusted where a weight is NaN or infinite, and here is where every model's weights come from.
        """
        found = self._over_pages(name)
        if not is_finite(found):
            raise Refusal(
                f"{self.path}: tensor {name[:100]!r} holds NaN or infinite numbers, so that no answer means "
                f"anything; {AGAIN}"
            )
        return found

    def _over_pages(self, name: str) -> Tensor:
        entry = self.entries[name]
        if not entry.size:
            return torch.empty(entry.shape, dtype=entry.dtype)
        data = torch.frombuffer(self.pages, dtype=torch.uint8, count=entry.size, offset=entry.start)
        aligned = entry.start % (EVEN if entry.size <= SMALL else entry.dtype.itemsize) == 0
        data = data if aligned else data.clone()
        return data.view(entry.dtype).view(entry.shape)

    def forget(self, name: str) -> None:
        """Gives a tensor's pages back, where all has been copied from it; they are read again if they are touched."""
        entry = self.entries[name]
        first = -(-entry.start // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (entry.start + entry.size) // mmap.PAGESIZE * mmap.PAGESIZE - first
        if size > 0:
            self.pages.madvise(mmap.MADV_DONTNEED, first, size)


def is_finite(tensor: Tensor) -> bool:
    """Whether no number is NaN or infinite. The sum tells at a tenth of the time, unless finite numbers overflow it."""
    if not tensor.is_floating_point() or tensor.sum().isfinite():
        return True
    return all(bool(part.isfinite().all()) for part in tensor.flatten().split(PART))


class Files:
    """The tensors of one file, or of the several that a large model is cut into."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.where: dict[str, File] = {}
        for file in map(File, paths):
            for name in file.entries:
                if name in self.where:
                    raise Refusal(f"{file.path}: tensor {name[:100]!r} is in two files; {AGAIN}")
                self.where[name] = file

    @property
    def entries(self) -> Mapping[str, Entry]:
        """What is said of each tensor."""
        return {name: file.entries[name] for name, file in self.where.items()}

    @property
    def described(self) -> dict[str, Tensor]:
        """The tensors without their numbers."""
        return {name: entry.empty for name, entry in self.entries.items()}

    def tensor(self, name: str) -> Tensor:
        """A tensor over its file's pages."""
        return self.where[name].tensor(name)

    def forget(self, name: str) -> None:
        """Gives a tensor's pages back."""
        self.where[name].forget(name)
