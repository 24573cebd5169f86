"""What folders of timm share: a config that names an architecture and says little, and tensors that tell the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.layout import Layout
from heedful.inputs.image_input import BILINEAR, FILTERS, TimmProcessor
from heedful.models.part_words import with_arguments as word

SCALE = {"mean": ("mean", [0.485, 0.456, 0.406]), "deviation": ("std", [0.229, 0.224, 0.225])}
MOST = 1e6  # numbers beyond it are none of pixels
PARTS = {  # of a block
    "attention.project.to_qkv": "attn.qkv",
    "attention.join": "attn.proj",
    "feedforward.up": "mlp.fc1",
    "feedforward.down": "mlp.fc2",
    "norm1": "norm1",
    "norm2": "norm2",
}


class Timm(Layout):
    """A kind of model as timm writes it. Names are whole: one letter more is another network to timm."""

    patterns: ClassVar[Sequence[str]]  # of the names of architectures that compute what our models do, older ones too
    like: ClassVar[str]  # such names, for people
    telling: ClassVar[Mapping[str, int]]  # tensors whose shapes the sizes follow from, with how many axes they have
    pools: ClassVar[Sequence[str]]  # what may be said of pooling; the first where nothing is

    def reads(self, architecture: str) -> bool:
        """Whether an architecture is one of these."""
        return any(re.fullmatch(pattern, architecture) for pattern in self.patterns)

    def suits(self, spec: Any) -> bool:
        return False  # nothing is written in it

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.take("architecture")
        config.harmless("num_features", "num_classes", "label_descriptions")
        if config.values.get("model_args") == {}:  # what else it says changes the network, and is refused
            config.harmless("model_args")
        config.only("global_pool", *self.pools)
        told = config.take("pretrained_cfg", None) or {}
        size = told.get("input_size") or [3, 224, 224] if isinstance(told, dict) else None
        if not isinstance(size, list) or len(size) != 3 or not all(type(one) is int and one > 0 for one in size):
            raise config.refusal(
                "pretrained_cfg", "its input_size should be three whole numbers; copy the folder again"
            )
        for name, axes in self.telling.items():
            if name not in there or there[name].dim() != axes or not there[name].numel():
                why = f"its files should hold {name!r}, of {axes} axes; copy the folder again"
                raise config.refusal("architecture", why)
        said = self.sizes(there, size) | (pixels(config, told, size) if told else {})
        labels = config.take("label_names", None)
        named = isinstance(labels, list) and len(labels) == said["classes"]
        return said | ({"labels": [str(label) for label in labels]} if named else {})

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        """Numbers and words of our spec, of images of such a size."""
        raise NotImplementedError


def pixels(config: Config, told: Mapping[str, Any], size: Sequence[int]) -> dict[str, Any]:
    """What timm does to pictures to be tested, by the keys of a pretrained_cfg; its defaults where that is silent."""
    filled = told.get("crop_pct") or 0.875
    filter, mode = told.get("interpolation") or "bicubic", told.get("crop_mode") or "center"
    if mode not in ("center", "squash"):
        raise config.refusal("pretrained_cfg", f"its crop_mode {str(mode)[:20]!r} is not supported; center, squash are")
    if filter not in FILTERS:
        raise config.refusal(
            "pretrained_cfg", f"its interpolation {str(filter)[:20]!r} is not one of {', '.join(FILTERS)}"
        )
    if type(filled) not in (int, float) or not 0.01 <= filled <= 100:
        raise config.refusal("pretrained_cfg", "its crop_pct should be a number from 0.01 to 100")
    try:
        made = TimmProcessor(size[1], size[2], FILTERS.index(filter), float(filled), mode == "squash")
    except ValueError as error:
        raise config.refusal("pretrained_cfg", f"its input_size or crop_pct is of no picture: {error}") from None
    if made.scaled[0] != made.scaled[1] and not made.squash:  # whatever it says, timm takes this one then
        made = replace(made, resample=BILINEAR)
    scale = {}
    for ours, (theirs, usual) in SCALE.items():
        each = told.get(theirs) or usual
        if not isinstance(each, list) or not all(type(one) in (int, float) and abs(one) < MOST for one in each):
            raise config.refusal("pretrained_cfg", f"its {theirs} should be a list of numbers")
        if theirs == "std" and min(each) < 1 / MOST:
            raise config.refusal("pretrained_cfg", f"its std should be {1 / MOST} or more")
        scale[ours] = [float(one) for one in each]
    return {**scale, "processor": word("timm", **vars(made))}


def depth(there: Mapping[str, Tensor], pattern: str) -> int:
    """How many parts the names count, from 0: no more than there are names."""
    found = [match[1] for name in there if (match := re.match(pattern, name))]
    return min(len(there), 1 + max((int(number) for number in found if len(number) < 7), default=-1))


def classes(there: Mapping[str, Tensor], name: str = "head.weight") -> int | None:
    """How many classes a model answers with."""
    return there[name].shape[0] if name in there else None
