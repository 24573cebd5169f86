"""A whole block's row in one call, by the C++ of `row.cpp`: calling torch operation by operation took a third more."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import Attention, Join, Memory, MultiHead, Rotary, Sight
from heedful.attention.mechanisms import Softmax
from heedful.attention.newest import plain
from heedful.blocks import Block, FeedForward, GatedFeedForward
from heedful.blocks.norms import LayerNorm, RMSNorm
from heedful.decoding import row

INTEGER, POINTER, FLOAT = ctypes.c_int64, ctypes.c_void_p, ctypes.c_double
RELU, GELU_TANH, SILU = range(3)


class Matrix(ctypes.Structure):
    """A matrix as the C++ knows it."""

    _fields_ = (("numbers", POINTER), ("bias", POINTER), ("rows", INTEGER), ("columns", INTEGER), ("halves", INTEGER))


class Norm(ctypes.Structure):
    """A norm as the C++ knows it."""

    _fields_ = (("weight", POINTER), ("bias", POINTER), ("centred", INTEGER), ("eps", FLOAT))


class Numbers(ctypes.Structure):
    """A block as the C++ knows it."""

    _fields_ = (
        *((name, Norm) for name in ("norm1", "norm2")),
        *((name, Matrix) for name in ("qkv", "join", "up", "down")),
        *((name, INTEGER) for name in ("heads", "groups", "width", "gated", "activation")),
        ("scale", FLOAT),
    )


class Whole:
    """What stands before a block's forward while its model answers: one row of float32 is the C++'s.

    All else is the block's own. Who looks is told of queries and keys as a mechanism's call would tell him.
    """

    def __init__(self, block: Any, call: Any) -> None:
        self.block, self.call = block, call
        self.project: MultiHead = block.attention.project
        self.mechanism: Softmax = block.attention.mechanism
        self.like = torch.empty(1, self.project.groups, 1, self.project.parts[1] // self.project.groups)
        maps = (self.project.to_qkv, block.attention.join, block.feedforward.up, block.feedforward.down)
        self.numbers = Numbers(
            *(norm(one) for one in (block.norm1, block.norm2)),
            *(matrix(one) for one in maps),
            *(self.project.heads, self.project.groups, self.like.shape[-1]),
            *(type(block.feedforward) is GatedFeedForward, bends(block.feedforward.activation)),
            self.mechanism.scale(self.like),
        )

    def __call__(self, x: Tensor, sight: Sight, memory: Memory | None = None) -> Tensor:
        if type(memory) is not Memory or not self.serves(x, sight):
            return Block.forward(self.block, x, sight, memory)
        keys, values = memory.place(self.mechanism, self.like, self.like)
        y, q = x.clone(memory_format=torch.contiguous_format), x.new_empty(self.numbers.qkv.rows)
        before, heads = memory.start, self.project.heads
        turns = None if self.project.position is None else self.project.position.kept(sight.rows, sight, self.like)
        at = [one.data_ptr() for one in (y, q, keys, values)]
        beside = map(address, turns or (None, None))
        self.call(ctypes.byref(self.numbers), *at, keys.stride(1), before, *beside, torch.get_num_threads())
        for hook in self.mechanism._forward_pre_hooks.values():
            asked = q[: self.project.parts[0]].view(1, heads, 1, -1)
            hook(self.mechanism, (asked, keys[:, :, : before + 1], values[:, :, : before + 1], sight))
        return y

    def serves(self, x: Tensor, sight: Sight) -> bool:
        """Whether this is one row of float32 that sees all before it, and nothing is learned."""
        alone = x.numel() == self.numbers.join.rows and x.dtype is torch.float32 and x.device.type == "cpu"
        learns = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or self.block.training
        return alone and not learns and type(sight) is Sight and sight.is_open


def fits(block: Any) -> bool:
    """Whether a block is of parts that the C++ knows, in float32 on a CPU, and nobody but who looks listens to them."""
    if type(block) is not Block or type(block.attention) is not Attention:
        return False
    attention, norms = block.attention, (block.norm1, block.norm2)
    feedforward: Any = block.feedforward
    project, mechanism, join = attention.project, attention.mechanism, attention.join
    if type(project) is not MultiHead or project.normed or type(join) is not Join or not plain(mechanism):
        return False
    if type(feedforward) not in (FeedForward, GatedFeedForward) or bends(feedforward.activation) < 0:
        return False
    if any(type(one) not in (LayerNorm, nn.LayerNorm, RMSNorm) for one in norms):
        return False
    maps: tuple[Any, ...] = project.to_qkv, join, feedforward.up, feedforward.down
    around = block, attention, project, feedforward, feedforward.activation, feedforward.drop, block.drop, *norms, *maps
    if any(one._forward_hooks or one._forward_pre_hooks for one in around) or mechanism._forward_hooks:
        return False
    lying = [one for part in (*norms, *maps) for one in part._parameters.values() if one is not None]
    ready = all(type(one) in (nn.Linear, Join) and one.in_features % row.STEP == 0 and readable(one) for one in maps)
    lie = all(one.dtype is torch.float32 and one.device.type == "cpu" and one.is_contiguous() for one in lying)
    turns = project.position is None or type(project.position).__call__ is Rotary.__call__
    alike = project.parts[1] == project.parts[2] and project.parts[1] // project.groups % row.STEP == 0
    gated = type(feedforward) is GatedFeedForward
    return ready and lie and turns and alike and chained(project.parts, gated, norms, maps)


def readable(part: Any) -> bool:
    """Whether the C++ can read a matrix as it is packed: not every processor reads half precision."""
    held = vars(part).get("weight")
    return held is None or held.by_row is not None


def chained(parts: list[int], gated: bool, norms: Iterable[Any], maps: Iterable[Any]) -> bool:
    """Whether each part takes what the one before gives: what lies beyond it would be read."""
    qkv, join, up, down = maps
    gives = qkv.out_features, join.in_features, up.out_features
    wide = {(one,) for one in (qkv.in_features, join.out_features, up.in_features, down.out_features)}
    takes = sum(parts), parts[0], down.in_features * (1 + gated)
    return gives == takes and wide | {one.normalized_shape for one in norms} == {(join.out_features,)}


def bends(activation: object) -> int:
    """How the C++ knows an activation; -1 where it does not."""
    kinds: dict[type, int] = {nn.ReLU: RELU, nn.SiLU: SILU}
    return GELU_TANH if getattr(activation, "approximate", None) == "tanh" else kinds.get(type(activation), -1)


def norm(part: Any) -> Norm:
    """A norm for the C++."""
    eps = torch.finfo(torch.float32).eps if part.eps is None else part.eps
    return Norm(address(part.weight), address(getattr(part, "bias", None)), not isinstance(part, RMSNorm), eps)


def matrix(part: Any) -> Matrix:
    """A matrix for the C++, packed or as it lies."""
    held = vars(part).get("weight")
    numbers = part._parameters["weight"] if held is None else held.plain
    return Matrix(address(numbers), address(part.bias), *numbers.shape, numbers.dtype is torch.float16)


def address(tensor: Tensor | None) -> int | None:
    """Where a tensor lies."""
    return None if tensor is None else tensor.data_ptr()


@cache
def working() -> Any:
    """What was compiled, where it is there; None where it is not."""
    call = getattr(row.compiled(), "by_block", None)
    if call is not None:
        call.argtypes = (*[POINTER] * 5, INTEGER, INTEGER, POINTER, POINTER, ctypes.c_int)
        call.restype = None
    return call


def wholes(parts: Iterable[nn.Module]) -> dict[nn.Module, Whole]:
    """What may stand before the forwards of blocks, once their matrices are packed."""
    call = working()
    return {} if call is None else {part: Whole(part, call) for part in parts if fits(part)}
