"""Transforms (data augmentation): on whole batches, on any device, each image by dice of its own."""

from heedful.data.transforms.augment_dice import dice_of, draw, mix_bits, steady_dice
from heedful.data.transforms.augmentation import Augmentation, levels
from heedful.data.transforms.geometry import ResizedCrop
from heedful.data.transforms.mixing import CutMix, Mix, MixUp
from heedful.data.transforms.moves import Move
from heedful.data.transforms.variation import Variation
from heedful.registry import Registry

HERE = "heedful.data.transforms"
VARIATIONS: Registry[type[Variation]] = Registry(
    "augmentation",
    "heedful.augmentations",
    {
        "flip": f"{HERE}.geometry:Flip",
        "crop": f"{HERE}.geometry:Crop",
        "resized_crop": f"{HERE}.geometry:ResizedCrop",
        "turn": f"{HERE}.geometry:Turn",
        "colour": f"{HERE}.policies:Colour",
        "grey": f"{HERE}.policies:Grey",
        "trivial": f"{HERE}.policies:TrivialAugment",
        "randaugment": f"{HERE}.policies:RandAugment",
        "erase": f"{HERE}.policies:Erase",
    },
)
MIXES: dict[str, type[Mix]] = {"mixup": MixUp, "cutmix": CutMix}

__all__ = [
    "MIXES",
    "VARIATIONS",
    "Augmentation",
    "Mix",
    "Move",
    "ResizedCrop",
    "Variation",
    "dice_of",
    "draw",
    "levels",
    "mix_bits",
    "steady_dice",
]
