"""The micro-batches of each step, a pure function of the seed and the step, and their prefetch by a thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from heedful.data.collate import Batch
from heedful.data.splits import Plan
from heedful.tasks.work import Work
from heedful.training.distributed.ranks import ONE, Ranks
from heedful.training.spec.run_spec import RunSpec

if TYPE_CHECKING:
    from heedful.engines.buckets import Shape

MOST = 64  # steps ahead: enough for the plan of an epoch, which takes as long as many batches, to come in time
ROOM = 1 << 28  # bytes that may lie ready; where batches are large, fewer steps are made ahead


@dataclass(frozen=True)
class Portion:
    """What one step learns from: its micro-batches, how many samples it has, and how much each micro-batch counts."""

    batches: Sequence[Batch]
    samples: int
    there: Sequence[float]

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return sum(tensor.nbytes for batch in self.batches for tensor in batch.values())


class Portions:
    """The portions of a run, ready for the device. `shape` fills a batch up."""

    def __init__(
        self, run: RunSpec, task: Work, train: Sequence[Any], shape: Shape = lambda batch: batch, ranks: Ranks = ONE
    ) -> None:
        self.task, self.train, self.shape, self.ranks = task, train, shape, ranks
        self.accumulate, self.members = run.training.accumulate, int(run.model.get("members", 1))
        self.plan = Plan(partial(task.lengths, train), run.training.batch, run.seed, run.training.tokens)

    def at(self, step: int) -> Portion:
        """The micro-batches of a step."""
        return self.of(self.samples(step))

    def samples(self, step: int) -> Sequence[Any]:
        """The samples of a step over all processes, as they are learned from in its epoch."""
        samples = [self.train[at] for at in self.plan.at(step)]
        return self.task.augmented(samples, self.plan.epoch(step))

    def of(self, samples: Sequence[Any]) -> Portion:
        """Samples as micro-batches of this process."""
        hands = -(-len(samples) // self.members)
        size = -(-hands // self.accumulate) * self.members
        parts = (samples[start : start + size] for start in range(0, len(samples), size))
        shares = [self.ranks.share(part, self.members) for part in parts]
        batches = [self.shape(self.task.batch(own)) for own, _ in shares]
        return Portion(batches, len(samples), [counts for _, counts in shares])


class Ahead:
    """Prefetch: while a step runs, a thread makes the portions of the next ones, in order.

    Each is a pure function of its step, so that when it is made changes nothing.
    """

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
