"""Image processors of transformers and timm: what a folder says is done to pictures is done here, to the bit."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from PIL import Image

import heedful
from heedful import models
from heedful.data.images.decode import Size, picture
from heedful.errors import Refusal
from heedful.formats import image_processors
from heedful.formats.foreign_config import Config
from heedful.formats.layout_registry import LAYOUTS
from heedful.formats.timm import timm_folder
from heedful.models.vision.image_spec import ImageSpec, processor, standard
from heedful.pipelines.image_inputs import photograph_of
from heedful.pipelines.pipeline import unheard
from heedful.training import run
from heedful.training.trained_run import reopen_run
from tests.answered import plain
from tests.references.timm_here import timm

MODES = "RGB", "L", "RGBA", "P", "LA"
SMALL = {"channels": 3, "high": 16, "wide": 16, "width": 16, "heads": 2, "depth": 1, "patch": 4, "leading": 1}
CONVNEXT = {"image_processor_type": "ConvNextImageProcessor"}
VIT = {"image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 16}}


def photo(dice, place, mode="RGB", sides=None):
    high, wide = sides or dice.integers(1, 70, 2).tolist()
    Image.fromarray(dice.integers(0, 256, (high, wide, 4), dtype=np.uint8)).convert(mode).save(place)
    return place


def drawn(dice, name):
    """Keys of a processor, by chance there or not, in words of today or of old."""

    def side():
        return 4 * int(dice.integers(2, 9))

    def pick(*some):
        return some[int(dice.integers(len(some)))]

    sizes = [{"shortest_edge": side()}, side()]
    if name != "ConvNextImageProcessor":
        sizes += [{"height": side(), "width": side()}, [side(), side()], {"shortest_edge": 16, "longest_edge": side()}]
    config = {
        "size": pick(*sizes),
        "do_resize": pick(True, True, True, False, None),
        "resample": int(dice.integers(6)),
        "do_center_crop": pick(*(True, True, False) if len(sizes) > 2 else (False, None)),
        "crop_size": pick(side(), {"height": side(), "width": side()}, [side(), side()]),
        "crop_pct": pick(0.875, 0.9, 1.0),
        "do_rescale": pick(True, False, None),
        "rescale_factor": pick(1 / 255, 1 / 127.5, 0.01),
        "do_normalize": pick(True, False, None),
        "image_mean": pick([0.4, 0.5, 0.6], [100.0, 120.0, 90.0], 0.5),
        "image_std": pick([0.2, 0.3, 0.4], [60, 50, 70], 0.25),
        "do_pad": pick(False, None),
        "do_reduce_labels": False,
    }
    if name != "ConvNextImageProcessor":
        config["default_to_square"] = pick(True, False, None)
    return {key: value for key, value in config.items() if key == "crop_size" or dice.random() < 0.8} | {
        "do_convert_rgb": True
    }


def named(name, at):
    """How a file says its processor's class, today or of old, or leaves it to the layout."""
    old = {"feature_extractor_type": name.replace("ImageProcessor", "FeatureExtractor")}
    return ({"image_processor_type": name}, {"image_processor_type": f"{name}Fast"}, old)[at % 3]


def given(folder, path):
    """What transformers gives a model of a folder for a picture."""
    import transformers

    with Image.open(path) as image:
        return transformers.AutoImageProcessor.from_pretrained(folder)(image, return_tensors="pt")["pixel_values"]


def taken(path, keys):
    """What a model of ours computes with, for the keys that are read of pictures."""
    scale = {"mean": keys["image_mean"], "deviation": keys["image_std"]}
    spec = models.spec("resnet", channels=3, classes=2, **scale, processor=keys["processor"])
    how = processor(spec)
    levels = torch.from_numpy(picture(path, Size(3, *how.shape), how))[None].float() / 255
    return (standard(spec) or torch.nn.Identity())(levels)


