"""Prepacked weights: matrices as the processor likes to read them, packed once for a model on a CPU."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar
from weakref import ref

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.weak import WeakTensorKeyDictionary

from heedful.engines import gemv
from heedful.engines.engine import InferenceEngine, Model, Weights, beside, shallow_copy

WORTHWHILE = 2**17  # numbers in a matrix; calling oneDNN costs 10 us more, and the matrix must be read to gain them
ROWS = 32  # packed for this many rows at a time, a matrix serves few rows and hundreds; packed for one, one alone
FEWEST = 4  # rows; oneDNN reads a matrix faster for four of them than for one (3.12)
HALF = torch.finfo(torch.float16).max  # a matrix with a number beyond it is not rounded
SAMPLE = 1009  # every so many numbers of a matrix are looked at when it was looked at whole a token ago


class Packed(Tensor):
    """A matrix that lies beside its copies. `linear` multiplies by one of them; all else is told of the parameter."""

    parameter: ref[Tensor]
    how: Weights
    plain: Tensor  # for one row: the matrix itself, or its numbers rounded
    by_row: gemv.Product | None

    @classmethod
    def of(cls, weight: Tensor, how: Weights, halves: gemv.Halves) -> Packed:
        """The matrix, and what one row is multiplied by."""
        made = weight.detach().as_subclass(cls)
        made.parameter, made.how, made.plain = ref(weight), how, weight.detach()
        if how == "float16" and made.plain.abs().amax() <= HALF:
            made.plain = halves(made.plain)
        made.by_row = gemv.of(made.plain)
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
    """The result of `linear`, by a packed matrix."""
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


class Prepacked(InferenceEngine):
    """Every large matrix of a float32 model on a CPU multiplies packed: twice as fast for one row.

    A packed matrix stands before its parameter in a copy of the layer. A compiled model, and a torch without oneDNN,
    go unpacked.
    """

    how: ClassVar[Weights] = "float32"

    def refuses(self, model: nn.Module) -> str:
        if not any(isinstance(part, nn.Linear) and fits(part) for part in model.modules()):
            return f"prepacked is for float32 matrices of {WORTHWHILE:,} numbers on a CPU; call the model as it is"
        if not possible(model):
            return "prepacked needs a torch with oneDNN and a model that is not compiled; call the model as it is"
        return ""

    def runner(self, model: Model) -> Model:
        return beside(model, partial(pack_layer, how=self.how, halves=gemv.Halves()))

    def refresh(self, parts: Sequence[nn.Module]) -> None:
        """Packs matrices that a sample of their numbers tells to have changed."""
        for part in parts:
            if isinstance(before := vars(part).get("weight"), Packed):
                del vars(part)["weight"]
                if fits(part):
                    vars(part)["weight"] = current(part.weight, before.how, gemv.Halves(), SAMPLE)


class Halved(Prepacked):
    """The same with numbers rounded to half precision, which are read twice as fast; products are still float32's."""

    how = "float16"

    def refuses(self, model: nn.Module) -> str:
        weights = [one for part in model.modules() for one in part._parameters.values() if one is not None]
        if {(one.device.type, one.dtype) for one in weights} != {("cpu", torch.float32)}:
            return "weights='float16' packs a model of float32 on a CPU, and this one is not; leave it out"
        if not possible(model) or "fbgemm" not in torch.backends.quantized.supported_engines:
            return "weights='float16' needs a torch with fbgemm and a model that is not compiled; leave it out"
        return ""


def pack_layer(part: nn.Module, how: Weights, halves: gemv.Halves) -> nn.Module | None:
    """A copy of a layer that multiplies packed, where that would gain something."""
    if not isinstance(part, nn.Linear) or not fits(part):
        return None
    made = shallow_copy(part)
    vars(made)["weight"] = current(part.weight, how, halves)
    return made


def possible(model: nn.Module) -> bool:
    """Whether torch can pack, and no part was compiled: what was traced must not meet another kind of weight."""
    compiled = any("_orig_mod" in part._modules or part._compiled_call_impl is not None for part in model.modules())
    names = "_reorder_linear_weight", "_linear_pointwise"
    packs = all(getattr(torch.ops.mkldnn, name, None) is not None for name in names)
    return packs and torch.backends.mkldnn.is_available() and not compiled


def fits(part: nn.Module) -> bool:
    """Whether a layer has a plain matrix, in float32 on a CPU, that is large enough to gain by it."""
    weight = part._parameters.get("weight")
    if weight is None or "weight" in vars(part) or type(weight) is not nn.Parameter or weight.is_inference():
        return False
    plain = weight.device.type == "cpu" and weight.dtype is torch.float32 and weight.is_contiguous()
    return plain and weight.numel() >= WORTHWHILE and weight.shape[1] % 2 == 0


def current(weight: Any, how: Weights, halves: gemv.Halves, step: int = 1) -> Packed:
    """The packed matrix of a parameter, made anew where every so many of its numbers tell that it has changed."""
    if weight not in made or not contents(weight, step) <= made[weight][0]:
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
