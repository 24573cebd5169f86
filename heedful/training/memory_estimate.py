"""Memory estimate of a run that is too large for this machine: its own steps, on tensors without storage."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.nn import functional
from torch.utils._python_dispatch import _disable_current_modes

from heedful import models
from heedful.attention import Sight
from heedful.attention.mechanisms import softmax
from heedful.data.collate import Batch
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.inputs import Learned
from heedful.models import Spec
from heedful.tasks import TASKS
from heedful.tasks.work import Work
from heedful.training.adapt.freeze_and_lora import adapt
from heedful.training.allocation_counter import Memory, count_memory, size_of
from heedful.training.distributed.check_layout import check_layout
from heedful.training.distributed.ranks import Ranks
from heedful.training.distributed.sharded_tensors import local
from heedful.training.distributed.sharding import Sharded
from heedful.training.loop import Loop
from heedful.training.model_spec_for_task import suit_spec
from heedful.training.prepare import teach
from heedful.training.pretraining_stages import settle, write_unlearned
from heedful.training.spec.run_spec import RunSpec

ROW = 8  # processes over which a step is imagined
LAYOUTS = {"ddp": ("ddp", False), "fsdp": ("fsdp", False), "fsdp, recomputing": ("fsdp", True)}


@dataclass(frozen=True)
class Need:
    """What a layout takes: bytes on each GPU, and bytes that each sends and receives in a step."""

    weights: int
    gradients: int
    optimiser: int  # and the moving average, where one is made
    peak: int  # the most that is there at once
    sent: int

    @property
    def activations(self) -> int:
        """Activations and buffers: all that is kept for the backward pass or lives for a moment."""
        return max(0, self.peak - self.weights - self.gradients - self.optimiser)


class Imagined(Ranks):
    """One of many simulated processes, of which a row share each weight; printing and writing is left to another."""

    def __init__(self, size: int, row: int) -> None:
        self.size = row
        self.mesh("cpu")
        self.size = size

    @property
    def first(self) -> bool:
        """Never: the first process also keeps a copy of the whole model in the memory of its machine."""
        return False


def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout as on a GPU, which keeps one byte for each number; a CPU keeps the number itself."""
    return torch.native_dropout(x, p, True)[0] if p and training else x


@contextlib.contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """Lets a model run as on a GPU: no mask is read, bfloat16 is kept, and dropout is one kernel."""
    with contextlib.ExitStack() as stack:
        for owner, name, other in (
            (softmax, "FAST_UP_TO", 0),
            (Sight, "may_be_blind", True),
            (Learned, "reached", lambda part, at: at.shape[1]),
            (functional, "dropout", dropout),
        ):
            stack.enter_context(mock.patch.object(owner, name, other))
        yield


@dataclass(frozen=True, eq=False)
class WithRealBatches(Work):
    """A task whose batches are tensors that hold something: how large they are is in the samples."""

    def batch(self, samples: Sequence[Any]) -> Batch:
        with _disable_current_modes():
            return super().batch(samples)


def needs(run: RunSpec, gpus: int) -> Iterator[tuple[str, Need | Refusal]]:
    """What each layout of a run takes on so many GPUs, for the widest step of its first epoch, or why it cannot be."""
    if run.training.optimiser == "adafactor":
        raise Refusal("training.optimiser=adafactor reads values, and a plan has none; plan with adamw")
    here = torch.device("cpu")
    with tempfile.TemporaryDirectory() as aside:  # for models as chance made them in the place of what is trained first
        run = settle(run, Path(aside) / "plan", lambda spec, to: write_unlearned(spec, to, here))
        task, splits = TASKS[run.task].open(run.data, run.seed)
        task = task.configured(dict(run.objective), splits)
        task, spec = suit_spec(run, task)
        task = teach(run, task, spec, here)
    fits = [sample for sample in splits.train if task.length(sample) <= spec.longest]
    splits = replace(splits, train=fits or splits.train)
    dtype = "bfloat16" if run.training.dtype == "auto" else run.training.dtype  # as on a GPU
    for name, (parallel, recompute) in LAYOUTS.items():
        how = {"parallel": "none" if parallel == "ddp" else parallel, "recompute": recompute, "compile": False}
        training = run.training.model_copy(update=how | {"dtype": dtype})
        asked = run.model_copy(update={"training": training})
        try:
            with torch.device("meta"):
                check_layout(models.assemble(spec), asked, parallel)
        except Refusal as refusal:
            yield name, refusal
            continue
        try:
            with imagine_processes(min(gpus, ROW)):
                few = measure_need(asked, task, splits, spec, gpus)
        except (DataDependentOutputException, DynamicOutputShapeException):
            yield name, Refusal(f"a step of task {task.name!r} reads values, and a plan has none")
            continue
        with imagine_processes(gpus):
            yield name, stretch_need(few, spec, gpus) if parallel == "fsdp" else few


