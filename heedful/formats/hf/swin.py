"""Swin as Hugging Face writes it (`swin`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.config_words import activation, eps, norm_word
from heedful.formats.hf.vit import PARTS, Kernel, classes_and_pixels, vit_fields
from heedful.formats.layout import Layout
from heedful.formats.name_rules import Rule, Same, Stacked
from heedful.models.part_words import parse
from heedful.models.vision.swin import SwinSpec

HARMLESS = (
    "drop_path_rate",
    "encoder_stride",
    "hidden_size",
    "num_layers",
    "out_features",
    "out_indices",
    "stage_names",
)


class HFSwin(Layout):
    """The layout of Swin (Liu et al., 2021)."""

    kind, family, prefix = "swin", "swin", "swin."
    ignored = (r"swin\..*\.attention\.self\.relative_position_index", r"swin\.embeddings\.mask_token")

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.harmless(*HARMLESS)
        config.only("use_absolute_embeddings", False)
        depths, heads = (whole_numbers(config, key) for key in ("depths", "num_heads"))
        if len(depths) != len(heads) or any(many != heads[0] << at for at, many in enumerate(heads)):
            raise config.refusal("num_heads", "only heads that double from stage to stage are supported")
        said = {
            "width": config.whole("embed_dim", 96),
            "depths": depths,
            "heads": heads[0],
            "window": config.whole("window_size", 7),
            "mlp_ratio": config.number("mlp_ratio", 4.0),
            "merge_norm": norm_word("layer", 1e-5),  # whatever layer_norm_eps says
            **vit_fields(config, there, patch=4, eps=1e-5),
        }
        cell = said["patch"] << (len(depths) - 1)  # pixels along a side of those of the last stage
        if min(said["high"], said["wide"]) <= cell * (said["window"] - 1):
            why = "a stage would be smaller than window_size, for which transformers has no answer"
            raise config.refusal("image_size", f"{why}; set it to {cell * said['window']} or more")
        return said

    def config(self, spec: SwinSpec) -> dict[str, Any]:
        stages = len(spec.depths)
        return {
            "architectures": ["SwinForImageClassification" if spec.classes else "SwinModel"],
            "model_type": self.kind,
            "embed_dim": spec.width,
            "depths": spec.depths,
            "num_heads": [spec.heads << at for at in range(stages)],
            "num_layers": stages,
            "hidden_size": spec.width << (stages - 1),
            "window_size": spec.window,
            "mlp_ratio": spec.mlp_ratio,
            "num_channels": spec.channels,
            "patch_size": spec.patch,
            "image_size": spec.high if spec.high == spec.wide else [spec.high, spec.wide],
            "hidden_dropout_prob": spec.dropout,
            "attention_probs_dropout_prob": parse(spec.mechanism)[1].get("dropout", 0.0),
            "layer_norm_eps": eps(spec.norm, 1e-5),
            "hidden_act": activation(spec.feedforward),
            "qkv_bias": spec.project_bias,
            **classes_and_pixels(spec),
        }

    def table(self, spec: SwinSpec) -> Sequence[Rule]:
        patches = "swin.embeddings.patch_embeddings.projection"
        stages = [rule for at in range(len(spec.depths)) for rule in self.stage(at, spec.width << at)]
        return [
            Kernel("stem.matrix.weight", f"{patches}.weight", spec.channels, spec.patch),
            Same("stem.matrix.bias", f"{patches}.bias"),
            Same("first.{kind}", "swin.embeddings.norm.{kind}"),
            *stages,
            Same("merges.{n}.norm.{kind}", "swin.encoder.layers.{n}.downsample.norm.{kind}"),
            Same("merges.{n}.matrix.weight", "swin.encoder.layers.{n}.downsample.reduction.weight"),
            Same("norm.{kind}", "swin.layernorm.{kind}"),
            Same("outputs.{kind}", "classifier.{kind}"),
        ]

    def stage(self, at: int, width: int) -> list[Rule]:
        """The rules of a stage's blocks."""
        ours, theirs = f"stages.{at}.blocks.{{n}}", f"swin.encoder.layers.{at}.blocks.{{n}}"
        attention = [f"{theirs}.attention.self.{part}.{{kind}}" for part in ("query", "key", "value")]
        return [
            Stacked(f"{ours}.attention.project.to_qkv.{{kind}}", dict.fromkeys(attention, width)),
            Same(f"{ours}.attention.bias.table", f"{theirs}.attention.self.relative_position_bias_table"),
            *(Same(f"{ours}.{part}.{{kind}}", f"{theirs}.{name}.{{kind}}") for part, name in PARTS.items()),
        ]


def whole_numbers(config: Config, key: str) -> list[int]:
    """A list of whole numbers, each above 0."""
    value = config.take(key)
    if type(value) is not list or not value or not all(type(one) is int and one > 0 for one in value):
        raise config.refusal(key, "it should be a list of whole numbers")
    return value
