"""The optimiser, and the moving average of weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.training.layouts import local, parted
from heedful.training.spec import TrainingSpec


def adamw(model: nn.Module, training: TrainingSpec) -> torch.optim.AdamW:
    """AdamW; norms, biases and other vectors do not decay (Loshchilov and Hutter, 2019)."""
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    groups = [
        {"params": [p for _, p in named if p.dim() > 1], "weight_decay": training.weight_decay},
        {"params": [p for _, p in named if p.dim() <= 1], "weight_decay": 0.0},
    ]
    first, second = training.betas
    return torch.optim.AdamW(groups, lr=training.rate, betas=(first, second), fused=True)


class Average:
    """A moving average of a model's weights, young in the first steps so that the start is soon forgotten."""

    def __init__(self, model: nn.Module, kept: float) -> None:
        self.kept = kept
        self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Takes in the weights after a step."""
        share = 1 - min(self.kept, (1 + step) / (10 + step))
        now = model.state_dict()
        moving = [name for name, tensor in now.items() if tensor.is_floating_point()]
        own, new = ([local(weights[name]) for name in moving] for weights in (self.weights, now))
        torch._foreach_lerp_(own, new, share)
        for name in now.keys() - set(moving):
            self.weights[name].copy_(now[name])


def optimiser_state(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimiser's tensors by the names of the parameters they belong to."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}/{key}": torch.as_tensor(value)
        for parameter, state in optimiser.state.items()
        for key, value in state.items()
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Puts an optimiser's tensors back."""
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        name, field = key.rsplit("/", 1)
        parameter = parameters[name]
        optimiser.state[parameter][field] = parted(value.to(parameter.device), parameter)