@contextlib.contextmanager
def imagine_processes(size: int) -> Iterator[None]:
    """Simulates a group of processes: what is sent arrives nowhere."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=size)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def loop_of(run: RunSpec, task: Work, splits: Splits[Any], spec: Spec, ranks: Ranks) -> Loop:
    """The loop of a run, its model fresh."""
    model = models.assemble(spec)
    task.on_train_begin(model)
    adapt(model, run.training)
    return Loop(run, task, splits, model, Path(), ranks)


def measure_need(run: RunSpec, task: Work, splits: Splits[Any], spec: Spec, gpus: int) -> Need:
    """Measures two steps on tensors without storage; the second begins with the whole state of the optimiser."""
    ranks = Imagined(gpus, min(gpus, ROW))
    task = WithRealBatches(**vars(task))
    with FakeTensorMode(allow_non_fake_inputs=True), as_on_a_gpu(), count_memory() as memory:
        loop = loop_of(run, task, splits, spec, ranks)
        samples = widest(loop)
        loop.step(loop.portions.of(samples))
        memory.peak, memory.sent = memory.live, 0
        loop.step(loop.portions.of(samples))
        return need_of(loop, memory, gpus)


def stretch_need(few: Need, spec: Spec, gpus: int) -> Need:
    """Scales what was measured on a few processes to all: shards get smaller, and what is gathered keeps its size.

    A step over a thousand parts of each weight would take minutes to imagine; making the parts takes a second.
    """
    with torch.device("meta"):
        model = models.assemble(spec)
    Sharded(model, lambda batch: (Tensor(), Tensor(), Tensor()), Imagined(gpus, gpus), low=False)
    weights = bytes_held(model)
    gradients, optimiser = (round(part * weights / few.weights) for part in (few.gradients, few.optimiser))
    peak = few.activations + weights + gradients + optimiser
    return replace(few, weights=weights, gradients=gradients, optimiser=optimiser, peak=peak)


def bytes_held(model: nn.Module) -> int:
    """The bytes of the weights that lie in one process."""
    return sum(size_of(local(p)) for p in model.parameters()) + sum(map(size_of, model.buffers()))


def widest(loop: Loop) -> Sequence[Any]:
    """The samples of the step of the first epoch that has the most tokens, padding counted."""
    plan = loop.portions.plan
    sides = plan.sides(0)
    step = max(range(plan.steps), key=lambda at: len(plan.at(at)) * int(sides[plan.at(at)].max(0).sum()))
    return loop.portions.samples(step)


def need_of(loop: Loop, memory: Memory, gpus: int) -> Need:
    """What was counted, by what it is for."""
    state = [value for one in loop.optimiser.state.values() for value in one.values() if isinstance(value, Tensor)]
    kept = sum(size_of(local(tensor)) for tensor in state)
    kept += sum(size_of(local(tensor)) for tensor in loop.average.weights.values()) if loop.average else 0
    gradients = sum(size_of(local(p)) for p in loop.model.parameters() if p.requires_grad)
    whole = sum(size_of(p) for p in loop.model.parameters()) if loop.training.parallel == "none" else 0
    sent = (2 * whole + memory.sent) * (gpus - 1) // gpus  # each part of a ring passes all but one of the others
    return Need(bytes_held(loop.model), gradients, kept, memory.peak, sent)
