"""Batches made ahead: while a step runs, a thread makes what the next ones learn from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from heedful.training.microbatches import Portion

MOST = 64  # steps ahead: enough for the plan of an epoch, which takes as long as many batches, to come in time
ROOM = 1 << 28  # bytes that may lie ready; where batches are large, fewer steps are made ahead


class Ahead:
    """The portions of steps in order, each a pure function of its step, so that when it is made changes nothing."""

    def __init__(self, make: Callable[[int], Portion], first: int, last: int) -> None:
        self.make, self.next, self.last = make, first, last
        self.depth = 2
        self.waiting: deque[Future[Portion]] = deque()
        self.thread = ThreadPoolExecutor(1, "batches")

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *error: object) -> None:
        self.thread.shutdown(cancel_futures=True)

    def take(self) -> Portion:
        """The next portion; what went wrong while it was made is raised here."""
        if not self.waiting:
            self._ask()
        portion = self.waiting.popleft().result()
        self.depth = max(1, min(MOST, ROOM // max(1, portion.bytes)))
        if len(self.waiting) <= self.depth // 2:  # seldom and many: the thread that is asked begins at once, and a
            self._ask()  # step that asks waits for it to let go
        return portion

    def _ask(self) -> None:
        while self.next < self.last and len(self.waiting) < self.depth:
            self.waiting.append(self.thread.submit(self.make, self.next))
            self.next += 1
