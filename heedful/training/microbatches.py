"""The micro-batches of each step: a pure function of the seed and the step."""

from __future__ import annotations

from collections.abc import Sequence
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
