"""Attention, once: project, mechanism and join, the sight that all layers share, and the memory of a decoder."""

from heedful.attention.attention import Attention, CrossAttention
from heedful.attention.biases import ALiBi, Buckets, ClassTable, Table
from heedful.attention.context import Context
from heedful.attention.gated import GatedAttention
from heedful.attention.grid import GridSight, Rotary2D
from heedful.attention.heads import Collaborative, Routed
from heedful.attention.localities import AdaptiveSpan, GaussianBias, TaskBlocks
from heedful.attention.masks import Blocks, Documents, Given, Padding, Prefix, Window
from heedful.attention.memory import FixedMemory, Memory
from heedful.attention.placed import TableAttention
from heedful.attention.positions import Rotary, RotaryByParts, standing
from heedful.attention.projections import Across, Join, MultiHead, SharedQK, UnbiasedKeys
from heedful.attention.seeing import Bias, Causal, Everything, Mask
from heedful.attention.sight import Sight
from heedful.attention.sparse import (
    Axial,
    BigBird,
    Every,
    Fixed,
    Local,
    Local2D,
    Longformer,
    MultiScale,
    Strided,
    Turns,
)
from heedful.attention.windows import WindowAttention

__all__ = [
    "ALiBi",
    "Across",
    "AdaptiveSpan",
    "Attention",
    "Axial",
    "Bias",
    "BigBird",
    "Blocks",
    "Buckets",
    "Causal",
    "ClassTable",
    "Collaborative",
    "Context",
    "CrossAttention",
    "Documents",
    "Every",
    "Everything",
    "Fixed",
    "FixedMemory",
    "GatedAttention",
    "GaussianBias",
    "Given",
    "GridSight",
    "Join",
    "Local",
    "Local2D",
    "Longformer",
    "Mask",
    "Memory",
    "MultiHead",
    "MultiScale",
    "Padding",
    "Prefix",
    "Rotary",
    "Rotary2D",
    "RotaryByParts",
    "Routed",
    "SharedQK",
    "Sight",
    "Strided",
    "Table",
    "TableAttention",
    "TaskBlocks",
    "Turns",
    "UnbiasedKeys",
    "Window",
    "WindowAttention",
    "standing",
]
