"""Image processors of transformers, as a preprocessor_config.json says them: what is done to a picture before a model.

Sizes, filters and crops become a word of the spec, `processor`; what is done to numbers becomes mean and deviation.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import Refusal
from heedful.formats import NESTED_PROCESSOR, PROCESSOR
from heedful.formats.foreign_config import Config
from heedful.inputs.image_input import BICUBIC, BILINEAR, FILTERS, LARGEST, TransformersProcessor
from heedful.models.part_words import with_arguments as word
from heedful.models.vision.image_spec import ImageSpec, processor
from heedful.safe.json_and_tensors import read_json

PIXELS = {"mean": "image_mean", "deviation": "image_std", "processor": "processor"}  # keys of specs, and of configs
HALF: dict[str, Any] = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
CLIP: dict[str, Any] = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
MOST = 1e6  # numbers beyond it are none of pixels
CHANNELS = 1 << 16  # of a picture: more than any camera has
LEVELS = 255  # of a pixel, which our models read from 0 to 1
WARPED = 384  # the shorter side from which on ConvNeXT's processor crops nothing


def square(side: int) -> dict[str, int]:
    """A height and a width that are one."""
    return {"height": side, "width": side}


ALL: dict[str, Any] = {
    "do_resize": True,
    "resample": BICUBIC,
    "do_rescale": True,
    "rescale_factor": 1 / LEVELS,
    "do_normalize": True,
}
VIT: dict[str, Any] = {**ALL, **HALF, "size": square(224), "default_to_square": True}
SHORTER: dict[str, Any] = {
    **(ALL | CLIP),
    **{"size": {"shortest_edge": 224}, "default_to_square": False, "do_convert_rgb": True},
    **{"do_center_crop": True, "crop_size": square(224)},
}
PROCESSORS: dict[str, dict[str, Any]] = {  # what they do where a file is silent
    "ViTImageProcessor": VIT | {"resample": BILINEAR},
    "DeiTImageProcessor": VIT | {"size": square(256), "do_center_crop": True, "crop_size": square(224)},
    "BeitImageProcessor": VIT | {"do_center_crop": False, "crop_size": square(224)},
    "SiglipImageProcessor": VIT | {"default_to_square": False, "do_convert_rgb": True},
    "BitImageProcessor": SHORTER,
    "CLIPImageProcessor": SHORTER,
    "ConvNextImageProcessor": {
        **(ALL | HALF),
        **{"size": {"shortest_edge": WARPED}, "default_to_square": False, "crop_pct": 224 / 256},
    },
}
OWN = {  # the processor of each layout whose file names none
    "vit": "ViTImageProcessor",
    "deit": "DeiTImageProcessor",
    "dinov2": "BitImageProcessor",
    "vit_mae": "ViTImageProcessor",
    "beit": "BeitImageProcessor",
    "swin": "ViTImageProcessor",
    "resnet": "ConvNextImageProcessor",
}
EDGES = {"high": "height", "wide": "width", "shorter": "shortest_edge", "longer": "longest_edge"}
FLAGS = "do_", "default_to_square", "rescale_offset"
UNPADDED = "BeitImageProcessor", "ConvNextImageProcessor"  # which pass over what is said of padding
IGNORED = (  # where they are not read: by other flags or another class; maps of segments; how pictures are handed over
    *("size", "crop_size", "pad_size", "crop_pct", "do_reduce_labels", "reduce_labels"),
    *("image_processor_type", "feature_extractor_type", "processor_class", "use_fast"),
    *("data_format", "input_data_format", "return_tensors", "device", "disable_grouping", "image_seq_length"),
)


def read_processor(folder: Path, kind: str, channels: int) -> dict[str, Any]:
    """What a folder says of pictures, as keys of a config.json of ours; nothing where it has no such file."""
    path, said = folder / NESTED_PROCESSOR, None
    if os.path.lexists(path):
        said = read_json(path).get("image_processor")
    if said is None:
        path = folder / PROCESSOR
        said = read_json(path) if os.path.lexists(path) else None
    if said is None:
        return {}
    config = Config(said if isinstance(said, dict) else {"image_processor": said}, str(path))
    named = config.values.get("image_processor_type") or config.values.get("feature_extractor_type") or OWN[kind]
    name = str(named).replace("FeatureExtractor", "ImageProcessor").removesuffix("Fast")
    if name not in PROCESSORS:
        key = "image_processor_type" if config.values.get("image_processor_type") else "feature_extractor_type"
        raise config.refusal(key, f"known: {', '.join(PROCESSORS)}; name one of them and its keys")
    flags = {key: value for key, value in config.values.items() if key.startswith(FLAGS)}
    off = {key: False for key, value in flags.items() if value in (None, False)}  # null is not the default, but no
    config = Config(PROCESSORS[name] | dict(config.values) | off, str(path))
    made, how = scale(config, channels), vars(shape(config, name))
    config.harmless(*IGNORED, *off)
    config.finish()
    return made | {"processor": word("transformers", **{key: one for key, one in how.items() if one is not None})}


def scale(config: Config, channels: int) -> dict[str, Any]:
    """The mean and the deviation of numbers from 0 to 1 that do what a file says: by a factor, and to one scale."""
    if channels > CHANNELS:  # which are listed one by one before any weight is looked at
        raise Refusal(
            f"{config.where}: the model reads {channels} channels, more than {CHANNELS}; is num_channels right?"
        )
    if config.flag("do_convert_rgb", False) and channels != 3:
        raise config.refusal("do_convert_rgb", f"the model reads {channels} channels; set it to false")
    factor = config.positive("rescale_factor")
    factor = LEVELS * factor if config.flag("do_rescale") else LEVELS
    if not 1 / MOST < factor < MOST:
        raise config.refusal("rescale_factor", f"choose one from {1 / MOST} to {MOST}")
    mean, deviation = (numbers(config, key, channels) for key in HALF)
    if not config.flag("do_normalize"):
        if factor == 1:
            return dict.fromkeys(HALF)
        mean, deviation = [0.0] * channels, [1.0] * channels
    elif min(deviation) < 1 / MOST:
        raise config.refusal("image_std", f"it should be {1 / MOST} or more")
    return {"image_mean": [one / factor for one in mean], "image_std": [one / factor for one in deviation]}


def numbers(config: Config, key: str, channels: int) -> list[float]:
    """A number for each channel, or one for all of them."""
    value = config.take(key)
    each = value if isinstance(value, list) else [value] * channels
    if len(each) != channels or not all(type(one) in (int, float) and abs(one) < MOST for one in each):
        if not config.flag("do_normalize"):  # when they say nothing
            return [1.0] * channels
        raise config.refusal(key, f"it should be a number for each of {channels} channels")
    return [float(one) for one in each]


def shape(config: Config, name: str) -> TransformersProcessor:
    """Sizes, filters and crops: those of a class of transformers' image processors."""
    both, resample = config.flag("default_to_square"), config.take("resample")
    if type(resample) is not int or not 0 <= resample < len(FILTERS):
        raise config.refusal("resample", f"choose 0 to {len(FILTERS) - 1}, as PIL numbers its filters")
    size = sides(config, "size", both) if config.flag("do_resize") else {}
    crop = sides(config, "crop_size", True) if config.flag("do_center_crop", False) else {}
    if name == "ConvNextImageProcessor" and size:
        size, crop = convnext(config, size, crop)
    if "shortest_edge" in crop:
        raise config.refusal("crop_size", "give a height and a width")
    if not crop and "height" not in size:
        cure = "give size a height and a width, or do_center_crop and crop_size"
        raise config.refusal("size" if size else "do_resize", f"pictures would come out in many shapes; {cure}")
    given = {key: size[theirs] for key, theirs in EDGES.items() if theirs in size}
    given |= {f"crop_{key}": crop[theirs] for key, theirs in EDGES.items() if theirs in crop}
    made = TransformersProcessor(resample=resample, **given)
    pads(config, name, made)
    return made


