"""AdamW, what decays, and the moving average."""

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.training.optimiser import Average, optimiser_of, optimiser_state, restore_optimiser
from heedful.training.spec import TrainingSpec

FAMILIES = [
    ("transformer", {"vocab": 11, "position": "learned"}),
    ("predictor", {"channels": 2, "classes": 3, "norm": "rms"}),
    ("forecaster", {"channels": 2, "feedforward": "gated"}),
]


def plain() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 2)).double()


def learn(model: nn.Module, optimiser: torch.optim.Optimizer, steps: int, seed: int = 1) -> None:
    torch.manual_seed(seed)
    for _ in range(steps):
        optimiser.zero_grad()
        model(torch.randn(16, 4, dtype=torch.double)).square().sum().backward()
        optimiser.step()


def assert_close(one: dict[str, Tensor], other: dict[str, Tensor], tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, other[name], rtol=0, atol=tolerance)


@pytest.mark.parametrize("steps", [1, 5])
def test_a_step_is_the_one_of_torch(steps: int) -> None:
    ours, theirs = plain(), plain()
    training = TrainingSpec(rate=0.03, weight_decay=0.1, betas=[0.8, 0.95])
    matrices = [theirs[0].weight, theirs[3].weight]
    others = [theirs[0].bias, theirs[3].bias, theirs[1].weight, theirs[1].bias]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    learn(ours, optimiser_of(ours, training), steps)
    learn(theirs, torch.optim.AdamW(groups, lr=0.03, betas=(0.8, 0.95), foreach=False, fused=False), steps)
    assert_close(ours.state_dict(), theirs.state_dict(), 1e-12)


@pytest.mark.parametrize(("family", "numbers"), FAMILIES)
def test_norms_and_biases_do_not_decay_and_all_else_does(family: str, numbers: dict[str, object]) -> None:
    model = heedful.build(family, width=16, depth=1, heads=2, length=8, **numbers)
    before = copy.deepcopy(dict(model.named_parameters()))
    optimiser = optimiser_of(model, TrainingSpec(rate=0.5, weight_decay=0.1))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    for name, parameter in model.named_parameters():
        kept = 1.0 if "norm" in name or name.endswith("bias") else 1 - 0.5 * 0.1
        torch.testing.assert_close(parameter, before[name] * kept, rtol=1e-6, atol=0)


def test_a_parameter_that_is_frozen_stays() -> None:
    model = plain()
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    learn(model, optimiser_of(model, TrainingSpec(weight_decay=0.1)), 2)
    assert torch.equal(before, model[0].weight)


def test_an_optimiser_goes_on_from_its_tensors_to_the_bit() -> None:
    model = plain()
    optimiser = optimiser_of(model, TrainingSpec())
    learn(model, optimiser, 3)
    again = copy.deepcopy(model)
    fresh = optimiser_of(again, TrainingSpec())
    kept = {name: tensor.clone() for name, tensor in optimiser_state(optimiser, model).items()}
    assert {key.rsplit("/")[1] for key in kept} == {"step", "exp_avg", "exp_avg_sq"}
    restore_optimiser(fresh, again, kept)
    learn(model, optimiser, 3, seed=2)
    learn(again, fresh, 3, seed=2)
    assert_close(again.state_dict(), model.state_dict(), 0)
    assert_close(optimiser_state(fresh, again), optimiser_state(optimiser, model), 0)


def test_the_average_is_young_at_first_and_then_keeps_its_share() -> None:
    model = nn.Linear(3, 2).double()
    average, expected = Average(model, kept=0.6), model.weight.detach().clone()
    for step in range(30):
        with torch.no_grad():
            model.weight.copy_(torch.randn(2, 3, dtype=torch.double))
        average.update(model, step)
        kept = min(0.6, (1 + step) / (10 + step))
        expected = kept * expected + (1 - kept) * model.weight.detach()
        torch.testing.assert_close(average.weights["weight"], expected, rtol=0, atol=1e-14)


def test_the_average_counts_what_cannot_be_averaged() -> None:
    model = nn.BatchNorm1d(2)
    average = Average(model, kept=0.9)
    model(torch.randn(4, 2))
    average.update(model, 0)
    assert average.weights["num_batches_tracked"] == 1


def test_the_average_does_not_move_with_the_model() -> None:
    model = nn.Linear(3, 2)
    average, before = Average(model, kept=0.9), model.weight.detach().clone()
    with torch.no_grad():
        model.weight.zero_()
    assert torch.equal(average.weights["weight"], before)


def test_the_names_of_the_optimisers_tensors_are_those_of_the_parameters(tmp_path: Path) -> None:
    model = plain()
    optimiser = optimiser_of(model, TrainingSpec())
    learn(model, optimiser, 1)
    assert {key.rsplit("/", 1)[0] for key in optimiser_state(optimiser, model)} == dict(model.named_parameters()).keys()
