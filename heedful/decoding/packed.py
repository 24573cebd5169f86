"""Weights as the processor likes to read them: packed once, for as long as a model on a CPU writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal
from weakref import ref

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.weak import WeakTensorKeyDictionary

from heedful.decoding import row
from heedful.decoding.whole import Whole, wholes
from heedful.errors import Refusal

Weights = Literal["float32", "float16"]  # as which matrices are packed: by oneDNN as they are, by fbgemm rounded

WORTHWHILE = 2**17  # numbers in a matrix; calling oneDNN costs 10 us more, and the matrix must be read to gain them
ROWS = 32  # packed for this many rows at a time, a matrix serves few rows and hundreds; packed for one, one alone
FEWEST = 4  # rows; oneDNN reads a matrix faster for four of them than for one (3.12)
HALF = torch.finfo(torch.float16).max  # a matrix with a number beyond it is not rounded
SAMPLE = 1009  # every so many numbers of a matrix are looked at when it was looked at whole a token ago


class Packed(Tensor):
    """A matrix that lies beside its copies. `linear` multiplies by one of them; all else is told of the parameter."""

    parameter: ref[Tensor]
    plain: Tensor  # for one row: the matrix itself, or its numbers rounded
    by_row: row.Product | None

    @classmethod
    def of(cls, weight: Tensor, how: Weights, halves: row.Halves) -> Packed:
        """The matrix, and what one row is multiplied by."""
        made = weight.detach().as_subclass(cls)
        made.parameter, made.plain = ref(weight), weight.detach()
        if how == "float16" and made.plain.abs().amax() <= HALF:
            made.plain = halves(made.plain)
        made.by_row = row.of(made.plain)
        return made

    @cached_property
    def copy(self) -> Any:
        """Packed for several rows: by oneDNN, or by fbgemm where its numbers are rounded. Made when first needed."""
        whole = self.plain.float()
        if self.plain.dtype is torch.float16:
            return torch.ops.quantized.linear_prepack_fp16(whole, None)
        return torch.ops.mkldnn._reorder_linear_weight(whole, ROWS)

    @cached_property
    def low(self) -> Tensor:
        """The same in bfloat16, as autocast would make it at every call."""
        made: Tensor = torch.ops.mkldnn._reorder_linear_weight(self.plain.bfloat16(), ROWS)
        return made

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Multiplies by a packed copy where that gives the same, and where nothing is to be learned."""
        if func is linear and not kwargs and type(args[1]) is cls and not torch.is_grad_enabled() and args[0].numel():
            x, weight, bias = (*args, None)[:3]
            if not torch.is_autocast_enabled("cpu"):
                if x.dtype is torch.float32:
                    return product(x, weight, bias)
            elif torch.get_autocast_dtype("cpu") is torch.bfloat16 and weight.plain.dtype is torch.float32:
                return by_onednn(x.bfloat16(), weight.low, None if bias is None else bias.bfloat16())
        with torch._C.DisableTorchFunctionSubclass():
            return func(*(one.parameter() if type(one) is cls else one for one in args), **(kwargs or {}))


def product(x: Tensor, weight: Packed, bias: Tensor | None) -> Tensor:
    """What `linear` gives, by a packed matrix."""
    rows = x.numel() // x.shape[-1]
    if rows == 1 and weight.by_row:
        return weight.by_row(x, bias)
    packed = weight.copy
    if not isinstance(packed, Tensor):  # fbgemm's own
        y: Tensor = torch.ops.quantized.linear_dynamic_fp16.default(x, packed)
        return y if bias is None else y.add_(bias)
    if rows >= FEWEST:
        return by_onednn(x, packed, bias)
    few = x.reshape(rows, -1)
    many = few.expand(FEWEST, -1) if rows == 1 else few.repeat(-(-FEWEST // rows), 1)
    return by_onednn(many, packed, bias)[:rows].view(*x.shape[:-1], -1)


def by_onednn(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """oneDNN's product by a matrix that it has packed."""
    y: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, packed, bias, "none", [], "")
    return y


# Of each parameter, what it held when it was packed, and packed in one way or both. It goes with the parameter.
made: MutableMapping[Tensor, tuple[Any, dict[Weights, Packed]]] = WeakTensorKeyDictionary()


@contextmanager
def packed(parts: Iterable[nn.Module], how: Weights = "float32", *, again: bool = False) -> Iterator[None]:
    """Inside, every large matrix of a float32 model on a CPU multiplies packed: twice as fast for one row.

    And a block of a decoder reads one row in one call, where its parts are known (`whole`).

    With float16 its numbers are rounded to half precision and read twice as fast, and products are still float32's.
    The model's parameters, state and structure stay as they are: a packed matrix stands before its parameter in the
    layer's own dictionary, and is taken away at the end. A compiled model, and a torch without oneDNN, go unpacked;
    where float16 cannot be had it is refused. `again` says that it was packed a moment ago: changes are looked for
    in a sample of its numbers.
    """
    parts = list(parts)
    if how == "float16":
        check(parts)
    packs, halves, blocks = possible(parts), row.Halves(), dict[nn.Module, Whole]()
    standing = [part for part in parts if isinstance(part, nn.Linear) and fits(part)] if packs else []
    try:
        for part in standing:
            vars(part)["weight"] = current(part.weight, how, again, halves)
        blocks |= wholes(part for part in parts if "forward" not in vars(part)) if packs else {}
        for block, forward in blocks.items():
            vars(block)["forward"] = forward
        yield
    finally:
        for block in blocks:
            vars(block).pop("forward", None)
        for part in standing:
            vars(part).pop("weight", None)


def check(parts: Sequence[nn.Module]) -> None:
    """Refuses to round the weights of a model where that cannot be done, or would gain nothing."""
    kinds = {(one.device.type, one.dtype) for part in parts for one in part._parameters.values() if one is not None}
    if kinds != {("cpu", torch.float32)}:
        raise Refusal("weights='float16' packs a model of float32 on a CPU, and this one is not; leave it out")
    if not possible(parts) or "fbgemm" not in torch.backends.quantized.supported_engines:
        raise Refusal("weights='float16' needs a torch with fbgemm and a model that is not compiled; leave it out")


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


def current(weight: Tensor, how: Weights, again: bool, halves: row.Halves) -> Packed:
    """The packed matrix of a parameter, made anew where the parameter has changed."""
    if weight not in made or not contents(weight, SAMPLE if again else 1) <= made[weight][0]:
        made[weight] = contents(weight) | contents(weight, SAMPLE), {}
    ways = made[weight][1]
    if how not in ways:
        ways[how] = Packed.of(weight, how, halves)
    return ways[how]


def contents(weight: Tensor, step: int = 1) -> set[tuple[int, ...]]:
    """What tells that a parameter has changed: torch's own count of changes, its place, and the sum of its bits.

    The sum is needed, for fused optimisers and what goes through `.data` are not counted (torch 2.13). With a step it
    is the sum of a sample, by which whoever learned in between is found out.
    """
    bits = weight.detach().view(torch.int64).flatten()[::step]
    return {(step, weight._version, weight.data_ptr(), int(bits.sum()))}
