"""The laws of tasks and of their parts: losses are sums, scores can be merged, answers have a type, samples repeat."""

from __future__ import annotations

import copy
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.data.collate import Batch
from heedful.data.readers.reader import Reader
from heedful.metrics.metric import Metric, gather_metrics, scores
from heedful.objectives.objective import Loss
from heedful.pipelines.pipeline import unheard
from heedful.results import Result
from heedful.safe.json_and_tensors import read_json
from heedful.tasks.task import Task
from heedful.testing.broken_law import BrokenLaw, law
from heedful.testing.task_bench import TOGETHER, Bench, bench_of, reader_of, small_reader

CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}  # in float64


def same_samples(task: Task, reader: Reader) -> None:
    """One seed gives the same samples, whenever they are read."""
    batches = []
    for _ in range(2):
        work, splits = task.open(reader, 7)
        work = work.configured({}, splits)
        assert len(splits.train) and len(splits.test), "there is nothing to learn from, or nothing to test on"
        batches.append(work.batch(work.augmented([splits.train[at] for at in range(TOGETHER)], 1)))
    for name, one in batches[0].items():
        assert torch.equal(one, batches[1][name]), f"{name} is another when it is read again"


def learned_again(bench: Bench) -> None:
    """What was learned of the data reads back from its own file as itself."""
    with tempfile.TemporaryDirectory() as folder:
        bench.work.write(Path(folder))
        state = read_json(Path(folder) / "task.json")
        assert state.pop("task") == bench.work.name
        again = bench.work.task.read(Path(folder), state)
    assert again.learned == bench.work.learned or again.learned.state() == bench.work.learned.state()


@torch.no_grad()
def losses_of(bench: Bench, batch: Batch, seed: int = 0) -> dict[str, Loss]:
    """The losses of a batch, with dice of their own."""
    torch.manual_seed(seed)
    return bench.work.losses(bench.model, batch)


def losses_are_sums(bench: Bench) -> None:
    """The losses of a batch are those of its samples, summed; unless they are drawn by dice or look at others."""
    bench.work.check_log()
    batch, names = bench.batch, bench.work.objective.names
    found = losses_of(bench, batch)
    assert tuple(found) == names, f"it names {names} and gives {tuple(found)}"
    for name, loss in found.items():
        assert loss.sum.ndim == 0 and loss.sum.isfinite(), f"{name} is no finite number"
        assert loss.count.ndim == 0 and loss.count.isfinite() and loss.count > 0, f"{name} counts {loss.count}"
    if not torch.equal(total(losses_of(bench, batch, 1)), total(found)):
        return  # by dice
    parts = [losses_of(bench, {key: one[at : at + 1] for key, one in batch.items()}) for at in range(TOGETHER)]
    for name, loss in found.items():
        counts = float(sum(float(one[name].count) for one in parts))
        said = f"{name} counts {float(loss.count):g} in a batch and {counts:g} in its parts"
        assert math.isclose(counts, float(loss.count), rel_tol=1e-6), said
        sums = torch.stack([one[name].sum for one in parts]).sum()
        torch.testing.assert_close(sums, loss.sum, **CLOSE)


def total(losses: Mapping[str, Loss]) -> Tensor:
    """The sums of all losses, side by side."""
    return torch.stack([one.sum for one in losses.values()])


def counts_are_of_the_batch(bench: Bench) -> None:
    """How many there are of a loss is known of the batch alone: other weights do not change it."""
    batch, before = bench.batch, losses_of(bench, bench.batch)
    other = copy.deepcopy(bench.model)
    with torch.no_grad():
        for weight in other.parameters():
            weight.mul_(0.5)
    after = losses_of(replace(bench, model=other), batch)
    said = bench.work.loss_counts(batch)
    for name, loss in before.items():
        assert torch.equal(loss.count, after[name].count), f"the count of {name} depends on the weights"
        assert name not in said or float(said[name]) == float(loss.count), f"counts() and losses() differ on {name}"


def gradients_are_finite(bench: Bench) -> None:
    """A batch gives some weight a gradient, and every gradient is a number."""
    model = copy.deepcopy(bench.model).train()
    torch.manual_seed(0)
    losses = bench.work.losses(model, bench.batch)
    torch.stack([loss.sum for loss in losses.values()]).sum().backward()
    found = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert any(one.any() for one in found), "no weight has a gradient"
    assert all(one.isfinite().all() for one in found), "a gradient is not finite"


