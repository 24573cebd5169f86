"""Folders of timm: read alone. What one computes follows from the name of its architecture and from its tensors.

An architecture that is not named here is refused: many have the tensors of a plain one and compute something else
(blurred strides, another activation), which no shape tells.
"""

from __future__ import annotations

import re

from heedful.formats.foreign_config import Config
from heedful.formats.timm.hierarchical import TimmResNet, TimmSwin
from heedful.formats.timm.timm_folder import Timm
from heedful.formats.timm.vision_transformers import TimmBeit, TimmConvit, TimmVit

LAYOUTS: tuple[Timm, ...] = (TimmVit(), TimmBeit(), TimmConvit(), TimmSwin(), TimmResNet())
HYBRID = r"vit_\w+?_(r\d*|resnet\d+d)_.*"


def layout_of(config: Config) -> Timm:
    """The layout of an architecture of timm's."""
    name = config.word("architecture")
    for layout in LAYOUTS:
        if layout.reads(name):
            return layout
    # None of timm's ResNets before a transformer computes what the stem `resnet` does: they have bottlenecks, and
    # standardised kernels with group norms before them, or three kernels at first and means on shortcuts.
    if re.fullmatch(HYBRID, name):
        why = "a hybrid, whose ResNet before the patches is no stem that is known here; take one of plain patches"
        raise config.refusal("architecture", why)
    known = ", ".join(layout.like for layout in LAYOUTS)
    raise config.refusal("architecture", f"no model here computes what it does; take one like {known}")
