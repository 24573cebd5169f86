"""The vision transformer and DeiT as Hugging Face writes them (`vit`, `deit`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.architectures import label_maps, usual
from heedful.formats.hf.config_words import ACTIVATIONS, activation, eps, norm_word, with_dropout
from heedful.formats.image_processors import PIXELS
from heedful.formats.layout import Layout
from heedful.formats.name_rules import Row, Rule, Same, Shape, Stacked
from heedful.models.part_words import parse
from heedful.models.vision.image_spec import ClassifierSpec, ImageSpec

BLOCK = "encoder.blocks.{n}"
PARTS = {  # of a block
    "attention.join": "attention.output.dense",
    "feedforward.up": "intermediate.dense",
    "feedforward.down": "output.dense",
    "norm1": "layernorm_before",
    "norm2": "layernorm_after",
}


ANSWERS = ("classifier.weight", "cls_classifier.weight", "classifier.1.weight")  # of models that say classes


@dataclass(frozen=True)
class Kernel(Same):
    """A matrix over flattened patches that is a convolution's kernel in the file: so many channels, such a side."""

    channels: int = 1
    side: int = 1

    def filled(self, name: str) -> Self | None:
        made = Same(self.ours, self.theirs).filled(name)
        return None if made is None else replace(self, ours=made.ours, theirs=made.theirs)

    def shapes(self, ours: Shape) -> list[Shape]:
        return [(ours[0], self.channels, self.side, self.side)]

    def read(self, theirs: Sequence[Tensor]) -> Tensor:
        return theirs[0].flatten(1)

    def write(self, ours: Tensor) -> list[Tensor]:
        return [ours.view(self.shapes(tuple(ours.shape))[0])]


@dataclass(frozen=True)
class Tokens(Stacked):
    """Learned tokens, each of which has axes of one before its own in the file."""

    def shapes(self, ours: Shape) -> list[Shape]:
        return [(1, rows, *ours[1:]) for rows in self.theirs.values()]

    def read(self, theirs: Sequence[Tensor]) -> Tensor:
        return torch.cat([one[0] for one in theirs])

    def write(self, ours: Tensor) -> list[Tensor]:
        return [one[None] for one in super().write(ours)]


class Vit(Layout):
    """The layout of the vision transformer (Dosovitskiy et al., 2021)."""

    kind, family, prefix = "vit", "vit", "vit."
    tokens: ClassVar[Sequence[str]] = ("cls_token",)
    answers: ClassVar[Mapping[str, str]] = {"outputs": "classifier"}
    ignored: ClassVar[Sequence[str]] = (
        r"(vit|deit)\.pooler\.dense\.(weight|bias)",
        r"(vit|deit)\.embeddings\.mask_token",
    )

    def suits(self, spec: Any) -> bool:
        return spec.family == self.family and spec.first == len(self.tokens)

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.harmless("encoder_stride", "pooler_act", "pooler_output_size")
        return {
            "width": config.whole("hidden_size", 768),
            "depth": config.whole("num_hidden_layers", 12),
            "heads": config.whole("num_attention_heads", 12),
            "hidden": config.whole("intermediate_size", 3072),
            "leading": len(self.tokens),
            **vit_fields(config, there, patch=16, eps=1e-12),
        }

    def config(self, spec: Any) -> dict[str, Any]:
        return {**self.said(spec), "qkv_bias": spec.project_bias}

    def said(self, spec: Any) -> dict[str, Any]:
        """What config.json says of a model that reads patches, whatever its keys have."""
        return {
            "architectures": [self.architecture(spec)],
            "model_type": self.kind,
            "hidden_size": spec.width,
            "num_hidden_layers": spec.depth,
            "num_attention_heads": spec.heads,
            "intermediate_size": spec.hidden or 4 * spec.width,
            "num_channels": spec.channels,
            "patch_size": spec.patch,
            "image_size": spec.high if spec.high == spec.wide else [spec.high, spec.wide],
            "hidden_dropout_prob": spec.dropout,
            "attention_probs_dropout_prob": parse(spec.mechanism)[1].get("dropout", 0.0),
            "layer_norm_eps": eps(spec.norm, 1e-5),
            "hidden_act": activation(spec.feedforward),
            **classes_and_pixels(spec),
        }

    def architecture(self, spec: Any) -> str:
        """The class of transformers that reads it."""
        return "ViTForImageClassification" if spec.classes else "ViTModel"

    def table(self, spec: Any) -> Sequence[Rule]:
        theirs, inner = f"{self.prefix}encoder.layer.{{n}}", f"{self.prefix}embeddings"
        patches = f"{inner}.patch_embeddings.projection"
        attention = [f"{theirs}.attention.attention.{part}.{{kind}}" for part in ("query", "key", "value")]
        return [
            Tokens("inputs.leading", {f"{inner}.{token}": 1 for token in self.tokens}),
            Row("inputs.position.table", f"{inner}.position_embeddings"),
            Kernel("inputs.stem.matrix.weight", f"{patches}.weight", spec.channels, spec.patch),
            Same("inputs.stem.matrix.bias", f"{patches}.bias"),
            Stacked(f"{BLOCK}.attention.project.to_qkv.{{kind}}", dict.fromkeys(attention, spec.width)),
            *self.blocks(spec, theirs),
            Same("encoder.norm.{kind}", f"{self.prefix}layernorm.{{kind}}"),
            *(Same(f"{ours}.{{kind}}", f"{part}.{{kind}}") for ours, part in self.answers.items()),
        ]

    def blocks(self, spec: Any, theirs: str) -> list[Rule]:
        """The rules of blocks, but for their queries, keys and values."""
        return [Same(f"{BLOCK}.{ours}.{{kind}}", f"{theirs}.{part}.{{kind}}") for ours, part in PARTS.items()]


