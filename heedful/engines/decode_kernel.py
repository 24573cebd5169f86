"""Decode kernel: the newest token on a GPU; one kernel turns its queries and key, writes it down, and looks back."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module, util
from typing import Any, cast

import torch
from torch import Tensor, nn

from heedful.attention import Attention
from heedful.attention.kv_cache import FixedMemory, Memory
from heedful.attention.mask_and_bias import Causal
from heedful.attention.mechanisms import Mechanism, Softmax
from heedful.attention.projections import MultiHead, split
from heedful.attention.sight import Sight
from heedful.engines.engine import InferenceEngine, Model, beside, shallow_copy

LONG, MANY = 1024, 128  # columns up to which one program for each group will do; and programs that fill a GPU anyway
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
kernels: Any = None  # heedful.engines.decode_kernel_triton, from the first runner on


class DecodeAttention(Attention):
    """Attention whose newest row is the kernel's, where that can say it, and all else its own."""

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None) -> Tensor:  # B T M -> B T M
        if memory is not None and serves(self.project, x, sight, memory):
            return self.join(look(self.project, self.mechanism, x, memory))
        return super().forward(x, sight, memory)


class DecodeKernel(InferenceEngine):
    """The kernel for every attention of a decoder on a GPU, where Triton is there to compile it."""

    def refuses(self, model: nn.Module) -> str:
        if any(one.device.type != "cuda" for one in model.parameters()):
            return "decode_kernel is a GPU's, and the model lies on a CPU; call the model as it is"
        if not util.find_spec("triton"):
            return "decode_kernel is compiled by Triton, which is not there; install it, or call the model as it is"
        if not any(fits(part) for part in model.modules()):
            return "decode_kernel is for plain softmax with keys as wide as values; call the model as it is"
        return ""

    def runner(self, model: Model) -> Model:
        global kernels
        kernels = import_module("heedful.engines.decode_kernel_triton")
        return beside(model, lambda part: shallow_copy(part, DecodeAttention) if fits(part) else None)

    def refresh(self, parts: Sequence[nn.Module]) -> None:
        return  # it keeps nothing of the parameters


def fits(part: Any) -> bool:
    """Whether an attention is of parts that the kernel knows."""
    if type(part) is not Attention or type(part.project) is not MultiHead:
        return False
    project = part.project
    return is_plain_softmax(part.mechanism) and project.parts[1] == project.parts[2] <= 256 * project.groups


def prepare(model: nn.Module, memory: FixedMemory) -> None:
    """Makes all turns that the kernel needs: before a step is captured."""
    for part in model.modules():
        if isinstance(part, DecodeAttention):
            turns(part.project, memory, part.project.to_qkv.weight)


def turns(project: MultiHead, memory: FixedMemory, like: Tensor) -> Tensor | None:
    """Cosine and sine of every place in a memory, by which a head is turned there: S 2 D."""
    if project.position is None:
        return None
    width = project.parts[1] // project.groups
    key = (*project.position.kind, width, like.dtype)
    if key not in memory.turns:
        places = torch.arange(memory.size, device=like.device)[None]
        memory.turns[key] = (
            torch.cat(project.position.turns(places, width, like.dtype), 1)[0].transpose(0, 1).contiguous()
        )
    return memory.turns[key]


def serves(project: MultiHead, x: Tensor, sight: Sight, memory: Memory) -> bool:
    """Whether the kernel can say it: one row that sees all that is no padding, and nothing is added to its scores."""
    if not x.is_cuda or type(memory) is not FixedMemory or x.shape[1] != 1:
        return False
    if x.dtype not in DTYPES or torch.is_autocast_enabled("cuda"):
        return False
    causal = type(sight) is Sight and sight.bias is None and type(sight.mask) is Causal
    small = memory.size <= LONG or len(x) * project.groups >= MANY
    return causal and small and not torch.is_grad_enabled()


def is_plain_softmax(mechanism: Mechanism) -> bool:
    """Whether its weights are a softmax of scaled dot products, and its sum is made as they say."""
    return type(mechanism).forward is Softmax.forward


def look(project: MultiHead, mechanism: Mechanism, x: Tensor, memory: Memory) -> Tensor:
    """What the newest rows (B 1 M) take of all that is in memory and of themselves, who are in it from here on."""
    assert isinstance(memory, FixedMemory), "who looks asks first"
    row, heads = project.beside(x), project.heads
    q, k, v = split(row, heads + 2 * project.groups).split_with_sizes([heads, project.groups, project.groups], 1)
    keys, values = memory.place(mechanism, k, v)
    turned, scale = turns(project, memory, row), cast(Softmax, mechanism).scale(q)
    y: Tensor = kernels.look(row, turned, keys, values, memory.rows, memory.places, heads, scale)
    return split(y, heads)
