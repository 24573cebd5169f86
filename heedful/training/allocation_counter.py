"""Counts the bytes of all tensors that are alive in a block of code, and those that are sent."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Memory(TorchDispatchMode):
    """Counts the bytes of all tensors that are alive, the most there ever were, and what is sent to other processes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = self.peak = self.sent = 0
        self.known: dict[int, Any] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Any operation as it is; what it makes is counted until it is dropped."""
        if any(kind.__name__ == "DTensor" for kind in types):
            return NotImplemented  # its parts come by as well
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves((made, args)):
            if isinstance(tensor, Tensor):
                self.see(tensor)
        if function.namespace == "c10d":
            self.sent += max((size_of(tensor) for tensor in tree_leaves(args) if isinstance(tensor, Tensor)), default=0)
        return made

    def see(self, tensor: Tensor) -> None:
        """Counts what a tensor lies in, once, as long as anybody has it."""
        storage = tensor.untyped_storage()
        key = id(storage)
        if key not in self.known:
            self.known[key] = weakref.ref(storage, lambda _: self.drop(key)), 0
        self.resize(storage)

    def resize(self, storage: torch.UntypedStorage) -> None:
        """Counts what something is now where it was another size: FSDP empties what it will fill again."""
        if id(storage) in self.known:
            here, before = self.known[id(storage)]
            self.known[id(storage)] = here, storage.nbytes()
            self.live += storage.nbytes() - before
            self.peak = max(self.peak, self.live)

    def drop(self, key: int) -> None:
        """Something that nobody has any more."""
        self.live -= self.known.pop(key)[1]


@contextlib.contextmanager
def count_memory() -> Iterator[Memory]:
    """Counts what is alive in a block of code."""
    memory, own = Memory(), torch.UntypedStorage.resize_

    def resized(storage: torch.UntypedStorage, size: int) -> Any:
        made = own(storage, size)
        memory.resize(storage)
        return made

    with mock.patch.object(torch.UntypedStorage, "resize_", resized), memory:
        yield memory


def size_of(tensor: Tensor) -> int:
    """The bytes of a tensor."""
    return tensor.numel() * tensor.element_size()