class Deit(Vit):
    """The layout of DeiT, a class token answering alone (Touvron et al., 2021)."""

    kind, prefix = "deit", "deit."
    tokens: ClassVar[Sequence[str]] = ("cls_token", "distillation_token")

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        taught = "distillation_classifier.weight" in there
        config.harmless("architectures")
        said = config.classes()
        taught = taught or (not there and said == ["DeiTForImageClassificationWithTeacher"])
        return super().spec(config, there) | {"distilled": taught}

    def architecture(self, spec: Any) -> str:
        alone = "DeiTForImageClassification" if spec.classes else "DeiTModel"
        return f"{alone}WithTeacher" if spec.distilled else alone

    def table(self, spec: Any) -> Sequence[Rule]:
        if not spec.distilled:
            return super().table(spec)
        both = {"outputs": "cls_classifier", "distilled": "distillation_classifier"}
        answers = [Same(f"{ours}.{{kind}}", f"{part}.{{kind}}") for ours, part in both.items()]
        return [*super().table(spec)[:-1], *answers]


def vit_fields(config: Config, there: Mapping[str, Tensor], patch: int, eps: float) -> dict[str, Any]:
    """What configs of transformers of images say alike; `patch` and `eps` where they are silent."""
    high, wide = sides(config)
    return {
        "channels": config.whole("num_channels", 3),
        "patch": config.whole("patch_size", patch),
        "high": high,
        "wide": wide,
        **classes_of(config, there),
        "dropout": config.number("hidden_dropout_prob", 0.0),
        "mechanism": with_dropout("softmax", config.number("attention_probs_dropout_prob", 0.0)),
        "norm": norm_word("layer", config.positive("layer_norm_eps", eps)),
        "feedforward": config.among("hidden_act", ACTIVATIONS, "gelu"),
        "project_bias": config.flag("qkv_bias", True),
        **pixels_of(config),
    }


def pixels_of(config: Config) -> dict[str, Any]:
    """What is done to pictures first; `public` has it from a file beside config.json, where others look for it."""
    return {ours: config.take(theirs, None) for ours, theirs in PIXELS.items()}


def classes_of(config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
    """How many classes a model answers with, by its files or else by their names; and the names of all, where told."""
    named = config.take("id2label", None)
    named = named if isinstance(named, dict) else {}
    own = next((name for name in ANSWERS if name in there), None)
    count = there[own].shape[0] if own else 0 if there else len(named)
    names = [str(named[str(at)]) for at in range(count)] if set(named) == {str(at) for at in range(count)} else []
    return {"classes": count or None, "labels": None if names == usual(len(names)) else names}


def classes_and_pixels(spec: ImageSpec) -> dict[str, Any]:
    """What a config says of the classes, by number where nobody has named them, and of pixels."""
    said = {theirs: getattr(spec, ours) for ours, theirs in PIXELS.items()}
    pixels = {key: value for key, value in said.items() if value is not None}
    classes = spec.classes if isinstance(spec, ClassifierSpec) else None
    named = label_maps(spec.labels or usual(classes)) if isinstance(spec, ClassifierSpec) and classes else {}
    return pixels | named


def square(config: Config, said: dict[str, Any]) -> dict[str, Any]:
    """The same, of square images alone: transformers stretches what it learned of places as if all images were."""
    if said["high"] != said["wide"]:
        why = "transformers answers otherwise or not at all where places of other than square images are learned"
        raise config.refusal("image_size", f"{why}; give both sides the same length")
    return said


def sides(config: Config) -> tuple[int, int]:
    """The height and the width of the images: one number, or two."""
    size = config.take("image_size", 224)
    if type(size) is list and len(size) == 2 and all(type(side) is int for side in size):
        return size[0], size[1]
    side = config.whole("image_size", 224)
    return side, side
