"""What a run would need, told beforehand: as torch's own profiler counts it, and less where parts are shared out."""

from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from heedful.cli import main
from heedful.errors import Refusal
from heedful.tasks import TASKS
from heedful.training import memory_estimate
from heedful.training.distributed.ranks import ONE
from heedful.training.memory_estimate import Need
from heedful.training.model_spec_for_task import suit_spec
from heedful.training.spec import recipes
from tests.training.runs import short

DEEP = {"model__depth": 5, "model__width": 64, "training__batch": 48, "model__dropout": 0.1, "training__average": 0}


def most(events: list[Any]) -> int:
    """The most bytes that were allocated at once, by the profiler's list of what came and went."""
    alive = peak = 0
    for event in sorted((event for event in events if event.name() == "[memory]"), key=lambda event: event.start_ns()):
        alive += event.nbytes()
        peak = max(peak, alive)
    return peak


@pytest.mark.parametrize(("recipe", "dtype"), [("reverse", "float32"), ("series", "bfloat16")])
def test_a_step_takes_what_was_told_beforehand(recipe: str, dtype: str) -> None:
    run = short(recipe, training__dtype=dtype, training__parallel="none", **DEEP)
    task, splits = TASKS[run.task].open(run.data, run.seed)
    task, spec = suit_spec(run, task)
    with memory_estimate.imagine_processes(1):
        need = memory_estimate.measure_need(run, task, splits, spec, 1)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen, memory_estimate.as_on_a_gpu():
        loop = memory_estimate.loop_of(run, task, splits, spec, ONE)
        samples = memory_estimate.widest(loop)
        for _ in range(2):
            loop.step(loop.portions.of(samples))
    assert need.peak == pytest.approx(most(seen.profiler.kineto_results.events()), rel=0.1)
    assert need.weights == sum(p.numel() * 4 for p in loop.model.parameters()) + sum(
        b.numel() * b.element_size() for b in loop.model.buffers()
    )


@pytest.fixture(scope="module")
def needs() -> dict[str, Need]:
    return dict(memory_estimate.needs(short("reverse", training__dtype="float32", **DEEP), 16))  # type: ignore[arg-type]


def test_a_layout_that_training_would_refuse_is_not_promised() -> None:
    said = dict(memory_estimate.needs(short("reverse", training__dtype="float16"), 4))
    assert isinstance(said["ddp"], Need)
    assert str(said["fsdp"]).startswith("training.dtype=float16 needs each weight in one piece")
    with pytest.raises(Refusal, match=r"training.optimiser=adafactor reads values"):
        list(memory_estimate.needs(short("reverse", training__optimiser="adafactor"), 4))


@pytest.mark.parametrize("recipe", recipes.names())
def test_every_recipe_can_be_planned_for_more_processes_than_a_matrix_has_rows(recipe: str) -> None:
    said = dict(memory_estimate.needs(recipes.resolve(recipe, ["data=toy"]), 8))
    assert said.keys() == memory_estimate.LAYOUTS.keys()
    if recipe in ("names", "translate-rnn", "translate-rnn-attention"):  # whose kernels ask how long a sequence is
        assert all("reads values, and a plan has none" in str(need) for need in said.values())
        return
    if recipe == "autoformer":  # which draws a network at every step
        assert "reads values, and a plan has none" in str(said["ddp"])
    else:
        assert isinstance(said["ddp"], Need) and said["ddp"].peak > said["ddp"].weights > 0
    assert all(isinstance(need, Need) or "; " in str(need) for name, need in said.items() if name != "ddp")


def test_parts_are_smaller_the_more_share_them_and_recomputing_keeps_less(needs: dict[str, Need]) -> None:
    ddp, fsdp, again = needs["ddp"], needs["fsdp"], needs["fsdp, recomputing"]
    for part in ("weights", "gradients", "optimiser"):
        assert getattr(ddp, part) / 16 <= getattr(fsdp, part) < getattr(ddp, part) / 15
        assert getattr(again, part) == getattr(fsdp, part)
    assert again.activations < 0.9 * fsdp.activations
    assert ddp.gradients == ddp.weights and ddp.optimiser == pytest.approx(2 * ddp.weights, rel=0.01)


def test_a_step_sends_gradients_twice_around_and_sharded_weights_twice_more(needs: dict[str, Need]) -> None:
    assert needs["ddp"].sent == needs["ddp"].weights * 2 * 15 // 16
    # Blocks are put together on the way there and on the way back; what is outside them once; gradients go one way.
    assert 2.5 < needs["fsdp"].sent / (needs["fsdp"].weights * 15) < 3.05


def test_the_verb_says_which_layouts_fit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["plan", "sets", "data=toy", "--gpus", "4", "--memory", "300KB"])
    said, wrong = capsys.readouterr()
    assert left.value.code == 0 and wrong == ""
    assert [line.split("  ")[0] for line in said.splitlines()] == ["layout", *memory_estimate.LAYOUTS]
    assert {line.rsplit("  ", 1)[1] for line in said.splitlines()[1:]} == {"yes", "no"}, said
    assert not torch.distributed.is_initialized()
