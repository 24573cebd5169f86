"""How a model lies over processes: whole on each, or each weight in parts; and what is kept for the way back."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from heedful.blocks import Stack
from heedful.data.collate import Batch
from heedful.engines.training_engines import Learning
from heedful.errors import Refusal
from heedful.formats.weights import restore, state
from heedful.objectives.head_terms import HeadTerms, looks
from heedful.training.distributed.ranks import Ranks
from heedful.training.distributed.sharded_tensors import together
from heedful.training.spec.run_spec import RunSpec
from heedful.training.spec.training_spec import Parallel, TrainingSpec

Losses = tuple[Tensor, Tensor, Tensor]  # the weighted sum, the count of the first, sums and counts of several: 2 K


def blocks(model: nn.Module) -> Iterator[nn.Module]:
    """The blocks of a model's stacks."""
    for part in model.modules():
        if isinstance(part, Stack):
            yield from part.blocks


class Recomputed(nn.Module):
    """Gradient checkpointing: a block keeps only what it is given, and works the rest out again (Chen et al., 2016)."""

    def forward(self, *given: Any) -> Tensor:
        from torch.utils.checkpoint import checkpoint

        made: Tensor = checkpoint(super().forward, *given, use_reentrant=False)
        return made


def recompute_blocks(model: nn.Module) -> None:
    """Makes every block of a model one that is recomputed, as fully_shard does: by its class, under the same names."""
    for block in blocks(model):
        kind = type(block)
        block.__class__ = type(f"Recomputed{kind.__name__}", (Recomputed, kind), {})


class Judge(nn.Module):
    """A model and what judges it as one module, so that whatever the judge asks of the model is one pass forwards."""

    def __init__(self, model: nn.Module, judged: Callable[[Batch], Losses]) -> None:
        super().__init__()
        self.model = model
        vars(self)["judged"] = judged

    def forward(self, batch: Batch) -> Losses:
        """The losses of a batch."""
        return vars(self)["judged"](batch)