def test_the_processors_of_all_layouts_of_images_are_known_with_their_defaults():
    import transformers
    from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES as theirs

    seeing = {kind for kind, layout in LAYOUTS.items() if issubclass(models.FAMILIES[layout.family].spec, ImageSpec)}
    assert {kind: theirs[kind]["torchvision"] for kind in seeing} == image_processors.OWN
    for name, keys in image_processors.PROCESSORS.items():
        made = getattr(transformers, f"{name}Pil")()
        own = {"default_to_square": made.default_to_square, **vars(made)}
        for key, value in keys.items():
            own[key] = dict(own[key]) if isinstance(value, dict) else own[key]
            assert own[key] == (tuple(value) if isinstance(value, list) else value), (name, key)
        assert all(keys.get(key) or not own[key] for key in own if key.startswith("do_")), name


def test_pixels_are_those_of_transformers_over_random_configs_and_pictures(tmp_path):
    dice, done, refusals = np.random.default_rng(5), dict.fromkeys(image_processors.PROCESSORS, 0), set()
    for at in range(120):
        kind = list(image_processors.OWN)[at % len(image_processors.OWN)]
        name = list(done)[int(dice.integers(len(done)))] if at % 3 else image_processors.OWN[kind]
        config = drawn(dice, name) | (named(name, at // 3) if at % 3 else {})
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
        (tmp_path / image_processors.PROCESSOR).write_text(json.dumps(config))
        path = photo(dice, tmp_path / "photo.png", MODES[at % len(MODES)])
        try:
            keys = image_processors.read_processor(tmp_path, kind, 3)
        except Refusal as refused:
            refusals.add(str(refused))
            continue
        theirs = given(tmp_path, path).float()
        torch.testing.assert_close(taken(path, keys), theirs, rtol=0, atol=2e-6 * (1 + float(theirs.abs().max())))
        done[name] += 1
    assert min(done.values()) > 3 and sum(done.values()) > 60, done
    assert all("many shapes" in refused or "by crop_pct" in refused for refused in refusals), refusals


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("image_processor_type", {"image_processor_type": "EfficientNetImageProcessor"}),
        ("feature_extractor_type", {"image_processor_type": None, "feature_extractor_type": "DonutFeatureExtractor"}),
        ("rescale_offset", {"rescale_offset": True}),
        ("do_thumbnail", {"do_thumbnail": True}),
        ("auto_map", {"auto_map": {"AutoImageProcessor": "code.Processor"}}),
        ("size", {"size": {"shortest_edge": 16}}),
        ("size", {"size": {"max_height": 16, "max_width": 16}}),
        ("size", {"size": 1 << 30}),
        ("size", {"size": [16, 16.5]}),
        ("do_resize", {"do_resize": False}),
        ("do_resize", {"do_resize": "yes"}),
        ("crop_size", {"do_center_crop": True, "crop_size": {"shortest_edge": 16}}),
        ("crop_size", {"do_center_crop": True}),
        ("pad_size", {"do_pad": True, "pad_size": {"height": 32, "width": 32}}),
        ("resample", {"resample": 6}),
        ("rescale_factor", {"rescale_factor": 0}),
        ("rescale_factor", {"rescale_factor": 1e-300}),
        ("crop_pct", CONVNEXT | {"size": 16, "crop_pct": 1e-320}),
        ("image_mean", {"image_mean": [0.5, 0.5]}),
        ("image_mean", {"image_mean": [10**400, 0, 0]}),
        ("image_std", {"image_std": [0.5, 0.5, 0]}),
        ("do_center_crop", CONVNEXT | {"size": 16, "do_center_crop": True, "crop_size": 8}),
        ("size", CONVNEXT),
    ],
)
def test_what_is_not_obeyed_is_refused_by_its_key(key, keys, tmp_path):
    (tmp_path / image_processors.PROCESSOR).write_text(json.dumps(VIT | keys))
    with pytest.raises(Refusal, match=rf"{image_processors.PROCESSOR}: {key} is .*; \w"):
        image_processors.read_processor(tmp_path, "vit", 3)
    nested = json.dumps({"image_processor": VIT})  # which goes before the other
    (tmp_path / image_processors.NESTED_PROCESSOR).write_text(nested)
    found = image_processors.read_processor(tmp_path, "vit", 3)
    assert found["processor"] == "transformers(high=16, wide=16, resample=2)"


