"""A training step: micro-batches go forwards and back, the sum is divided once, and the weights move."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from heedful.attention.mechanism import Mechanism
from heedful.data.collate import Batch, pin, to
from heedful.data.splits import Splits
from heedful.objectives.head_terms import HeadTerms
from heedful.objectives.objective import SCALES, Loss, combine, primary
from heedful.tasks.work import Work
from heedful.training import checkpoint
from heedful.training.distributed.ranks import ONE, Ranks
from heedful.training.distributed.sharded_tensors import local
from heedful.training.distributed.sharding import Losses, layout, run_by
from heedful.training.microbatches import Portion, Portions
from heedful.training.optimiser import Average, optimiser_of
from heedful.training.precision import Precision
from heedful.training.schedule import rate
from heedful.training.spec.run_spec import RunSpec
from heedful.training.stages import Stages

if TYPE_CHECKING:
    from heedful.engines.buckets import Shape
    from heedful.engines.cuda_graphs import Graphs


class Stepper:
    """Model, optimiser and averages of a run, and the steps that move them.

    Which dice make a step follows from the seed and the step alone.
    """

    def __init__(
        self, run: RunSpec, task: Work, splits: Splits[Any], model: nn.Module, folder: Path, ranks: Ranks = ONE
    ) -> None:
        self.run, self.task, self.splits, self.model, self.folder = run, task, splits, model, folder
        self.ranks = ranks
        self.training = run.training
        self.device = next(model.parameters()).device
        self.engines = run_by(self.training, model)
        self.portions = Portions(run, task, splits.train, self.shape(), ranks)
        self.heads = HeadTerms.of(run.objective)
        self.names = (*task.objective.names, *self.heads.names)
        self.precision = Precision(self.training, self.device)
        self.layout = layout(model, self.judged, self.training, ranks, self.precision.dtype == torch.bfloat16)
        self.optimiser = optimiser_of(model, self.training)
        self.stages = Stages(run, self.device, folder, ranks.first)
        self.following = [part for part in model.modules() if isinstance(part, Mechanism)]
        self.average = Average(model, self.training.average) if self.training.average else None
        self.progress = checkpoint.Progress()
        self.first_bad = torch.full((), -1, dtype=torch.long, device=self.device)  # step whose loss was not finite
        self.losses = torch.zeros((), device=self.device)  # summed since the last line of the log
        several = len(self.names) if len(self.names) > 1 else 0
        self.each = torch.zeros(several, device=self.device)  # the same of each loss, where there are several
        self.learner = self.engines.learner(model)
        self.graphs = self.captured() if self.engines.captured else None

    def captured(self) -> Graphs:
        """The steps of learning as graphs."""
        from heedful.engines.cuda_graphs import Graphs

        return Graphs(self.model, self.judged, self.precision.backward, not self.task.even)

    def shape(self) -> Shape:
        """How batches are filled up, where the task takes that and an engine asks for it."""
        filled: bool = self.task.filled and (self.engines.compiled or self.engines.captured)
        longest: int = self.model.spec.longest if filled else 0  # type: ignore[union-attr, assignment]
        return self.engines.shape(longest) if filled else lambda batch: batch

    def means(self, steps: int) -> tuple[float, dict[str, float]]:
        """The mean loss of the last steps, and that of each named one where there are several; they begin anew."""
        loss = float(self.losses) / steps
        each = {name: one / steps for name, one in zip(self.names, self.each.tolist(), strict=False) if name != "loss"}
        self.losses, self.each = torch.zeros_like(self.losses), torch.zeros_like(self.each)
        return loss, each

    def scaled(self, portion: Portion) -> list[Batch]:
        """The batches of a step, told how many of the first loss there are in all of it for one of each other.

        Where losses have counts of their own, these must be known before the first gradient.
        """
        counts = [self.task.loss_counts(batch) for batch in portion.batches]
        if not any(counts):
            return list(portion.batches)
        rows = [torch.stack([one[name].to(torch.float64) for name in self.names]) * there
                for one, there in zip(counts, portion.there, strict=True)]  # fmt: skip
        whole = self.ranks.sum(torch.stack(rows).sum(0))
        scales = (whole[0] / whole.clamp(min=1)).to(torch.float32)
        return [batch | {SCALES: scales} for batch in portion.batches]

    def step(self, portion: Portion) -> Tensor:
        """One step on its micro-batches, each counted as often as it is `there`; returns the loss before it."""
        learning_rate = rate(self.training, self.progress.step)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate * group.get("scale", 1.0)
        totals = self.nothing
        for micro, (batch, there) in enumerate(zip(self.scaled(portion), portion.there, strict=True)):
            seed_step(self.run.seed, self.progress.step, micro, self.ranks.rank)
            self.model.train(bool(there))  # what a model hears or counts for itself is of samples that count
            with self.engines.repeatable(), self.layout.adding(last=micro + 1 == len(portion.batches)):
                losses = self.backward(batch, there)
            total, count, each = (old + new.to(self.device) for old, new in zip(totals, losses, strict=True))
            totals = total, count, each
        total, count, *others = self.ranks.sum(torch.cat([one.flatten().to(totals[0].dtype) for one in totals]))
        count = torch.where(count == 0, 1, count)  # nothing in it is judged: a step that moves nothing by it
        mean = total / count
        bad = (self.first_bad < 0) & ~mean.isfinite()
        self.first_bad = torch.where(bad, self.progress.step + 1, self.first_bad)
        with self.stages("optimiser"):
            self.move(count)
        sums, counts = torch.stack(others).view(2, -1) if others else each
        self.losses, self.each = self.losses + mean, self.each + sums / counts.clamp(min=1)
        return mean

    def move(self, count: Tensor) -> None:
        """Moves the weights along the gradients of so many losses."""
        self.precision.unscale(self.optimiser)
        gradients = [local(p.grad) for p in self.model.parameters() if p.grad is not None]
        torch._foreach_div_(gradients, count.to(gradients[0].dtype))
        if self.training.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip)
        self.precision.step(self.optimiser)
        self.optimiser.zero_grad(set_to_none=self.graphs is None)
        self.task.on_step_end(self.model, self.progress.step / self.training.steps, self.ranks.sum)
        for mechanism in self.following:
            mechanism.follow(self.ranks.sum)
        if self.average:
            self.average.update(self.model, self.progress.step)

    def backward(self, batch: Batch, there: float) -> Losses:
        """The losses of a batch, times `there`; so are the gradients, added to the weights'."""
        if self.device.type == "cuda":  # here and not ahead: no other thread may ask CUDA while a graph is captured
            batch = pin(batch)
        if self.graphs is not None:
            with self.stages("forward and backward"):
                return self.graphs(batch) if there else self.nothing
        with self.stages("forward"):
            loss, count, each = self.layout(to(batch, self.device))
        with self.stages("backward"):
            self.precision.backward(loss * there)
        return loss.detach() * there, count * there, each * there

    def judged(self, batch: Batch) -> Losses:
        """The weighted sum of a batch's losses, the count of the first, and the sum and count of each of several."""
        with self.precision.autocast():
            found = self.heads.losses(lambda: self.task.losses(self.learner, batch), self.learner)
            return combine(found, batch.get(SCALES)), primary(found).count, self.apart(found)

    @property
    def nothing(self) -> Losses:
        """The losses of no sample at all."""
        none = torch.zeros((), device=self.device)
        return none, none, torch.zeros(2, len(self.each), device=self.device)

    def apart(self, losses: dict[str, Loss]) -> Tensor:
        """The sum and the count of each loss, where there are several: 2 K."""
        if not len(self.each):
            return torch.zeros(2, 0, device=self.device)
        return torch.stack([torch.stack((one.sum.detach(), one.count.to(one.sum))) for one in losses.values()], 1)


def seed_step(seed: int, step: int, micro: int, rank: int = 0) -> None:
    """Seeds all dice of a step from where it stands, so that none need be kept."""
    digest = hashlib.sha256(f"{seed} {step} {rank} {micro}".encode()).digest()
    number = int.from_bytes(digest[:8], "big") >> 1
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():  # torch.manual_seed would write down the stack for each kind of device that is not
        torch.cuda.manual_seed_all(number)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(number)