def metrics_merge(bench: Bench, metrics: Sequence[Metric[Any]]) -> None:
    """What two processes saw of a half each merges to what one sees of all; a task's own metrics are not written to."""
    before, half = copy.deepcopy(list(metrics)), len(bench.test) // 2
    work, model = bench.work, copy.deepcopy(bench.model).float()

    def seen(samples: Sequence[Any]) -> list[Metric[Any]]:
        torch.manual_seed(0)
        return gather_metrics(metrics, work.pipeline.results, model, samples, work.learned, unheard)

    whole, one, two = seen(bench.test), seen(bench.test[:half]), seen(bench.test[half:])
    for here, there in zip(one, two, strict=True):
        here.merge(there)
    for metric, merged, own in zip(whole, one, metrics, strict=True):
        found, again, name = metric.compute(), merged.compute(), type(metric).__name__
        assert not metric.names or set(found) == set(metric.names), f"{name} names {metric.names} and gives {found}"
        assert all(math.isfinite(value) for value in found.values()), f"{name} gives {found}"
        for key, value in found.items():
            said = f"{key} is {value} of all samples and {again[key]} of two halves merged"
            assert math.isclose(value, again[key], rel_tol=1e-6, abs_tol=1e-9), said
        assert not metric.share or all(value <= 1 for value in found.values()), f"{name} is a share and gives {found}"
        assert repr(own) == repr(before[list(metrics).index(own)]), f"{name} of the task itself was written to"


def watches_a_score(bench: Bench) -> None:
    """The score to choose by is one of the scores."""
    found = scores(gather_metrics(bench.work.metrics, bench.work.pipeline.results, bench.model.float(), bench.test[:4],
                            bench.work.learned, unheard))  # fmt: skip
    bench.model.double()
    assert bench.work.watch in found, f"it watches {bench.work.watch} and scores {sorted(found)}"


def answers_have_types(bench: Bench) -> None:
    """Each input that a sample writes is read again and answered by a result that reads back from its own JSON."""
    model, some = copy.deepcopy(bench.model).float(), bench.test[:3]
    asked = [bench.work.as_input(one) for one in some]
    found = list(bench.work.predict(model, asked))
    assert len(found) == len(asked), f"{len(asked)} inputs have {len(found)} answers"
    for one in found:
        assert isinstance(one, Result), f"an answer is of type {type(one).__name__} and no Result"
        assert "\n" not in one.plain() and one.section().html()
        assert Result.read(json.loads(json.dumps(one.json()))) == one, "it reads back from its JSON as another"
    assert len(bench.work.show(model, some).rows) <= len(some)


OBJECTIVE = (
    ("the losses of a batch are those of its samples, summed", losses_are_sums),
    ("counts are known of the batch alone", counts_are_of_the_batch),
    ("every gradient is a number", gradients_are_finite),
)
MERGED = "what two processes have seen merges to what one has seen of all"


def check_task(task: Task, samples: Any = None) -> None:
    """Holds a task to every law, on a set that it makes on the fly or on samples that lie in memory."""
    name = f"task {task.name!r}"
    with law(name, "its samples are read and a model of its first family learns them"):
        reader = reader_of(task, samples)
        bench = bench_of(task, reader)
    with law(name, "one seed gives the same samples"):
        same_samples(task, reader)
    with law(name, "what was learned of the data reads back as itself"):
        learned_again(bench)
    for said, holds in OBJECTIVE:
        with law(name, said):
            holds(bench)
    with law(name, MERGED):
        metrics_merge(bench, bench.work.metrics)
    with law(name, "the score to choose by is one of its scores"):
        watches_a_score(bench)
    with law(name, "an answer has a type and reads back from its JSON"):
        answers_have_types(bench)


def check_reader(name: str, kind: type[Reader], tasks: Sequence[Task]) -> None:
    """Holds a reader to the laws, in each of the tasks whose samples it gives."""
    if not tasks:
        raise BrokenLaw(f"{name} does not say whose samples it gives; name their tasks: tasks = ('sets',)")
    for task in tasks:
        own = replace(task, readers={**task.readers, "own": kind})
        with law(f"{name} in task {task.name!r}", "its keys read back as themselves"):
            reader = small_reader(kind, "own")
            assert kind.model_validate(reader.model_dump()) == reader
        with law(f"{name} in task {task.name!r}", "one seed gives the same samples"):
            same_samples(own, reader)
        with law(f"{name} in task {task.name!r}", "its samples are learned from, scored and asked"):
            bench = bench_of(own, reader)
            losses_are_sums(bench)
            metrics_merge(bench, bench.work.metrics)
            answers_have_types(bench)


def check_metric(name: str, metric: Metric[Any], task: Task) -> None:
    """Holds a metric to the laws, on the answers of a task."""
    with law(f"{name} in task {task.name!r}", MERGED):
        metrics_merge(bench_of(task, reader_of(task, None)), [metric])


def check_objective(name: str, own: Task) -> None:
    """Holds the objective of a task to the laws, with a model that learns the task."""
    with law(f"{name} in task {own.name!r}", "a model of the task's first family can be judged"):
        bench = bench_of(own, reader_of(own, None))
    for said, holds in OBJECTIVE:
        with law(f"{name} in task {own.name!r}", said):
            holds(bench)
