"""The optimisers, which parameters decay, and the moving average of weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from heedful.blocks import Block, CrossBlock
from heedful.errors import Refusal
from heedful.training.distributed.sharded_tensors import gather_whole, in_parts, local, part_like
from heedful.training.spec.training_spec import TrainingSpec

Group = dict[str, Any]


def optimiser_of(model: nn.Module, training: TrainingSpec) -> Optimizer:
    """The optimiser that was asked for, over parameters in groups by rule."""
    return KINDS[training.optimiser](model, training)


def shares_of(model: nn.Module, training: TrainingSpec) -> dict[Tensor, float]:
    """By which share of the rate each weight learns (layer-wise decay of the learning rate)."""
    if training.layer_decay == 1.0:
        return dict.fromkeys(model.parameters(), 1.0)
    from heedful.training.adapt.freeze_and_lora import scales

    return scales(model, training.layer_decay)


def groups(model: nn.Module, training: TrainingSpec, apart: frozenset[Tensor] = frozenset()) -> list[Group]:
    """Matrices, which decay, and norms, biases and other vectors, which do not; less those that stand apart."""
    learned = [p for p in model.parameters() if p.requires_grad and p not in apart]
    shares = shares_of(model, training)
    made = []
    for share in sorted({shares[p] for p in learned}, reverse=True) or [1.0]:
        here = [p for p in learned if shares[p] == share]
        matrices, vectors = [p for p in here if p.dim() > 1], [p for p in here if p.dim() <= 1]
        made.append({"name": "matrices", "params": matrices, "weight_decay": training.weight_decay, "scale": share})
        made.append({"name": "norms and biases", "params": vectors, "weight_decay": 0.0, "scale": share})
    return made


def adamw(model: nn.Module, training: TrainingSpec, apart: frozenset[Tensor] = frozenset()) -> Optimizer:
    """Moments of each gradient and a decay of its own (Loshchilov and Hutter, 2019)."""
    first, second = training.betas
    return torch.optim.AdamW(groups(model, training, apart), lr=training.rate, betas=(first, second), fused=True)


def sgd(model: nn.Module, training: TrainingSpec) -> Optimizer:
    """Gradients with momentum (Sutskever et al., 2013)."""
    momentum = 0.9 if training.momentum is None else training.momentum
    fused = training.dtype != "float16"  # fused, a first step that is skipped leaves the momentum as it was found
    return torch.optim.SGD(groups(model, training), lr=training.rate, momentum=momentum, fused=fused)


def adafactor(model: nn.Module, training: TrainingSpec) -> Optimizer:
    """A row and a column in the place of each matrix of moments (Shazeer and Stern, 2018)."""
    return torch.optim.Adafactor(groups(model, training), lr=training.rate)


class Orthogonal(torch.optim.Muon):
    """Torch's Muon, which goes from matrix to matrix: on a GPU, which waits for it, those of one shape go together.

    One that lies in parts is put together for it: torch would fail where there are more processes than rows.
    """

    def together(self, matrix: Tensor) -> bool:
        """Whether a matrix goes with others of its shape."""
        return matrix.is_cuda and type(matrix) is nn.Parameter

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step."""
        if any(in_parts(p) for group in self.param_groups for p in group["params"]):
            self.step_in_parts()
            return
        if not all(self.together(p) for group in self.param_groups for p in group["params"]):
            super().step()  # type: ignore[no-untyped-call]
            return
        for group in self.param_groups:
            shaped: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}  # matrices with their gradients
            for p in group["params"]:
                if p.grad is not None:
                    shaped.setdefault(p.shape, []).append((p, p.grad))
            for shape, pairs in shaped.items():
                matrices, gradients = map(list, zip(*pairs, strict=True))
                moments = [self.moment(p) for p in matrices]
                torch._foreach_lerp_(moments, gradients, 1 - group["momentum"])
                ahead = torch.stack(torch._foreach_lerp(gradients, moments, group["momentum"]))
                steps = orthogonal(ahead, group["ns_coefficients"], group["ns_steps"], group["eps"]).to(ahead.dtype)
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(matrices, steps.unbind(), alpha=-group["lr"] * 0.2 * max(shape) ** 0.5)

    def step_in_parts(self) -> None:
        """One step of matrices that lie in parts: each process makes the whole of it, and takes its own part."""
        for group in self.param_groups:
            for p in (one for one in group["params"] if one.grad is not None):
                moment = self.moment(p).lerp_(p.grad, 1 - group["momentum"])
                ahead = gather_whole(p.grad.lerp(moment, group["momentum"]))
                step = orthogonal(ahead[None], group["ns_coefficients"], group["ns_steps"], group["eps"])[0]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(part_like(step.to(ahead.dtype), p), alpha=-group["lr"] * 0.2 * max(p.shape) ** 0.5)

    def moment(self, p: Tensor) -> Tensor:
        """The moving mean of a matrix's gradients."""
        if "momentum_buffer" not in self.state[p]:
            self.state[p]["momentum_buffer"] = torch.zeros_like(p)
        kept: Tensor = self.state[p]["momentum_buffer"]
        return kept


