"""ResNet as Hugging Face writes it (`resnet`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.swin import whole_numbers
from heedful.formats.hf.vit import classes_and_pixels, classes_of, pixels_of, sides
from heedful.formats.layout import Layout
from heedful.formats.name_rules import Rule, Same
from heedful.models.vision.resnet import ResNetSpec

STEM, BLOCK = "resnet.embedder.embedder", "resnet.encoder.stages.{stage}.layers.{n}"
PLACES = {  # of ours, and of theirs
    "stem": STEM,
    "stages.{stage}.{n}.steps.{step}": f"{BLOCK}.layer.{{step}}",
    "stages.{stage}.{n}.shortcut": f"{BLOCK}.shortcut",
}


class HFResNet(Layout):
    """The layout of ResNet (He et al., 2016)."""

    kind, family, prefix = "resnet", "resnet", "resnet."
    ignored = (r"resnet\..*\.num_batches_tracked",)

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.harmless("out_features", "out_indices", "stage_names")
        for key in ("downsample_in_bottleneck", "downsample_in_first_stage"):
            config.only(key, False)
        config.only("hidden_act", "relu")
        high, wide = sides(config)
        block = config.among("layer_type", {"basic": "basic", "bottleneck": "bottleneck"}, "bottleneck")
        width, widths = config.whole("embedding_size", 64), whole_numbers(config, "hidden_sizes")
        if any(one != width * (4 if block == "bottleneck" else 1) << at for at, one in enumerate(widths)):
            raise config.refusal("hidden_sizes", "only widths that double from stage to stage are supported")
        depths = whole_numbers(config, "depths")
        if len(depths) != len(widths):
            raise config.refusal("depths", f"it should have {len(widths)} numbers, as hidden_sizes does")
        return {
            "width": width,
            "depths": depths,
            "block": block,
            "channels": config.whole("num_channels", 3),
            "high": high,
            "wide": wide,
            **classes_of(config, there),
            **pixels_of(config),
        }

    def config(self, spec: ResNetSpec) -> dict[str, Any]:
        wide = spec.width * (4 if spec.block == "bottleneck" else 1)
        return {
            "architectures": ["ResNetForImageClassification" if spec.classes else "ResNetModel"],
            "model_type": self.kind,
            "embedding_size": spec.width,
            "hidden_sizes": [wide << at for at in range(len(spec.depths))],
            "depths": spec.depths,
            "layer_type": spec.block,
            "num_channels": spec.channels,
            "image_size": spec.high if spec.high == spec.wide else [spec.high, spec.wide],
            "hidden_act": "relu",
            "downsample_in_bottleneck": False,
            "downsample_in_first_stage": False,
            **classes_and_pixels(spec),
        }

    def table(self, spec: ResNetSpec) -> Sequence[Rule]:
        return [
            *(Same(f"{ours}.kernel.weight", f"{theirs}.convolution.weight") for ours, theirs in PLACES.items()),
            *(Same(f"{ours}.norm.{{kind}}", f"{theirs}.normalization.{{kind}}") for ours, theirs in PLACES.items()),
            Same("outputs.{kind}", "classifier.1.{kind}"),
        ]
