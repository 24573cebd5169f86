"""The optimisers are torch's own; what decays; and the moving average."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.safe.json_and_tensors import read_tensors
from heedful.safe.sealed_folders import write_tensors
from heedful.training.optimiser import (
    Average,
    Orthogonal,
    describe_optimiser,
    hidden_matrices,
    optimiser_of,
    optimiser_state,
    restore_optimiser,
)
from heedful.training.spec.training_spec import TrainingSpec

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


NAMES = ("adamw", "sgd", "adafactor", "muon")
SETTINGS: dict[str, dict[str, Any]] = {
    "adamw": {"betas": [0.8, 0.95]},
    "sgd": {"momentum": 0.7},
    "muon": {"momentum": 0.8},
}


def named(name: str) -> TrainingSpec:
    return TrainingSpec(optimiser=name, rate=0.03, weight_decay=0.1, **SETTINGS.get(name, {}))


def with_blocks(family: str = "predictor", **numbers: Any) -> nn.Module:
    torch.manual_seed(0)
    given = dict(FAMILIES)[family] | numbers
    return heedful.build(family, width=16, depth=2, heads=2, length=8, **given).double()


def moved(model: nn.Module, optimiser: torch.optim.Optimizer, steps: int) -> None:
    """Steps along made-up gradients, the same for every model of one kind."""
    dice = torch.Generator().manual_seed(3)
    for _ in range(steps):
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=dice, dtype=parameter.dtype)
        optimiser.step()


def torchs_own(name: str, model: nn.Module) -> list[torch.optim.Optimizer]:
    """The same by torch alone, plainly and without fused kernels; groups by the names of parameters."""
    alike = list(model.named_parameters())
    bare = [p for key, p in alike if "norm" in key or key.endswith("bias")]
    inner = [p for key, p in alike if ".blocks." in key and p.dim() == 2] if name == "muon" else []
    seen = {id(p) for p in [*bare, *inner]}
    rest = [p for _, p in alike if id(p) not in seen]
    groups = [{"params": rest, "weight_decay": 0.1}, {"params": bare, "weight_decay": 0.0}]
    plainly: dict[str, Any] = {"lr": 0.03, "foreach": False}
    if name == "sgd":
        return [torch.optim.SGD(groups, momentum=0.7, fused=False, **plainly)]
    if name == "adafactor":
        return [torch.optim.Adafactor(groups, **plainly)]
    if name == "adamw":
        return [torch.optim.AdamW(groups, betas=(0.8, 0.95), fused=False, **plainly)]
    orthogonal = torch.optim.Muon(inner, lr=0.03, weight_decay=0.1, momentum=0.8, adjust_lr_fn="match_rms_adamw")
    return [orthogonal, torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=False, **plainly)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [1, 5])
def test_a_step_is_the_one_of_torch(steps: int, name: str) -> None:
    ours, theirs = with_blocks(), with_blocks()
    moved(ours, optimiser_of(ours, named(name)), steps)
    parts = torchs_own(name, theirs)
    dice = torch.Generator().manual_seed(3)
    for _ in range(steps):
        for parameter in theirs.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=dice, dtype=parameter.dtype)
        for part in parts:
            part.step()
    assert_close(ours.state_dict(), theirs.state_dict(), 1e-12)
    assert any((a - b).abs().max() > 1e-3 for a, b in zip(ours.parameters(), with_blocks().parameters(), strict=True))


@pytest.mark.parametrize("steps", [1, 5])
def test_matrices_of_one_shape_go_together_where_a_gpu_waits_and_as_torch_has_it(steps: int, monkeypatch) -> None:
    one_by_one, together = with_blocks(), with_blocks()
    moved(one_by_one, optimiser_of(one_by_one, named("muon")), steps)
    monkeypatch.setattr(Orthogonal, "together", lambda self, matrix: True)
    optimiser = optimiser_of(together, named("muon"))
    moved(together, optimiser, steps)
    assert all("momentum_buffer" in optimiser.state[matrix] for matrix in hidden_matrices(together))
    # Rounds of Newton and Schulz are made in bfloat16, whose sums end as their order has it.
    assert_close(one_by_one.state_dict(), together.state_dict(), 0.02 * 0.03 * steps)
    assert any(
        (a - b).abs().max() > 0.01 for a, b in zip(together.parameters(), with_blocks().parameters(), strict=True)
    )


def test_torchs_defaults_of_momentum_are_said() -> None:
    model = with_blocks()
    momentum = {
        name: optimiser_of(model, TrainingSpec(optimiser=name)).param_groups[0]["momentum"]
        for name in SETTINGS
        if name != "adamw"
    }
    assert momentum == {"sgd": 0.9, "muon": 0.95}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("family", "numbers"), FAMILIES)
def test_every_parameter_is_in_one_group_and_norms_and_biases_alone_do_not_decay(
    family: str, numbers: dict[str, Any], name: str
) -> None:
    model = with_blocks(family)
    groups = optimiser_of(model, named(name)).param_groups
    decay = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    assert sum(len(group["params"]) for group in groups) == len(decay) == len(list(model.parameters()))
    for key, parameter in model.named_parameters():
        assert decay[id(parameter)] == (0.0 if "norm" in key or key.endswith("bias") else 0.1), key


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.parametrize(("family", "numbers"), FAMILIES)
def test_the_matrices_of_blocks_alone_are_made_orthogonal(family: str, numbers: dict[str, Any], order: str) -> None:
    model = with_blocks(family, order=order)
    first, *others = optimiser_of(model, named("muon")).param_groups
    inner = {id(p) for p in first["params"]}
    assert inner and inner.isdisjoint(id(p) for group in others for p in group["params"])
    for key, parameter in model.named_parameters():
        assert (id(parameter) in inner) == (".blocks." in key and parameter.dim() == 2), key


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


def test_the_groups_are_told_in_a_line() -> None:
    model = with_blocks()
    assert describe_optimiser(optimiser_of(model, named("sgd")), "sgd") == (
        "sgd, 10 matrices with decay 0.1, 15 norms and biases without decay"
    )
    assert describe_optimiser(optimiser_of(model, TrainingSpec(optimiser="muon", weight_decay=0)), "muon") == (
        "muon, 8 matrices of blocks made orthogonal without decay, 2 matrices without decay, "
        "15 norms and biases without decay"
    )


def test_a_parameter_that_is_frozen_stays() -> None:
    model = plain()
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    learn(model, optimiser_of(model, TrainingSpec(weight_decay=0.1)), 2)
    assert torch.equal(before, model[0].weight)


FIELDS = {
    "adamw": {"step", "exp_avg", "exp_avg_sq"},
    "sgd": {"momentum_buffer"},
    "adafactor": {"step", "row_var", "col_var", "variance"},
    "muon": {"step", "exp_avg", "exp_avg_sq", "momentum_buffer"},
}


@pytest.mark.parametrize("name", NAMES)
def test_an_optimiser_goes_on_from_its_tensors_to_the_bit(tmp_path: Path, name: str) -> None:
    model = with_blocks().float()
    optimiser = optimiser_of(model, named(name))
    moved(model, optimiser, 3)
    again = copy.deepcopy(model)
    fresh = optimiser_of(again, named(name))
    write_tensors(optimiser_state(optimiser, model), tmp_path / "optimiser.safetensors")
    kept = read_tensors(tmp_path / "optimiser.safetensors")
    assert {key.rsplit("/")[1] for key in kept} == FIELDS[name]
    restore_optimiser(fresh, again, kept)
    moved(model, optimiser, 3)
    moved(again, fresh, 3)
    assert_close(again.state_dict(), model.state_dict(), 0)
    assert_close(optimiser_state(fresh, again), optimiser_state(optimiser, model), 0)


def test_without_momentum_there_is_nothing_to_keep() -> None:
    model = plain()
    optimiser = optimiser_of(model, TrainingSpec(optimiser="sgd", momentum=0.0))
    learn(model, optimiser, 2)
    assert optimiser_state(optimiser, model) == {}


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
