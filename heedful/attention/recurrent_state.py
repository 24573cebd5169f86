"""The memory of a recurrent network: all that it keeps of what it has read is one state of one size."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from torch import Tensor

from heedful.attention.kv_cache import Memory


class RecurrentState(Memory):
    """Recurrent state: a memory without keys, whose size does not grow with what was read.

    A search takes, copies and drops its rows as it does those of a KV cache.
    """

    def recall(self, owner: Hashable, begin: Callable[[], Tensor]) -> Tensor:
        """The owner's state, which begins as it is told: B ..."""
        if owner not in self.sums:
            self.sums[owner] = begin()
        return self.sums[owner]

    def hold(self, owner: Hashable, state: Tensor) -> None:
        """Keeps the owner's newest state in the place of the one before."""
        self.sums[owner] = state
