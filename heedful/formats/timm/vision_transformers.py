"""Vision transformers, DeiTs, DINOv2s, BEiTs and ConViTs of timm: sequences of patches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from heedful.formats.hf.vit import BLOCK, Kernel, Tokens
from heedful.formats.name_rules import Row, Rule, Same, Stacked
from heedful.formats.timm.timm_folder import PARTS, Timm, classes, depth

THEIRS = "blocks.{n}"
PATCHES, WAYS = "patch_embed.proj.weight", "relative_position_bias_table"
SIZES = {PATCHES: 4, "blocks.0.mlp.fc1.weight": 2}
HEAD = 64  # the width of a head, but in these
HEADS = {1280: 16, 1408: 16, 1664: 16}  # by width: huge, giant, gigantic


class TimmVit(Timm):
    """Vision transformers of plain patches, DeiTs, and DINOv2s without registers."""

    kind, family, pools = "timm vit", "vit", ("token",)
    telling: ClassVar[Mapping[str, int]] = SIZES | {"pos_embed": 3}
    patterns = (
        r"vit_(tiny|small|base|large|huge|giant|gigantic)_patch\d+_\d+(_miil)?(_in21k|_sam|_dino)?",
        r"vit_base_patch\d+_plus_\d+",
        r"vit_small_patch16_36x1_224",
        r"vit_(small|base|large)_patch14_dinov2",
        r"deit_(tiny|small|base)(_distilled)?_patch\d+_\d+",
    )
    like = "vit_base_patch16_224, vit_base_patch14_dinov2, deit_base_distilled_patch16_224"

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        first = 1 + int("dist_token" in there)
        scaled = "blocks.0.ls1.gamma" in there
        return {
            **shared_sizes(there),
            **shape(there, size, there["pos_embed"].shape[1] - first),
            "leading": first,
            "distilled": "head_dist.weight" in there,
            "project_bias": "blocks.0.attn.qkv.bias" in there,
            **({"order": "scaled"} if scaled else {}),
        }

    def table(self, spec: Any) -> Sequence[Rule]:
        tokens = ("cls_token", "dist_token")[: spec.first]
        return [
            Tokens("inputs.leading", dict.fromkeys(tokens, 1)),
            *around(spec),
            *(Same(f"{BLOCK}.{ours}.{{kind}}", f"{THEIRS}.{theirs}.{{kind}}") for ours, theirs in PARTS.items()),
            *(Same(f"{BLOCK}.scale{at}", f"{THEIRS}.ls{at}.gamma") for at in (1, 2)),
            Same("encoder.norm.{kind}", "norm.{kind}"),
            Same("distilled.{kind}", "head_dist.{kind}"),
        ]


class TimmBeit(Timm):
    """BEiTs of both versions, which tell classes."""

    kind, family, pools = "timm beit", "beit", ("avg", "token")
    telling: ClassVar[Mapping[str, int]] = SIZES | {f"blocks.0.attn.{WAYS}": 2}
    patterns = (r"beit(v2)?_(base|large)_patch\d+_\d+",)
    like = "beit_base_patch16_224, beitv2_base_patch16_224"
    ignored = (r".*\.relative_position_index", r".*\.k_bias", r"mask_token")

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        ways = there[f"blocks.0.attn.{WAYS}"].shape[0] - 3  # three are to and from the class token
        return {
            **shared_sizes(there),
            **shape(there, size, ways, lambda side: 2 * side - 1),
            "pool": "mean" if "fc_norm.weight" in there else "first",
        }

    def table(self, spec: Any) -> Sequence[Rule]:
        ours, theirs = f"{BLOCK}.attention", f"{THEIRS}.attn"
        plain = {one: two for one, two in PARTS.items() if two != "attn.qkv"}
        return [
            Tokens("inputs.leading", {"cls_token": 1}),
            *around(spec),
            *(Same(f"{BLOCK}.{one}.{{kind}}", f"{THEIRS}.{two}.{{kind}}") for one, two in plain.items()),
            Same(f"{ours}.project.to_qkv.weight", f"{theirs}.qkv.weight"),
            *(Same(f"{ours}.project.bias_{part}", f"{theirs}.{part}_bias") for part in "qv"),
            Same(f"{ours}.bias.table", f"{theirs}.{WAYS}"),
            *(Same(f"{BLOCK}.scale{at}", f"{THEIRS}.gamma_{at}") for at in (1, 2)),
            Same("norm.{kind}", "fc_norm.{kind}" if spec.pool == "mean" else "norm.{kind}"),
        ]


class TimmConvit(Timm):
    """ConViTs."""

    kind, family, pools = "timm convit", "convit", ("token",)
    telling: ClassVar[Mapping[str, int]] = SIZES | {"pos_embed": 3, "blocks.0.attn.pos_proj.weight": 2}
    patterns = (r"convit_(tiny|small|base)",)
    like = "convit_tiny, convit_small, convit_base"

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        return {
            **shared_sizes(there),
            **shape(there, size, there["pos_embed"].shape[1]),
            "heads": there["blocks.0.attn.pos_proj.weight"].shape[0],
            "local_up_to_layer": depth(there, r"blocks\.(\d+)\.attn\.pos_proj"),
            "project_bias": "blocks.0.attn.qk.bias" in there,
        }

    def table(self, spec: Any) -> Sequence[Rule]:
        plain = {one: two for one, two in PARTS.items() if two != "attn.qkv"}
        rules: list[Rule] = [
            Row("token", "cls_token"),
            *around(spec),
            *(Same(f"{BLOCK}.{one}.{{kind}}", f"{THEIRS}.{two}.{{kind}}") for one, two in plain.items()),
            Same(f"{BLOCK}.attention.likes.{{kind}}", f"{THEIRS}.attn.pos_proj.{{kind}}"),
            Same(f"{BLOCK}.attention.mechanism.gate", f"{THEIRS}.attn.gating_param"),
            Same("encoder.norm.{kind}", "norm.{kind}"),
        ]
        for at in range(spec.depth):
            ours, theirs = f"encoder.blocks.{at}.attention.project.to_qkv.{{kind}}", f"blocks.{at}.attn"
            parts = {f"{theirs}.qk.{{kind}}": 2 * spec.width, f"{theirs}.v.{{kind}}": spec.width}
            rules.append(Stacked(ours, parts) if at < spec.local_up_to_layer else Same(ours, f"{theirs}.qkv.{{kind}}"))
        return rules


def shared_sizes(there: Mapping[str, Tensor]) -> dict[str, Any]:
    """The sizes that all these have."""
    width, channels, patch, _ = there[PATCHES].shape
    return {
        "width": width,
        "heads": HEADS.get(width, max(1, width // HEAD)),
        "depth": depth(there, r"blocks\.(\d+)\."),
        "hidden": there["blocks.0.mlp.fc1.weight"].shape[0],
        "patch": patch,
        "channels": channels,
        "classes": classes(there),
        "norm": "layer(eps=1e-06)",
    }


def shape(
    there: Mapping[str, Tensor], size: Sequence[int], places: int, along: Callable[[int], int] = lambda side: side
) -> dict[str, int]:
    """The images that so many places are of, `along` a side of patches: as told where that fits, or else square."""
    patch = there[PATCHES].shape[-1]
    rows, columns = size[1] // patch, size[2] // patch
    if along(rows) * along(columns) != places:
        rows = columns = next(
            (side for side in range(1, 1 + math.isqrt(max(0, places))) if along(side) ** 2 == places), 1
        )
    return {"high": patch * rows, "wide": patch * columns}


def around(spec: Any) -> list[Rule]:
    """The rules of what stands before and behind the blocks."""
    return [
        Row("inputs.position.table", "pos_embed"),
        Kernel("inputs.stem.matrix.weight", PATCHES, spec.channels, spec.patch),
        Same("inputs.stem.matrix.bias", "patch_embed.proj.bias"),
        Same("outputs.{kind}", "head.{kind}"),
    ]
