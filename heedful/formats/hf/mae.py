"""The masked autoencoder as Hugging Face writes it (`vit_mae`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.vit import PARTS, Vit
from heedful.formats.name_rules import Rule, Same, Shape, Stacked
from heedful.inputs import SineGrid
from heedful.models.vision.mae import MAESpec
from heedful.models.vision.vit import stem

LAYERS = "decoder.decoder_encoder.layer."
OLDER = "decoder.decoder_layers."  # as the published files have it
TABLES = {"vit.embeddings.position_embeddings": "width", "decoder.decoder_pos_embed": "decoder_width"}


@dataclass(frozen=True)
class ByPixel(Same):
    """Rows that are told channel by channel here, and pixel by pixel, all channels of each, in the file."""

    channels: int = 1
    copies = True

    def filled(self, name: str) -> Self | None:
        made = Same(self.ours, self.theirs).filled(name)
        return None if made is None else replace(self, ours=made.ours, theirs=made.theirs)

    def read(self, theirs: Sequence[Tensor]) -> Tensor:
        return theirs[0].unflatten(0, (-1, self.channels)).transpose(0, 1).flatten(0, 1)

    def write(self, ours: Tensor) -> list[Tensor]:
        return [ours.unflatten(0, (self.channels, -1)).transpose(0, 1).flatten(0, 1)]


@dataclass(frozen=True)
class Blank(Same):
    """A vector with two axes of one before its own in the file."""

    def shapes(self, ours: Shape) -> list[Shape]:
        return [(1, 1, *ours)]

    def read(self, theirs: Sequence[Tensor]) -> Tensor:
        return theirs[0][0, 0]

    def write(self, ours: Tensor) -> list[Tensor]:
        return [ours[None, None]]


class Mae(Vit):
    """The layout of the masked autoencoder (He et al., 2022). Its tables of sines are reckoned here, and compared."""

    kind, family = "vit_mae", "mae"
    ignored = tuple(re.escape(name) for name in TABLES)
    compared = True

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.flag("norm_pix_loss", False)  # how it is taught
        wide = config.whole("decoder_hidden_size", 512)
        if config.whole("decoder_intermediate_size", 2048) != 4 * wide:
            raise config.refusal("decoder_intermediate_size", f"only {4 * wide}, four times the width, is supported")
        said = {key: value for key, value in super().spec(config, there).items() if key not in ("classes", "labels")}
        return said | {
            "mask_ratio": config.number("mask_ratio", 0.75),
            "decoder_width": wide,
            "decoder_depth": config.whole("decoder_num_hidden_layers", 8),
            "decoder_heads": config.whole("decoder_num_attention_heads", 16),
        }

    def config(self, spec: MAESpec) -> dict[str, Any]:
        return super().config(spec) | {
            "mask_ratio": spec.mask_ratio,
            "norm_pix_loss": True,
            "decoder_hidden_size": spec.decoder_width,
            "decoder_intermediate_size": 4 * spec.decoder_width,
            "decoder_num_hidden_layers": spec.decoder_depth,
            "decoder_num_attention_heads": spec.decoder_heads,
        }

    def architecture(self, spec: Any) -> str:
        return "ViTMAEForPreTraining"

    def constants(self, spec: MAESpec) -> dict[str, Tensor]:
        shape = stem(spec).shape(spec.high, spec.wide)
        tokens = spec.first + shape[0] * shape[1]
        widths = {name: getattr(spec, key) for name, key in TABLES.items()}
        return {name: SineGrid(wide)(torch.zeros(1, tokens, wide), shape) for name, wide in widths.items()}

    def named(self, names: Iterable[str]) -> dict[str, str]:
        return {name: name.replace(OLDER, LAYERS) for name in names}

    def table(self, spec: MAESpec) -> Sequence[Rule]:
        ours, theirs = "decoder.blocks.{n}", f"{LAYERS}{{n}}"
        attention = [f"{theirs}.attention.attention.{part}.{{kind}}" for part in ("query", "key", "value")]
        return [
            *(rule for rule in super().table(spec) if not rule.ours.startswith(("inputs.position", "outputs"))),
            Same("bridge.{kind}", "decoder.decoder_embed.{kind}"),
            Blank("blank", "decoder.mask_token"),
            Stacked(f"{ours}.attention.project.to_qkv.{{kind}}", dict.fromkeys(attention, spec.decoder_width)),
            *(Same(f"{ours}.{part}.{{kind}}", f"{theirs}.{name}.{{kind}}") for part, name in PARTS.items()),
            Same("decoder.norm.{kind}", "decoder.decoder_norm.{kind}"),
            ByPixel("outputs.{kind}", "decoder.decoder_pred.{kind}", spec.channels),
        ]
