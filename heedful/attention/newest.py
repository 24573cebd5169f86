"""The newest token of a sequence on a GPU: one kernel turns its queries and key, writes it down, and looks back."""

from __future__ import annotations

from importlib import import_module, util
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention.kv_cache import FixedMemory, Memory
from heedful.attention.mask_and_bias import Causal
from heedful.attention.mechanisms import Mechanism, Softmax
from heedful.attention.projections import MultiHead, split
from heedful.attention.sight import Sight

LONG, MANY = 1024, 128  # columns up to which one program for each group will do; and programs that fill a GPU anyway
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
kernels: Any = None  # heedful.attention.kernels, where it is there


def prepare(model: nn.Module, memory: FixedMemory) -> None:
    """Makes the kernel known, where Triton is there to compile it, and all turns: before a step is captured."""
    global kernels
    if kernels is None and util.find_spec("triton"):
        kernels = import_module("heedful.attention.kernels")
    for part in model.modules():
        if kernels is not None and type(part) is MultiHead:
            turns(part, memory, part.to_qkv.weight)


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


def serves(project: MultiHead, mechanism: Mechanism, x: Tensor, sight: Sight, memory: Memory) -> bool:
    """Whether the kernel can say it: one row that sees all that is no padding, and nothing is added to its scores."""
    if kernels is None or not x.is_cuda or type(memory) is not FixedMemory or x.shape[1] != 1:
        return False
    if type(project) is not MultiHead or x.dtype not in DTYPES or torch.is_autocast_enabled("cuda"):
        return False
    if not plain(mechanism):
        return False
    causal = type(sight) is Sight and sight.bias is None and type(sight.mask) is Causal
    alike = project.parts[1] == project.parts[2] <= 256 * project.groups
    small = memory.size <= LONG or len(x) * project.groups >= MANY
    return causal and alike and small and not torch.is_grad_enabled()


def plain(mechanism: Mechanism) -> bool:
    """Whether its weights are a softmax of scaled dot products, and its sum is made as they say."""
    return isinstance(mechanism, Softmax) and type(mechanism).forward is Softmax.forward


def look(project: MultiHead, mechanism: Mechanism, x: Tensor, memory: Memory) -> Tensor:
    """What the newest rows (B 1 M) take of all that is in memory and of themselves, who are in it from here on."""
    assert isinstance(mechanism, Softmax) and isinstance(memory, FixedMemory), "who looks asks first"
    row, heads = project.beside(x), project.heads
    q, k, v = split(row, heads + 2 * project.groups).split_with_sizes([heads, project.groups, project.groups], 1)
    keys, values = memory.place(mechanism, k, v)
    turned, scale = turns(project, memory, row), mechanism.scale(q)
    y: Tensor = kernels.look(row, turned, keys, values, memory.rows, memory.places, heads, scale)
    return split(y, heads)