@pytest.mark.parametrize("keys", [{}, {"image_mean": 0.5}, {"do_normalize": False, "rescale_factor": 0.01}])
def test_absurdly_many_channels_are_refused_before_they_are_listed(keys, tmp_path):
    (tmp_path / image_processors.PROCESSOR).write_text(json.dumps(VIT | keys))
    with pytest.raises(Refusal, match="reads 1000000000000000 channels, more than 65536; is num_channels right"):
        image_processors.read_processor(tmp_path, "vit", 10**15)


OTHERS = {  # another shape than the models', where theirs take it
    "vit": {**VIT, "resample": 0},
    "dinov2": {"size": {"shortest_edge": 15}, "crop_size": {"height": 12, "width": 8}, "resample": 0},
}


@pytest.mark.parametrize("kind", OTHERS)
def test_predict_eval_and_look_see_what_the_folder_says(kind, tmp_path):
    import transformers

    more = {"dinov2": {"order": "scaled(first=1.0)", "pool": "both"}}.get(kind, {})
    torch.manual_seed(0)
    heedful.save(heedful.build("vit", **SMALL, classes=3, **more).eval(), tmp_path / "there", layout="hf")
    (tmp_path / "there" / image_processors.PROCESSOR).write_text(json.dumps(OTHERS[kind] | {"do_convert_rgb": True}))
    theirs = transformers.AutoModelForImageClassification.from_pretrained(tmp_path / "there").eval()
    dice, wanted = np.random.default_rng(1), {}
    for at in range(9):
        place = tmp_path / "data" / f"LABEL_{at % 3}" / f"{at}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        with torch.no_grad():
            answer = theirs(given(tmp_path / "there", photo(dice, place))).logits
        wanted[str(place)] = theirs.config.id2label[int(answer.argmax())]
    model, use = run.usable(tmp_path / "there")
    use = dataclasses.replace(
        use, learned=dataclasses.replace(use.learned, labels=tuple(theirs.config.id2label.values()))
    )
    assert plain(use.predict(model, wanted)) == [*wanted.values()]
    use, found = reopen_run(tmp_path / "there", use, [f"data.test={tmp_path / 'data'}"], "test")
    answers = use.pipeline.results(model, found, use.learned, unheard)
    assert [said.name for said in answers] == [wanted[one.place] for one in found]
    path = next(iter(wanted))
    Image.open(path).convert("RGB").resize((3, 4)).resize((50, 90), Image.Resampling.BICUBIC).save(path)  # smooth
    whole, frame = photograph_of(path, use.learned)
    assert whole.shape == (3, 90, 50)
    box = [share * side for share, side in zip(frame, (50, 90) * 2, strict=True)]
    small = use.pipeline.accepts(path, use.learned).pixels.transpose(1, 2, 0)
    large = Image.fromarray(whole.transpose(1, 2, 0))
    again = np.asarray(large.transform(small.shape[1::-1], Image.Transform.EXTENT, box, Image.Resampling.BILINEAR))
    assert np.abs(again.astype(int) - small).mean() < 4 < small.std()
    shown = [part for part in use.look(model, path).sections if part.title.startswith("rollout")]
    cells = (use.learned.size.high // 4, use.learned.size.wide // 4)
    assert shown and all(tuple(weights.shape) == cells for part in shown for _, weights in part.weights)


def test_what_a_folder_says_of_pictures_is_kept_by_every_layout(tmp_path):
    dice = np.random.default_rng(2)
    heedful.save(heedful.build("vit", **SMALL, classes=3), tmp_path / "one", layout="hf")
    for at, name in enumerate(("BeitImageProcessor", "CLIPImageProcessor", "ViTImageProcessor")):
        config = VIT | {"image_processor_type": name, "rescale_factor": 0.01, "do_center_crop": at == 1, "crop_size": 8}
        (tmp_path / "one" / image_processors.PROCESSOR).write_text(json.dumps(config | {"do_convert_rgb": True}))
        heedful.save(heedful.load(tmp_path / "one"), tmp_path / f"own {at}")
        heedful.save(heedful.load(tmp_path / f"own {at}"), tmp_path / f"two {at}", layout="hf")
        path = photo(dice, tmp_path / "photo.png")
        torch.testing.assert_close(given(tmp_path / f"two {at}", path), given(tmp_path / "one", path))


def as_timm(image, size, crop_pct, crop_mode, interpolation):
    """What timm's transforms for tests do to an image, by torchvision's words for a resize and a centre crop."""
    scaled = [int(side / crop_pct) for side in size]
    short = min(image.size)
    sides = [int(scaled[0] * side / short) if side > short else scaled[0] for side in image.size]
    image = image.resize(scaled[::-1] if crop_mode == "squash" else sides, Image.Resampling[interpolation.upper()])
    spare = [max(0, side - kept) for side, kept in zip(image.size, size[::-1], strict=True)]
    lack = [max(0, kept - side) for side, kept in zip(image.size, size[::-1], strict=True)]
    whole = Image.new("RGB", tuple(side + less for side, less in zip(image.size, lack, strict=True)))
    whole.paste(image, (lack[0] // 2, lack[1] // 2))
    left, top = (round(one / 2) for one in spare)
    return whole.crop((left, top, left + size[1], top + size[0]))


def test_pixels_are_those_of_timm_over_random_configs_and_pictures(tmp_path):
    dice, resolved = np.random.default_rng(3), timm().data.resolve_data_config
    for at in range(48):
        side = int(dice.integers(8, 40))
        keys = {"crop_pct": [0.875, 0.9, 1.0, 1.3][at % 4], "crop_mode": ["center", "squash"][at // 4 % 2]}
        keys |= {"interpolation": ["bicubic", "bilinear", "nearest"][at % 3], "mean": [0.5, 0.4, 0.3], "std": [0.2] * 3}
        told = {"input_size": [3, side, side], **{key: one for key, one in keys.items() if dice.random() < 0.7}}
        if at % 8 > 3:
            told["input_size"][2] += int(dice.integers(8)) * ("crop_mode" in told)
        made = timm_folder.pixels(Config({"pretrained_cfg": told}, "config.json"), told, told["input_size"])
        whole = resolved(pretrained_cfg=told)
        path = photo(dice, tmp_path / "photo.png")
        spec = models.spec("resnet", channels=3, classes=2, **made)
        assert (spec.mean, spec.deviation) == ([*whole["mean"]], [*whole["std"]])
        own = picture(path, Size(3, *processor(spec).shape), processor(spec))
        words = {key: whole[key] for key in ("crop_pct", "crop_mode", "interpolation")}
        wanted = np.asarray(as_timm(Image.open(path).convert("RGB"), told["input_size"][1:], **words))
        assert np.array_equal(own, wanted.transpose(2, 0, 1)), (told, own.shape)


@pytest.mark.parametrize("keys", [{"crop_mode": "border"}, {"interpolation": "random"}, {"crop_pct": -1}, {"std": "x"}])
def test_what_timm_does_and_is_not_done_here_is_refused(keys):
    config = Config({"pretrained_cfg": keys}, "config.json")
    with pytest.raises(Refusal, match=f"pretrained_cfg is .*; its {next(iter(keys))} "):
        timm_folder.pixels(config, keys, [3, 16, 16])
