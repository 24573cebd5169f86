"""A model's weights by name, put into it and compared with what a file says of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.errors import Refusal
from heedful.models import Spec


def state(model: nn.Module) -> dict[str, Tensor]:
    """A model's weights by name, tied ones once."""
    tensors: dict[str, Tensor] = {}
    known: set[tuple[int, tuple[int, ...]]] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if (id(tensor), tuple(tensor.shape)) not in known:
            known.add((id(tensor), tuple(tensor.shape)))
            tensors[name] = tensor.detach()
    return tensors


def restore(model: nn.Module, tensors: dict[str, Tensor], where: str) -> None:
    """Puts weights into a model; one that is missing, unexpected or of another shape is named."""
    own = state(model)
    compare(own, tensors, where)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def compare(own: dict[str, Tensor], tensors: dict[str, Tensor], where: str) -> None:
    """Refuses tensors that are not the ones of a model."""
    for name in sorted(own.keys() ^ tensors.keys()):
        fault = "missing" if name in own else "unexpected"
        raise Refusal(f"{where}: tensor {name!r} is {fault}; is it of another spec?")
    for name, tensor in own.items():
        shape, wanted = list(tensors[name].shape), list(tensor.shape)
        if shape != wanted:
            raise Refusal(f"{where}: tensor {name!r} is {shape}, not {wanted}; is it of another spec?")
        kinds = tensors[name].dtype, tensor.dtype
        if kinds[0] != kinds[1] and not all(kind.is_floating_point for kind in kinds):
            raise Refusal(f"{where}: tensor {name!r} holds {kinds[0]}, not {kinds[1]}; is it of another spec?")


def check_depths(spec: Spec, tensors: int, where: str) -> None:
    """Refuses a model with more layers than there are tensors, before one is made."""
    for key, depth in spec.stacked.items():
        if depth > tensors:
            raise Refusal(f"{where}: {tensors} tensors are too few for {key} {depth}; mend the spec")
