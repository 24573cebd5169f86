"""Weights as the processor likes to read them: packed once by oneDNN, for as long as a model on a CPU writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.weak import WeakTensorKeyDictionary

WORTHWHILE = 2**17  # numbers in a matrix; calling oneDNN costs 10 us more, and the matrix must be read to gain them
ROWS = 32  # packed for this many rows at a time, a matrix serves few rows and hundreds; packed for one, one alone
FEWEST = 4  # rows; oneDNN reads a matrix faster for four of them than for one (3.12)


class Packed(Tensor):
    """A matrix that lies beside its packed copy. `linear` multiplies by the copy; all else is told of the parameter."""

    copy: Tensor
    parameter: ref[Tensor]

    @classmethod
    def of(cls, weight: Tensor) -> Packed:
        """The matrix and its copy, which is made here."""
        made = weight.detach().as_subclass(cls)
        made.copy, made.parameter = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS), ref(weight)
        return made

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Multiplies by the packed copy where that gives the same in float32, and where nothing is to be learned."""
        if func is linear and not kwargs and args[0].dtype is torch.float32 and not torch.is_grad_enabled():
            x, weight, bias = (*args, None)[:3]
            if type(weight) is cls and x.numel() and not torch.is_autocast_enabled("cpu"):
                return product(x, weight.copy, bias)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*(one.parameter() if type(one) is cls else one for one in args), **(kwargs or {}))


def product(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """What `linear` gives, by a packed matrix."""
    by: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise.default
    rows = x.numel() // x.shape[-1]
    if rows >= FEWEST:
        return by(x, packed, bias, "none", [], "")
    many = x.reshape(rows, -1).repeat(-(-FEWEST // rows), 1)
    return by(many, packed, bias, "none", [], "")[:rows].view(*x.shape[:-1], -1)


# Of each parameter, what it held when it was packed, and packed. It goes with the parameter.
made: MutableMapping[Tensor, tuple[Any, Packed]] = WeakTensorKeyDictionary()


@contextmanager
def packed(parts: Iterable[nn.Module]) -> Iterator[None]:
    """Inside, every large matrix of a float32 model on a CPU multiplies packed: up to 2.5 times as fast for few rows.

    The model's parameters, state and structure stay as they are: a packed matrix stands before its parameter in the
    layer's own dictionary, and is taken away at the end. A compiled model, and a torch without oneDNN, go unpacked.
    """
    parts = list(parts)
    standing = [part for part in parts if isinstance(part, nn.Linear) and fits(part)] if possible(parts) else []
    try:
        for part in standing:
            vars(part)["weight"] = current(part.weight)
        yield
    finally:
        for part in standing:
            vars(part).pop("weight", None)


def possible(parts: Sequence[nn.Module]) -> bool:
    """Whether torch can pack, and no part was compiled: what was traced must not meet another kind of weight."""
    compiled = any("_orig_mod" in part._modules or part._compiled_call_impl is not None for part in parts)
    packs = all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))
    return packs and torch.backends.mkldnn.is_available() and not compiled


def fits(part: nn.Linear) -> bool:
    """Whether a layer has a plain matrix, in float32 on a CPU, that is large enough to gain by it."""
    weight = part._parameters.get("weight")
    if weight is None or "weight" in vars(part) or type(weight) is not nn.Parameter or weight.is_inference():
        return False
    plain = weight.device.type == "cpu" and weight.dtype is torch.float32 and weight.is_contiguous()
    return plain and weight.numel() >= WORTHWHILE and weight.shape[1] % 2 == 0


def current(weight: Tensor) -> Packed:
    """The packed matrix of a parameter, made anew where the parameter has changed."""
    now = contents(weight)
    if weight not in made or made[weight][0] != now:
        made[weight] = now, Packed.of(weight)
    return made[weight][1]


def contents(weight: Tensor) -> tuple[int, int, int]:
    """What tells that a parameter has changed: torch's own count of changes, its place, and the sum of its bits.

    The sum is needed, for fused optimisers and what goes through `.data` are not counted (torch 2.13).
    """
    return weight._version, weight.data_ptr(), int(weight.detach().view(torch.int64).sum())
