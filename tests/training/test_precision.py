"""float16 with a scale: it learns, steps that overflow are left out, and what can never fit is said."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.errors import Failure, Refusal
from heedful.training.loop import Loop
from heedful.training.precision import DTYPES, FIRST, Precision
from heedful.training.spec.training_spec import TrainingSpec
from tests.training.runs import CPU, Silent, first_samples, loop_of, short, train

NAMES = ("adamw", "sgd", "adafactor", "muon")


def half(tmp_path: Path, **changes: Any) -> Loop:
    return loop_of(tmp_path, short("reverse", training__dtype="float16", **changes))


def weights(loop: Loop) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in loop.model.state_dict().items()}


@pytest.mark.parametrize("recipe", ["reverse", "series", "sets"])
def test_float16_learns(tmp_path: Path, recipe: str) -> None:
    loop = loop_of(tmp_path, short(recipe, training__dtype="float16", training__rate=0.005))
    kinds = set()
    loop.model.get_submodule("outputs").register_forward_hook(lambda module, given, out: kinds.add(out.dtype))
    portion = loop.portions.of(first_samples(loop, 20))
    losses = [float(loop.step(portion)) for _ in range(25)]
    assert kinds == {torch.float16}
    assert losses[-1] < 0.8 * losses[0]
    assert {p.dtype for p in loop.model.parameters()} == {torch.float32}


@pytest.mark.parametrize("name", NAMES)
def test_the_step_does_not_depend_on_the_scale(tmp_path: Path, name: str) -> None:
    made = []
    for dtype in ("float32", "float16"):
        loop = loop_of(tmp_path, short("reverse", training__dtype=dtype, training__optimiser=name))
        portion = loop.portions.of(first_samples(loop, 7))
        loop.backward(portion.batches[0], 1.0)
        loop.precision.unscale(loop.optimiser)
        made.append({key: p.grad.clone() for key, p in loop.model.named_parameters() if p.grad is not None})
    exact, close = made
    for key, gradient in exact.items():
        assert (close[key] - gradient).norm() <= 0.03 * gradient.norm() + 1e-4, key


@pytest.mark.parametrize("name", NAMES)
def test_a_step_that_overflows_moves_nothing_and_halves_the_scale(tmp_path: Path, name: str) -> None:
    loop = half(tmp_path, training__optimiser=name)
    loop.precision.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**30)
    before, portion = weights(loop), loop.portions.of(first_samples(loop, 7))
    loss = loop.step(portion)
    assert loss.isfinite() and loop.precision.scaler.get_scale() == 2.0**29
    assert all(torch.equal(before[key], tensor) for key, tensor in loop.model.state_dict().items())
    loop.check_finite()  # no error
    for _ in range(25):
        loop.step(portion)
    loop.check_finite()
    assert any(not torch.equal(before[key], tensor) for key, tensor in loop.model.state_dict().items())
    assert loop.precision.scaler.get_scale() < 2.0**20


def test_gradients_that_fit_at_no_scale_are_a_failure(tmp_path: Path) -> None:
    loop = half(tmp_path, training__steps=60)
    next(loop.model.parameters()).register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(
        Failure, match="the gradients of float16 are not finite at step 28"
    ):  # 2 ** (10 - 27) is too low
        loop.train(Silent())  # type: ignore[arg-type]


def test_a_loss_that_is_lost_in_float16_is_still_told(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="not finite"):
        train(short("reverse", training__dtype="float16", training__rate=1e30, training__clip=0), tmp_path / "run")


def test_the_scale_is_kept_as_tensors_and_put_back(tmp_path: Path) -> None:
    one, other = (Precision(TrainingSpec(dtype="float16"), CPU) for _ in range(2))
    assert other.state()["scale"] == FIRST
    one.scaler.scale(torch.ones(()))
    one.scaler.load_state_dict(one.scaler.state_dict() | {"scale": 2.0**-3, "_growth_tracker": 1234})
    other.restore(one.state())
    assert other.scaler.state_dict() == one.scaler.state_dict()
    other.scaler.scale(torch.ones(()))  # which makes its own tensors
    assert other.scaler.state_dict() == one.scaler.state_dict()


@pytest.mark.parametrize("dtype", sorted({"auto", *DTYPES} - {"float16", "tf32"}))
def test_no_other_precision_has_a_scale(dtype: str) -> None:
    assert Precision(TrainingSpec.model_validate({"dtype": dtype}), CPU).state() == {}


def test_tf32_is_refused_where_there_is_none() -> None:
    with pytest.raises(Refusal, match=r"training\.dtype=tf32 is a GPU's.*; use float32 or bfloat16"):
        Precision(TrainingSpec(dtype="tf32"), CPU)


def test_tf32_is_set_for_a_run_and_no_longer() -> None:
    made = Precision(TrainingSpec(), CPU)
    made.tf32 = True
    before = torch.get_float32_matmul_precision()
    with made.products():
        assert torch.get_float32_matmul_precision() == "high" != before
    assert torch.get_float32_matmul_precision() == before
