"""Folders of timm, and torchvision's ResNets under the same names: read alone, sizes told by the tensors themselves.

timm's config.json names an architecture and no model_type; what it computes follows from that name and the shapes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from heedful.checkpoints.names.config import Config
from heedful.checkpoints.names.layout import Layout
from heedful.checkpoints.names.rules import Row, Rule, Same
from heedful.checkpoints.names.vit import BLOCK, Kernel, Tokens

PARTS = {  # of a block
    "attention.project.to_qkv": "attn.qkv",
    "attention.join": "attn.proj",
    "feedforward.up": "mlp.fc1",
    "feedforward.down": "mlp.fc2",
    "norm1": "norm1",
    "norm2": "norm2",
}
MERGING = {"norm.weight": "norm.weight", "norm.bias": "norm.bias", "matrix.weight": "reduction.weight"}
HEAD = 64  # the width of a head in timm's vision transformers, but for the huge ones
HUGE = {1280: 16}  # heads by width


class Timm(Layout):
    """What layouts of timm share: a config that says little, and tensors that tell the rest."""

    begins: ClassVar[tuple[str, ...]]  # the names of architectures
    telling: ClassVar[str]  # a tensor whose shape the sizes follow from

    def suits(self, spec: Any) -> bool:
        return False  # nothing is written in it

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.take("architecture")
        config.harmless("num_features", "num_classes", "global_pool")
        told = config.take("pretrained_cfg", None) or {}
        if self.telling not in there:
            raise config.refusal("architecture", f"its files should hold {self.telling!r}; copy the folder again")
        size = told.get("input_size") or [3, 224, 224]
        scale = {"mean": told.get("mean"), "deviation": told.get("std")}
        scale = {key: list(value) for key, value in scale.items() if isinstance(value, list | tuple)}
        return self.sizes(there, size) | (scale if len(scale) == 2 else {})

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        """Numbers and words of our spec, of images of such a size."""
        raise NotImplementedError


class TimmVit(Timm):
    """Vision transformers and DeiTs of timm."""

    kind, family, begins, telling = "timm vit", "vit", ("vit_", "deit_"), "patch_embed.proj.weight"

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        # None of timm's ResNets before a transformer computes what the stem `resnet` does: they have bottlenecks, and
        # standardised kernels with group norms before them, or three kernels at first and means on shortcuts.
        if any(name.startswith("patch_embed.backbone.") for name in there):
            why = "a hybrid, whose ResNet before the patches is no stem that is known here; take one of plain patches"
            raise config.refusal("architecture", why)
        return super().spec(config, there)

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        width, channels, patch, _ = there[self.telling].shape
        taught = "head_dist.weight" in there
        first = 1 + int("dist_token" in there)
        side = patch * math.isqrt(there["pos_embed"].shape[1] - first)
        return {
            "width": width,
            "heads": HUGE.get(width, max(1, width // HEAD)),
            "depth": depth(there, r"blocks\.(\d+)\."),
            "hidden": there["blocks.0.mlp.fc1.weight"].shape[0],
            "patch": patch,
            "channels": channels,
            "high": side,
            "wide": side,
            "classes": there["head.weight"].shape[0] if "head.weight" in there else None,
            "leading": first,
            "distilled": taught,
            "norm": "layer(eps=1e-06)",
            "project_bias": "blocks.0.attn.qkv.bias" in there,
        }

    def table(self, spec: Any) -> Sequence[Rule]:
        tokens = ("cls_token", "dist_token")[: spec.first]
        return [
            Tokens("inputs.leading", dict.fromkeys(tokens, 1)),
            Row("inputs.position.table", "pos_embed"),
            Kernel("inputs.stem.matrix.weight", "patch_embed.proj.weight", spec.channels, spec.patch),
            Same("inputs.stem.matrix.bias", "patch_embed.proj.bias"),
            *(Same(f"{BLOCK}.{ours}.{{kind}}", f"blocks.{{n}}.{theirs}.{{kind}}") for ours, theirs in PARTS.items()),
            Same("encoder.norm.{kind}", "norm.{kind}"),
            Same("outputs.{kind}", "head.{kind}"),
            Same("distilled.{kind}", "head_dist.{kind}"),
        ]


class TimmSwin(Timm):
    """Swins of timm."""

    kind, family, begins, telling = "timm swin", "swin", ("swin_",), "patch_embed.proj.weight"
    ignored = (r".*\.(attn_mask|relative_position_index)",)

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        width, channels, patch, _ = there[self.telling].shape
        ways, heads = there["layers.0.blocks.0.attn.relative_position_bias_table"].shape
        return {
            "width": width,
            "heads": heads,
            "depths": [
                depth(there, rf"layers\.{at}\.blocks\.(\d+)\.") for at in range(depth(there, r"layers\.(\d+)\."))
            ],
            "window": (math.isqrt(ways) + 1) // 2,
            "spread": there["layers.0.blocks.0.mlp.fc1.weight"].shape[0] / width,
            "patch": patch,
            "channels": channels,
            "high": size[1],
            "wide": size[2],
            "classes": there["head.fc.weight"].shape[0] if "head.fc.weight" in there else None,
            "norm": "layer(eps=1e-05)",
        }

    def table(self, spec: Any) -> Sequence[Rule]:
        ours, theirs = "stages.{stage}.blocks.{n}", "layers.{stage}.blocks.{n}"
        return [
            Kernel("stem.matrix.weight", "patch_embed.proj.weight", spec.channels, spec.patch),
            Same("stem.matrix.bias", "patch_embed.proj.bias"),
            Same("first.{kind}", "patch_embed.norm.{kind}"),
            *(Same(f"{ours}.{one}.{{kind}}", f"{theirs}.{two}.{{kind}}") for one, two in PARTS.items()),
            Same(f"{ours}.attention.bias.table", f"{theirs}.attn.relative_position_bias_table"),
            *(
                Same(f"merges.{at}.{one}", f"layers.{at + 1}.downsample.{two}")
                for at in range(len(spec.depths) - 1)
                for one, two in MERGING.items()
            ),
            Same("norm.{kind}", "norm.{kind}"),
            Same("outputs.{kind}", "head.fc.{kind}"),
        ]


class TimmResNet(Timm):
    """ResNets of timm and torchvision, with the large stem and the strides of today."""

    kind, family, begins, telling = "timm resnet", "resnet", ("resnet",), "conv1.weight"
    ignored = (r".*\.num_batches_tracked",)

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        width, channels, side, _ = there[self.telling].shape
        return {
            "width": width,
            "depths": [depth(there, rf"layer{at}\.(\d+)\.") for at in range(1, 1 + depth(there, r"layer(\d+)\.") - 1)],
            "block": "bottleneck" if "layer1.0.conv3.weight" in there else "basic",
            "stem": "large" if side == 7 else "small",
            "channels": channels,
            "high": size[1],
            "wide": size[2],
            "classes": there["fc.weight"].shape[0] if "fc.weight" in there else None,
        }

    def table(self, spec: Any) -> Sequence[Rule]:
        rules: list[Rule] = [Same("stem.kernel.weight", "conv1.weight"), Same("stem.norm.{kind}", "bn1.{kind}")]
        for at in range(len(spec.depths)):
            ours, theirs = f"stages.{at}.{{n}}", f"layer{at + 1}.{{n}}"
            for step in range(3 if spec.block == "bottleneck" else 2):
                rules.append(Same(f"{ours}.steps.{step}.kernel.weight", f"{theirs}.conv{step + 1}.weight"))
                rules.append(Same(f"{ours}.steps.{step}.norm.{{kind}}", f"{theirs}.bn{step + 1}.{{kind}}"))
            rules.append(Same(f"{ours}.shortcut.kernel.weight", f"{theirs}.downsample.0.weight"))
            rules.append(Same(f"{ours}.shortcut.norm.{{kind}}", f"{theirs}.downsample.1.{{kind}}"))
        return [*rules, Same("outputs.{kind}", "fc.{kind}")]


def depth(there: Mapping[str, Tensor], pattern: str) -> int:
    """How many parts the names count, from 0."""
    return 1 + max((int(found[1]) for name in there if (found := re.match(pattern, name))), default=-1)


LAYOUTS: tuple[Timm, ...] = (TimmVit(), TimmSwin(), TimmResNet())


def layout_of(config: Config) -> Timm:
    """The layout of an architecture of timm's."""
    name = config.word("architecture")
    for layout in LAYOUTS:
        if name.startswith(layout.begins):
            return layout
    known = ", ".join(begin for layout in LAYOUTS for begin in layout.begins)
    raise config.refusal("architecture", f"known are those that begin with {known}")
