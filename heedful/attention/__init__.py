"""Attention, once: project, mechanism and join, the sight that all layers share, and the memory of a decoder."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.attention.attention import Attention, CrossAttention
    from heedful.attention.biases.adaptive_span import AdaptiveSpan
    from heedful.attention.biases.alibi import ALiBi
    from heedful.attention.biases.beit_table import ClassTable
    from heedful.attention.biases.camtl import TaskBlocks
    from heedful.attention.biases.gaussian import GaussianBias
    from heedful.attention.biases.swin_table import Table
    from heedful.attention.biases.t5_buckets import Buckets
    from heedful.attention.context import Context
    from heedful.attention.grid.gated_positional import GatedAttention
    from heedful.attention.grid.grid_sight import GridSight, Rotary2D
    from heedful.attention.grid.relative_position_attention import TableAttention
    from heedful.attention.grid.windows import WindowAttention
    from heedful.attention.heads.collaborative import Collaborative
    from heedful.attention.heads.routed import Routed
    from heedful.attention.kv_cache import FixedMemory, Memory
    from heedful.attention.mask_and_bias import Bias, Causal, Everything, Mask
    from heedful.attention.masks.axial import Axial
    from heedful.attention.masks.bigbird import BigBird
    from heedful.attention.masks.blockwise import Blocks
    from heedful.attention.masks.image import Local, Local2D
    from heedful.attention.masks.longformer import Longformer
    from heedful.attention.masks.multi_scale import MultiScale
    from heedful.attention.masks.parts import Every, Turns
    from heedful.attention.masks.sparse import Fixed, Strided, Window
    from heedful.attention.plain_masks import Documents, Given, Padding, Prefix
    from heedful.attention.projections import Across, Join, MultiHead, SharedQK, UnbiasedKeys
    from heedful.attention.rotary import Rotary, RotaryByParts, standing
    from heedful.attention.sight import Sight

__getattr__ = lazily(__name__)
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