class Lone:
    """A model in one process."""

    def __init__(self, model: nn.Module, judged: Callable[[Batch], Losses]) -> None:
        self.model, self.judged = model, judged

    def __call__(self, batch: Batch) -> Losses:
        """The losses of a batch."""
        return self.judged(batch)

    def adding(self, last: bool) -> contextlib.AbstractContextManager[Any]:
        """Around a pass forwards and back: only after the last micro-batch need gradients be summed over processes."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def whole(self) -> Iterator[nn.Module]:
        """The model in one piece, to be scored, asked and written by the first process."""
        yield self.model


class Replicated(Lone):
    """A model that is whole in every process; gradients are summed while the way back is still going on."""

    def __init__(self, model: nn.Module, judged: Callable[[Batch], Losses]) -> None:
        super().__init__(model, judged)
        judge = Judge(model, judged)
        # Weights that a batch does not use are looked for, and one that none uses is there to be found, because torch
        # otherwise sorts gradients into other buckets after the first step: a resumed run would sum in another order.
        judge.unused = nn.Parameter(torch.zeros((), device=next(model.parameters()).device))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*broadcast_buffers")  # by another name from torch 2.13 on
            self.engine = nn.parallel.DistributedDataParallel(
                judge, broadcast_buffers=False, gradient_as_bucket_view=True, find_unused_parameters=True
            )
        self.engine.register_comm_hook(None, lambda _, bucket: sum_bucket(bucket))

    def __call__(self, batch: Batch) -> Losses:
        return self.engine(batch)

    def adding(self, last: bool) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext() if last else self.engine.no_sync()


def sum_bucket(bucket: Any) -> torch.futures.Future[Tensor]:
    """The sum of a bucket's gradients over all processes, where torch would take the mean: the loop divides."""
    work = torch.distributed.all_reduce(bucket.buffer(), async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


class Summed(Lone):
    """A model that is whole in every process, its steps captured: gradients are summed when all of them are there."""

    def __init__(self, model: nn.Module, judged: Callable[[Batch], Losses], ranks: Ranks) -> None:
        super().__init__(model, judged)
        self.ranks = ranks

    @contextlib.contextmanager
    def adding(self, last: bool) -> Iterator[None]:
        yield
        if last:
            gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
            total = self.ranks.sum(torch.cat([gradient.flatten() for gradient in gradients]))
            parts = total.split([gradient.numel() for gradient in gradients])
            torch._foreach_copy_(gradients, [part.view_as(own) for part, own in zip(parts, gradients, strict=True)])


class Sharded(Lone):
    """A model whose weights, gradients and optimiser lie in parts, put together block by block: ZeRO 3.

    Rajbhandari et al. (2020); Zhao et al. (2023). In bfloat16, so are the blocks' weights while they are put together,
    and the stream between them; gradients are summed in float32.
    """

    def __init__(self, model: nn.Module, judged: Callable[[Batch], Losses], ranks: Ranks, low: bool) -> None:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        super().__init__(model, judged)
        self.twin = copy.deepcopy(model).cpu() if ranks.first else None
        mesh = ranks.mesh(next(model.parameters()).device.type)
        plain = MixedPrecisionPolicy(cast_forward_inputs=False)
        lower = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
        parts = [fully_shard(block, mesh=mesh, mp_policy=lower if low else plain) for block in blocks(model)]
        self.engine: Any = fully_shard(Judge(model, judged), mesh=mesh, mp_policy=plain)
        for part in (*parts, self.engine):  # the sum, where torch would take the mean: the loop divides
            part.set_gradient_divide_factor(1.0)
            part.set_force_sum_reduction_for_comms(True)

    def __call__(self, batch: Batch) -> Losses:
        return self.engine(batch)

    def adding(self, last: bool) -> contextlib.AbstractContextManager[Any]:
        self.engine.set_is_last_backward(last)
        self.engine.set_requires_gradient_sync(last)
        self.engine.set_reshard_after_backward(last)
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def whole(self) -> Iterator[nn.Module]:
        weights = together(state(self.model), self.twin is not None)
        if self.twin is None:
            yield self.model
            return
        device = next(self.model.parameters()).device
        restore(self.twin.to(device), weights, "the sharded model")
        yield self.twin
        self.twin.cpu()


def layout(
    model: nn.Module, judged: Callable[[Batch], Losses], training: TrainingSpec, ranks: Ranks, low: bool
) -> Lone:
    """The layout that a run asks for; `low`: blocks compute in bfloat16."""
    kind = kind_of(training)
    if kind == "fsdp":
        made: Lone = Sharded(model, judged, ranks, low)
    elif kind == "ddp":
        made = Summed(model, judged, ranks) if run_by(training, model).captured else Replicated(model, judged)
    else:
        made = Lone(model, judged)
    if training.recompute:
        recompute_blocks(model)
    return made


def check(model: nn.Module, run: RunSpec) -> None:
    """Refuses layouts that cannot work with the processes that there are, or at all."""
    kind = kind_of(run.training)
    if kind != "none" and not is_distributed():
        raise Refusal(
            f"training.parallel={kind} needs several processes; "
            "start them with torchrun --nproc-per-node 2 -m heedful train, or leave it out"
        )
    if kind == "none" and is_distributed():
        raise Refusal("training.parallel=none is for one process and torchrun started more; leave it or torchrun out")
    if kind != "none" or run.training.recompute or HeadTerms.of(run.objective).names or looks(run.objective):
        from heedful.training.distributed.check_layout import check_layout

        check_layout(model, run, kind)


def run_by(training: TrainingSpec, model: nn.Module) -> Learning:
    """The engines of a model that learns: steps are captured as CUDA graphs on a GPU that holds it in one piece."""
    return Learning.of(model, training.compile, training.graphs and kind_of(training) != "fsdp")


def kind_of(training: TrainingSpec) -> str:
    """Which layout a run asks for: none, ddp or fsdp."""
    return training.parallel if training.parallel != "auto" else "ddp" if is_distributed() else "none"


def still(parallel: Parallel) -> Parallel:
    """The layout that a run was begun with, where it can go on so: on one process or on several, as there are now."""
    return parallel if (parallel in ("ddp", "fsdp")) == is_distributed() else "auto"


def is_distributed() -> bool:
    """Whether processes have met."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()
