"""The newest token of a sequence on a GPU: one kernel turns its queries and key, writes it down, and looks back."""

from __future__ import annotations

from importlib import import_module, util
from typing import Any

import torch
from torch import Tensor

from heedful.attention.mechanisms import Mechanism, Softmax
from heedful.attention.memory import FixedMemory, Memory
from heedful.attention.projections import MultiHead, split
from heedful.attention.seeing import Causal
from heedful.attention.sight import Sight

LONG, MANY = 1024, 128  # columns up to which one program for each group will do; and programs that fill a GPU anyway
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
kernels: Any = None  # heedful.attention.kernels, where it is there


def prepare() -> None:
    """Makes the kernel known, where Triton is there to compile it: before a step is captured, or compiled."""
    global kernels
    if kernels is None and util.find_spec("triton"):
        kernels = import_module("heedful.attention.kernels")


def serves(project: MultiHead, mechanism: Mechanism, x: Tensor, sight: Sight, memory: Memory) -> bool:
    """Whether the kernel can say it: one row that sees all that is no padding, and nothing is added to its scores."""
    if kernels is None or not x.is_cuda or type(memory) is not FixedMemory or x.shape[1] != 1:
        return False
    if type(project) is not MultiHead or x.dtype not in DTYPES or torch.is_autocast_enabled("cuda"):
        return False
    if not isinstance(mechanism, Softmax) or type(mechanism).forward is not Softmax.forward:
        return False  # or a kind that makes its sum in another way
    plain = type(sight) is Sight and sight.bias is None and type(sight.mask) is Causal
    alike = project.parts[1] == project.parts[2] <= 256 * project.groups
    small = memory.size <= LONG or len(x) * project.groups >= MANY
    return plain and alike and small and not torch.is_grad_enabled()


def look(project: MultiHead, mechanism: Mechanism, x: Tensor, sight: Sight, memory: Memory) -> Tensor:
    """What the newest rows (B 1 M) take of all that is in memory and of themselves, who are in it from here on."""
    assert isinstance(mechanism, Softmax) and isinstance(memory, FixedMemory), "who looks asks first"
    row, heads = project.beside(x), project.heads
    q, k, v = split(row, heads + 2 * project.groups).split_with_sizes([heads, project.groups, project.groups], 1)
    turns = None if project.position is None else project.position.kept(sight.rows, sight, q.shape[-1], row.dtype)
    keys, values = memory.place(mechanism, k, v)
    scale = mechanism.scale(q)
    y: Tensor = kernels.look(row, *(turns or (None, None)), keys, values, memory.rows, memory.places, heads, scale)
    return split(y, heads)
