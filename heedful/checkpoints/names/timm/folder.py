"""What folders of timm share: a config that names an architecture and says little, and tensors that tell the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from heedful.checkpoints.names.config import Config
from heedful.checkpoints.names.layout import Layout

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
        scale = {"mean": told.get("mean"), "deviation": told.get("std")}
        scale = {key: list(value) for key, value in scale.items() if isinstance(value, list | tuple)}
        said = self.sizes(there, size) | (scale if len(scale) == 2 else {})
        labels = config.take("label_names", None)
        named = isinstance(labels, list) and len(labels) == said["classes"]
        return said | ({"labels": [str(label) for label in labels]} if named else {})

    def sizes(self, there: Mapping[str, Tensor], size: Sequence[int]) -> dict[str, Any]:
        """Numbers and words of our spec, of images of such a size."""
        raise NotImplementedError


def depth(there: Mapping[str, Tensor], pattern: str) -> int:
    """How many parts the names count, from 0: no more than there are names."""
    found = [match[1] for name in there if (match := re.match(pattern, name))]
    return min(len(there), 1 + max((int(number) for number in found if len(number) < 7), default=-1))


def classes(there: Mapping[str, Tensor], name: str = "head.weight") -> int | None:
    """How many classes a model answers with."""
    return there[name].shape[0] if name in there else None
