"""How images are varied while learning: on whole batches, on any device, each image by dice of its own."""

from heedful.data.transforms.augment_dice import dice_of, draw, mixed, steady_dice
from heedful.data.transforms.augmentation import Augmentation, levels
from heedful.data.transforms.geometry import Crop, Flip, ResizedCrop, Turn
from heedful.data.transforms.mixing import CutMix, Mix, MixUp
from heedful.data.transforms.policies import Colour, Erase, Grey, RandAugment, TrivialAugment
from heedful.data.transforms.variation import Variation

VARIATIONS: dict[str, type[Variation]] = {
    "flip": Flip,
    "crop": Crop,
    "resized_crop": ResizedCrop,
    "turn": Turn,
    "colour": Colour,
    "grey": Grey,
    "trivial": TrivialAugment,
    "randaugment": RandAugment,
    "erase": Erase,
}
MIXES: dict[str, type[Mix]] = {"mixup": MixUp, "cutmix": CutMix}

__all__ = [
    "MIXES",
    "VARIATIONS",
    "Augmentation",
    "Mix",
    "ResizedCrop",
    "Variation",
    "dice_of",
    "draw",
    "levels",
    "mixed",
    "steady_dice",
]
