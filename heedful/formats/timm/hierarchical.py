"""Swins and ResNets of timm, and torchvision's ResNets under the same names: stages, each at half the size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.vit import Kernel
from heedful.formats.name_rules import Rule, Same
from heedful.formats.timm.timm_folder import PARTS, Timm, classes, depth

PATCHES, FIRST, WAYS = "patch_embed.proj.weight", "layers.0.blocks.0.", "attn.relative_position_bias_table"
MERGING = {"norm.weight": "norm.weight", "norm.bias": "norm.bias", "matrix.weight": "reduction.weight"}


class TimmSwin(Timm):
    """Swins of timm."""

    kind, family, pools = "timm swin", "swin", ("avg",)
    telling: ClassVar[Mapping[str, int]] = {PATCHES: 4, FIRST + WAYS: 2, f"{FIRST}mlp.fc1.weight": 2}
    patterns = (r"swin_(tiny|small|base|large)_patch4_window\d+_\d+(_in22k)?",)
    like = "swin_tiny_patch4_window7_224"
    ignored = (r".*\.(attn_mask|relative_position_index)",)

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        said = super().spec(config, there)
        for at, layers in enumerate(said["depths"]):
            sides = {-(-said[side] // (said["patch"] << at)) for side in ("high", "wide")}
            rest = layers > 1 and any(side % said["window"] for side in sides)
            if rest if min(sides) > said["window"] else len(sides) > 1:
                why = "timm shifts windows before it fills up what they leave, and has some that are no squares"
                raise config.refusal("pretrained_cfg", f"{why}; take one of images that windows leave no rest of")
        return said

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        width, channels, patch, _ = there[PATCHES].shape
        ways, heads = there[FIRST + WAYS].shape
        return {
            "width": width,
            "heads": heads,
            "depths": [
                depth(there, rf"layers\.{at}\.blocks\.(\d+)\.") for at in range(depth(there, r"layers\.(\d+)\."))
            ],
            "window": (math.isqrt(ways) + 1) // 2,
            "mlp_ratio": there[f"{FIRST}mlp.fc1.weight"].shape[0] / width,
            "patch": patch,
            "channels": channels,
            "high": size[1],
            "wide": size[2],
            "classes": classes(there, "head.fc.weight"),
            "norm": "layer(eps=1e-05)",
        }

    def table(self, spec: Any) -> Sequence[Rule]:
        ours, theirs = "stages.{stage}.blocks.{n}", "layers.{stage}.blocks.{n}"
        return [
            Kernel("stem.matrix.weight", PATCHES, spec.channels, spec.patch),
            Same("stem.matrix.bias", "patch_embed.proj.bias"),
            Same("first.{kind}", "patch_embed.norm.{kind}"),
            *(Same(f"{ours}.{one}.{{kind}}", f"{theirs}.{two}.{{kind}}") for one, two in PARTS.items()),
            Same(f"{ours}.attention.bias.table", f"{theirs}.{WAYS}"),
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

    kind, family, pools = "timm resnet", "resnet", ("avg",)
    telling: ClassVar[Mapping[str, int]] = {"conv1.weight": 4}
    patterns = (r"((tv|ssl|swsl)_)?resnet(18|26|34|50|101|152|200)", r"gluon_resnet(18|34|50|101|152)_v1b")
    like = "resnet18, resnet50"
    ignored = (r".*\.num_batches_tracked",)

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        width, channels, _, _ = there["conv1.weight"].shape
        return {
            "width": width,
            "depths": [depth(there, rf"layer{at}\.(\d+)\.") for at in range(1, 1 + depth(there, r"layer(\d+)\.") - 1)],
            "block": "bottleneck" if "layer1.0.conv3.weight" in there else "basic",
            "channels": channels,
            "high": size[1],
            "wide": size[2],
            "classes": classes(there, "fc.weight"),
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
