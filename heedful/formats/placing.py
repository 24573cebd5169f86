"""Models made without memory for their weights, and weights put into them as they are, without a copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from heedful.models import Spec, assemble


@contextmanager
def hollow() -> Iterator[None]:
    """Inside, parameters hold nothing as soon as a part has them; what parts reckon for themselves is really there."""

    def emptied(part: nn.Module, name: str, parameter: Tensor | None) -> nn.Parameter | None:
        if parameter is None or parameter.is_meta:  # one that two parts share stays one
            return None
        return nn.Parameter(parameter.to("meta"), requires_grad=parameter.requires_grad)

    hook = register_module_parameter_registration_hook(emptied)  # type: ignore[arg-type]  # what it returns is kept
    try:
        yield
    finally:
        hook.remove()


def place_weights(spec: Spec, tensors: Mapping[str, Tensor]) -> nn.Module:
    """The model of a spec with these very tensors as its weights, by name, tied ones once."""
    with hollow():
        model = assemble(spec)
    kind = dtype_of(tensors)
    own = dict(model.state_dict(keep_vars=True))
    fits = {name: tensor.to(kind) if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    held = {id(own[name]): tensor for name, tensor in fits.items()}
    for part in model.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                held[id(parameter)] = as_parameter(held[id(parameter)], parameter)
                part._parameters[name] = held[id(parameter)]  # type: ignore[assignment]
        for name, buffer in part._buffers.items():
            if buffer is not None and id(buffer) in held:
                part._buffers[name] = held[id(buffer)]
    return model.to(kind)


def as_parameter(tensor: Tensor, like: nn.Parameter) -> nn.Parameter:
    """A tensor as the parameter in the place of another."""
    return tensor if isinstance(tensor, nn.Parameter) else nn.Parameter(tensor, requires_grad=like.requires_grad)


def dtype_of(tensors: Mapping[str, Tensor]) -> torch.dtype:
    """The precision in which weights were written, so that a model reads back as it was."""
    kinds = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    return kinds.pop() if len(kinds) == 1 else torch.get_default_dtype()