def convnext(config: Config, size: Mapping[str, int], crop: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """ConvNeXT's way: small pictures are cropped out of larger ones, large ones are stretched."""
    side, part = size.get("shortest_edge"), config.positive("crop_pct")
    if side is None or len(size) > 1:
        raise config.refusal("size", "ConvNextImageProcessor wants shortest_edge alone; give it")
    if side >= WARPED:
        return square(side), crop
    if crop:
        raise config.refusal("do_center_crop", "pictures are cropped by crop_pct already; set it to false")
    return {"shortest_edge": side_of(config, "crop_pct", int(min(side / part, 2 * LARGEST)))}, square(side)


def sides(config: Config, key: str, both: bool) -> dict[str, int]:
    """A size as height and width, or as a shorter side and maybe the longest that the other may be."""
    value = config.take(key, None)
    if type(value) is int:
        value = square(value) if both else {"shortest_edge": value}
    if isinstance(value, list) and len(value) == 2:
        value = dict(zip(square(0), value, strict=True))
    known = ({"height", "width"}, {"shortest_edge"}, {"shortest_edge", "longest_edge"})
    if not isinstance(value, dict) or {one for one in value if value[one] is not None} not in known:
        raise config.refusal(key, "give height and width, or shortest_edge, or shortest_edge and longest_edge")
    return {one: side_of(config, key, side) for one, side in value.items() if side is not None}


def side_of(config: Config, key: str, side: Any) -> int:
    """A side that a picture can have."""
    if type(side) is not int or not 0 < side <= LARGEST:
        raise config.refusal(key, f"sides should be whole numbers from 1 to {LARGEST:,}")
    return side


def pads(config: Config, name: str, made: TransformersProcessor) -> None:
    """Refuses padding that adds something: it would be added to what is of one scale already."""
    if not config.flag("do_pad", False) or name in UNPADDED or config.values.get("pad_size") is None:
        return
    if sides(config, "pad_size", True) != dict(zip(square(0), made.shape, strict=True)):
        high, wide = made.shape
        raise config.refusal(
            "pad_size", f"pictures come out as {high} x {wide} pixels; set do_pad to false, or this so"
        )


def write(spec: ImageSpec, folder: Path) -> None:
    """What a spec says of pictures, for transformers' image processors."""
    said = json.dumps(processor_config(spec), indent=2, sort_keys=True)
    (folder / PROCESSOR).write_text(f"{said}\n", encoding="utf-8")


def processor_config(spec: ImageSpec) -> dict[str, Any]:
    """A picture fills the shape, and its middle is kept. That can be said of squares; others are filled by stretching.

    Of the processors that are known to every version, BiT's is the one that does no more and no less.
    """
    made, edge, crop = processor(spec), spec.high, (spec.high, spec.wide)
    if made is None and spec.high != spec.wide:
        warnings.warn(
            f"transformers cannot say that a picture fills {spec.high} x {spec.wide} pixels, its middle kept: "
            "there it is stretched to them; give it pictures of that shape",
            stacklevel=2,
        )
        made = TransformersProcessor(*crop, resample=BICUBIC)
    made = made or TransformersProcessor(shorter=edge, resample=BICUBIC, crop_high=edge, crop_wide=edge)
    return {
        "image_processor_type": "BitImageProcessor",
        "do_convert_rgb": spec.channels == 3,  # where there is one channel, pictures must be given in grey
        **made.keys(),
        "do_rescale": True,
        "rescale_factor": 1 / LEVELS,
        "do_normalize": spec.mean is not None,
        **(dict(zip(HALF, (spec.mean, spec.deviation), strict=True)) if spec.mean else {}),
    }
