"""Attention, once: project, mechanism and join, the sight that all layers share, and the memory of a decoder."""

from heedful.attention.attention import Attention, CrossAttention
from heedful.attention.biases import ALiBi, Buckets, Table
from heedful.attention.context import Context
from heedful.attention.grid import GridSight, Rotary2D
from heedful.attention.masks import Blocks, Documents, Given, Padding, Prefix, Window
from heedful.attention.memory import FixedMemory, Memory
from heedful.attention.positions import Rotary, RotaryByParts, standing
from heedful.attention.projections import Across, Join, MultiHead
from heedful.attention.sight import Bias, Causal, Everything, Mask, Sight
from heedful.attention.windows import WindowAttention

__all__ = [
    "ALiBi",
    "Across",
    "Attention",
    "Bias",
    "Blocks",
    "Buckets",
    "Causal",
    "Context",
    "CrossAttention",
    "Documents",
    "Everything",
    "FixedMemory",
    "Given",
    "GridSight",
    "Join",
    "Mask",
    "Memory",
    "MultiHead",
    "Padding",
    "Prefix",
    "Rotary",
    "Rotary2D",
    "RotaryByParts",
    "Sight",
    "Table",
    "Window",
    "WindowAttention",
    "standing",
]