def orthogonal(x: Tensor, coefficients: tuple[float, float, float], rounds: int, eps: float) -> Tensor:
    """Matrices (N A B) with singular values near one in place of their own, by rounds of Newton and Schulz."""
    a, b, c = coefficients
    wide = x.bfloat16() if x.shape[1] <= x.shape[2] else x.bfloat16().mT
    wide = wide / wide.norm(dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(rounds):
        gram = wide @ wide.mT
        wide = torch.baddbmm(wide, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return wide if x.shape[1] <= x.shape[2] else wide.mT


class Muon(Optimizer):
    """Steps of the matrices in the blocks made orthogonal (Jordan et al., 2024); all else is AdamW's.

    They are as long as AdamW's (Liu et al., 2025), so that one rate suits both.
    """

    def __init__(self, model: nn.Module, training: TrainingSpec) -> None:
        inner = hidden_matrices(model)
        shares, named = shares_of(model, training), "matrices of blocks made orthogonal"
        chosen: list[Group] = [
            {"name": named, "params": [p for p in inner if shares[p] == share], "scale": share}
            for share in sorted({shares[p] for p in inner}, reverse=True) or [1.0]
        ]
        momentum = 0.95 if training.momentum is None else training.momentum
        how: dict[str, Any] = {"momentum": momentum, "adjust_lr_fn": "match_rms_adamw"}
        orthogonal = Orthogonal(chosen, lr=training.rate, weight_decay=training.weight_decay, **how)
        self.parts = orthogonal, adamw(model, training, frozenset(inner))
        super().__init__([group for part in self.parts for group in part.param_groups], {})  # the groups are shared,
        for part in self.parts:
            part.state = self.state  # and so are the tensors

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step of both."""
        for part in self.parts:
            part.step()


def hidden_matrices(model: nn.Module) -> list[Tensor]:
    """The matrices between the inputs and the outputs: of every linear map in a block."""
    blocks = [part for part in model.modules() if isinstance(part, Block | CrossBlock)]
    maps = {part: None for block in blocks for part in block.modules() if isinstance(part, nn.Linear)}
    learned = {*model.parameters()}  # what is made of others, as LoRA's are, is not among them
    return [part.weight for part in maps if part.weight in learned and part.weight.requires_grad]


KINDS: dict[str, Callable[[nn.Module, TrainingSpec], Optimizer]] = {
    "adamw": adamw,
    "sgd": sgd,
    "adafactor": adafactor,
    "muon": Muon,
}


def describe_optimiser(optimiser: Optimizer, name: str) -> str:
    """The optimiser and its groups, in a line."""
    counts: Counter[tuple[str, float]] = Counter()
    for group in optimiser.param_groups:
        counts[group["name"], group["weight_decay"]] += len(group["params"])
    said = []
    for (them, decay), count in counts.items():
        some = them if count > 1 else them.replace("matrices", "matrix")
        said += [f"{count:,} {some} {f'with decay {decay:g}' if decay else 'without decay'}"] if count else []
    shares = [group.get("scale", 1.0) for group in optimiser.param_groups if group["params"]]
    layers = f", their rates down to {min(shares):.3g} of the highest, layer by layer" if min(shares) < 1 else ""
    return f"{name}, {', '.join(said)}{layers}"


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


def optimiser_state(optimiser: Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimiser's tensors by the names of the parameters they belong to."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}/{key}": torch.as_tensor(value)
        for parameter, state in optimiser.state.items()
        for key, value in state.items()
        if value is not None
    }


def restore_optimiser(optimiser: Optimizer, model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Puts an optimiser's tensors back; steps are counted where the optimiser counts them."""
    parameters = dict(model.named_parameters())
    fused = {p for group in optimiser.param_groups if group.get("fused") for p in group["params"]}
    for key, value in tensors.items():
        name, field = key.rsplit("/", 1)
        parameter = parameters[name]
        if value.shape not in shapes(field, parameter) or value.dtype not in (torch.float32, parameter.dtype):
            raise Refusal(f"the optimiser's {key} is {list(value.shape)}, not {list(parameter.shape)}")
        counted = field == "step" and parameter not in fused
        kept = value.cpu() if counted else part_like(value.to(parameter.device), parameter)
        optimiser.state[parameter][field] = kept


def shapes(field: str, parameter: Tensor) -> tuple[torch.Size, ...]:
    """What may be kept for a parameter: kernels take what they are given for as large as the weights."""
    whole = parameter.shape
    factors = {"row_var": torch.Size((*whole[:-1], 1)), "col_var": torch.Size((*whole[:-2], 1, *whole[-1:]))}
    return (factors[field],) if field in factors else (torch.Size(()), whole)
