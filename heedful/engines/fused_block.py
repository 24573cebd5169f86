"""Fused block: a decoder block's row in one call of `gemv.cpp`; torch, operation by operation, took a third more."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import Attention, Join, Memory, MultiHead, Rotary, Sight
from heedful.attention.mechanisms import Softmax
from heedful.blocks import Block, FeedForward, GatedFeedForward
from heedful.blocks.block import Attend
from heedful.blocks.norms import LayerNorm, RMSNorm
from heedful.engines import gemv
from heedful.engines.engine import InferenceEngine, Model, beside, shallow_copy
from heedful.engines.prepacked import possible

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


class Row:
    """One row of a block by the C++. Who looks is told of queries and keys as a mechanism's call would tell him."""

    def __init__(self, block: Any, call: Any) -> None:
        self.call, self.project, self.mechanism = call, block.attention.project, block.attention.mechanism
        self.like = torch.empty(1, self.project.groups, 1, self.project.parts[1] // self.project.groups)
        maps = (self.project.to_qkv, block.attention.join, block.feedforward.up, block.feedforward.down)
        self.numbers = Numbers(
            *(norm(one) for one in (block.norm1, block.norm2)),
            *(matrix(one) for one in maps),
            *(self.project.heads, self.project.groups, self.like.shape[-1]),
            *(type(block.feedforward) is GatedFeedForward, bends(block.feedforward.activation)),
            self.mechanism.scale(self.like),
        )

    def serves(self, x: Tensor, sight: Sight) -> bool:
        """Whether this is one row of float32 that sees all before it, and nothing is learned."""
        alone = x.numel() == self.numbers.join.rows and x.dtype is torch.float32 and x.device.type == "cpu"
        learns = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu")
        return alone and not learns and type(sight) is Sight and sight.is_open

    def __call__(self, x: Tensor, sight: Sight, memory: Memory) -> Tensor:
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


class FusedBlock(Block):
    """A block of which one row is the C++'s, and all else its own."""

    row: Row | None

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None, attend: Attend | None = None) -> Tensor:
        """B T M -> B T M."""
        row = self.row
        if row and not attend and type(memory) is Memory and not self.training and row.serves(x, sight):
            return row(x, sight, memory)
        return super().forward(x, sight, memory, attend)


class FusedBlocks(InferenceEngine):
    """Blocks of a decoder on a CPU whose parts the C++ knows, in float32; their matrices may be packed."""

    def refuses(self, model: nn.Module) -> str:
        if not any(fits(part) for part in model.modules()):
            return "fused_block is for pre-norm blocks of float32 with plain softmax on a CPU; call the model as it is"
        if working() is None or not possible(model):
            return "fused_block needs a C++ compiler and a model that torch has not compiled; call the model as it is"
        return ""

    def runner(self, model: Model) -> Model:
        return beside(model, fuse)

    def refresh(self, parts: Sequence[nn.Module]) -> None:
        for part in parts:
            if isinstance(part, FusedBlock):
                part.row = Row(part, working()) if fits(part, FusedBlock) else None


def fuse(part: nn.Module) -> nn.Module | None:
    """The same block, of which one row is the C++'s, where all its parts are known."""
    if not fits(part):
        return None
    made: Any = shallow_copy(part, FusedBlock)
    made.row = Row(part, working())
    return made


def fits(block: Any, kind: type[Block] = Block) -> bool:
    """Whether a block is of parts that the C++ knows, in float32 on a CPU, and nobody but who looks listens to them."""
    if type(block) is not kind or type(block.attention) is not Attention:
        return False
    attention, norms = block.attention, (block.norm1, block.norm2)
    feedforward: Any = block.feedforward
    project, mechanism, join = attention.project, attention.mechanism, attention.join
    if type(project) is not MultiHead or project.normed or type(join) is not Join:
        return False
    if type(mechanism).forward is not Softmax.forward:
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
    ready = all(type(one) in (nn.Linear, Join) and one.in_features % gemv.STEP == 0 and readable(one) for one in maps)
    lie = all(one.dtype is torch.float32 and one.device.type == "cpu" and one.is_contiguous() for one in lying)
    turns = project.position is None or type(project.position).__call__ is Rotary.__call__
    alike = project.parts[1] == project.parts[2] and project.parts[1] // project.groups % gemv.STEP == 0
    gated = type(feedforward) is GatedFeedForward
    return ready and lie and turns and alike and chain_fits(project.parts, gated, norms, maps)


def readable(part: Any) -> bool:
    """Whether the C++ can read a matrix as it is packed: not every processor reads half precision."""
    held = vars(part).get("weight")
    return held is None or held.by_row is not None


def chain_fits(parts: list[int], gated: bool, norms: Iterable[Any], maps: Iterable[Any]) -> bool:
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
    """The compiled library, or None where there is none."""
    call = getattr(gemv.load_library(), "by_block", None)
    if call is not None:
        call.argtypes = (*[POINTER] * 5, INTEGER, INTEGER, POINTER, POINTER, ctypes.c_int)
        call.restype = None
    return call
