"""Frozen parts and LoRA: which weights learn, and which learn by a product of two small matrices alone."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from heedful.blocks import Block, CrossBlock
from heedful.errors import Refusal
from heedful.models.ensemble import alone, in_member
from heedful.training.spec.training_spec import Lora, TrainingSpec

OUTPUTS = ("outputs", "distilled")  # what answers, and begins anew: it learns whatever else does not


class Low(nn.Module):
    """A matrix and what is learned beside it: W + B A, of a rank so low that few numbers learn (Hu et al., 2022)."""

    def __init__(self, weight: Tensor, rank: int, scale: float) -> None:
        super().__init__()
        rows, columns = weight.shape
        self.scale = scale
        self.down = nn.Parameter(torch.empty(rank, columns).uniform_(-1, 1) / math.sqrt(columns))
        self.up = nn.Parameter(torch.zeros(rows, rank))  # zeros, so that nothing is changed before it learns

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.scale * (self.up @ self.down).to(weight.dtype)


def adapt(model: nn.Module, training: TrainingSpec) -> None:
    """Freezes and adapts a model as its run says."""
    for path in training.freeze:
        freeze_path(model, path)
    if training.lora is not None:
        lower(model, training.lora)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise Refusal(f"training.freeze={training.freeze} freezes every weight; leave some of it out")


def others(model: nn.Module) -> list[str]:
    """The paths of all parts but the outputs."""
    return [top for top in tops(model) if top not in OUTPUTS]


def tops(model: nn.Module) -> list[str]:
    """The paths of a model's parts, or of those of each of its members."""
    return [*dict.fromkeys(in_member(name).split(".")[0] for name, _ in model.named_parameters())]


def lies_under(name: str, path: str) -> bool:
    """Whether a weight lies under a path, which may be one within each member."""
    return any(f"{told}.".startswith(f"{path}.") for told in (name, in_member(name)))


def freeze_path(model: nn.Module, path: str) -> None:
    """Freezes what lies under a path."""
    under = [p for name, p in model.named_parameters(remove_duplicate=False) if lies_under(name, path)]
    if not under:
        blocks = [in_member(name) for name, part in model.named_modules() if isinstance(part, Block | CrossBlock)]
        known = ", ".join((*tops(model), *blocks[:1], *(["..."] if len(blocks) > 1 else [])))
        raise Refusal(f"training.freeze: the model has no {path!r}; known: {known}")
    for parameter in under:
        parameter.requires_grad_(False)


def lower(model: nn.Module, lora: Lora) -> None:
    """Puts a small product beside each linear map of the parts that are named; all else but the outputs stays."""
    chosen = [one for member in alone(model) for one in maps(member, lora.parts)]
    for path in others(model):
        freeze_path(model, path)
    for part in chosen:
        low = Low(part.weight, lora.rank, lora.alpha / lora.rank)
        parametrize.register_parametrization(part, "weight", low)


def maps(model: nn.Module, parts: list[str]) -> Iterator[nn.Linear]:
    """The linear maps in the blocks of a model whose path has one of the parts' names in it."""
    blocks = {path: part for path, part in model.named_modules() if isinstance(part, Block | CrossBlock)}
    inner = {f"{path}.{name}": one for path, block in blocks.items() for name, one in block.named_modules()}
    linear = {path: one for path, one in inner.items() if isinstance(one, nn.Linear)}
    known = dict.fromkeys(word for path in linear for word in path.split(".")[2:] if not word.isdigit())
    for part in parts:
        if part not in known:
            raise Refusal(f"training.lora.parts: no linear map of a block is in {part!r}; known: {', '.join(known)}")
    yield from {one: None for path, one in linear.items() if {*path.split(".")} & {*parts}}


def merge(model: nn.Module) -> None:
    """Merges each LoRA product into its matrix, so that the model has again the parts that its spec says."""
    for part in model.modules():
        if parametrize.is_parametrized(part, "weight"):
            parametrize.remove_parametrizations(part, "weight", leave_parametrized=True)


def scales(model: nn.Module, kept: float) -> dict[Tensor, float]:
    """Layer-wise learning rate decay: the share of the rate for each weight, lower in blocks farther from the outputs.

    What stands before the first block is below it, and what stands behind the last one above it (Clark et al., 2020).
    """
    made: dict[Tensor, float] = {}
    for member in alone(model):
        made |= scales_alone(member, kept)
    return made


def scales_alone(model: nn.Module, kept: float) -> dict[Tensor, float]:
    """The same of a model without members."""
    blocks = [part for part in model.modules() if isinstance(part, Block | CrossBlock)]
    heights = {p: at for at, block in enumerate(blocks, 1) for p in block.parameters()}
    made: dict[Tensor, float] = {}
    top, passed = len(blocks) + 1, False
    for parameter in model.parameters():
        passed = passed or parameter in heights
        height = heights.get(parameter, top if passed else 0)
        made[parameter] = kept ** (top - height)
    return made
