"""The newest token of a sequence on a GPU: one kernel writes down its key and value, and looks at all before it."""

from __future__ import annotations

from importlib import import_module, util
from typing import Any

import torch
from torch import Tensor

from heedful.attention.memory import FixedMemory, Memory
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


def serves(q: Tensor, k: Tensor, v: Tensor, sight: Sight, memory: Memory) -> bool:
    """Whether the kernel can say it: one row that sees all that is no padding, and nothing is added to its scores."""
    if kernels is None or not q.is_cuda or type(memory) is not FixedMemory or q.shape[2] != 1:
        return False
    plain = type(sight) is Sight and sight.bias is None and type(sight.mask) is Causal
    alike = k.shape[-1] == v.shape[-1] <= 256 and q.dtype == k.dtype == v.dtype and q.dtype in DTYPES
    small = memory.size <= LONG or q.shape[0] * k.shape[1] >= MANY
    return plain and alike and small and not torch.is_grad_enabled()


def look(owner: object, q: Tensor, k: Tensor, v: Tensor, memory: Memory, scale: float) -> Tensor:
    """What the newest rows (B H 1 D) take of all that is in memory and of themselves, who are in it from here on."""
    assert isinstance(memory, FixedMemory), "who looks asks first whether the kernel serves"
    keys, values = memory.place(owner, k, v)
    y: Tensor = kernels.look(q, k, v, keys, values, memory.rows, memory.places, scale)
    return y
