"""Models of images that are saved for transformers: its processor, its model and its names of classes say the same."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

import heedful
from heedful.data.images.decode import Size, picture
from heedful.formats.hf.vit import PIXELS
from heedful.training import run
from tests.answered import plain

NAMES = ["cat", "crane", "crane"]  # as ImageNet has it, a name twice
SCALE = {"mean": [0.5, 0.4, 0.3], "deviation": [0.2, 0.3, 0.4]}
SIDES = {"channels": 3, "high": 16, "wide": 16, "classes": 3, "labels": NAMES, **SCALE}
SMALL = {**SIDES, "width": 16, "heads": 2, "depth": 1, "patch": 4}
FAMILIES = {
    "vit": ("vit", {**SMALL, "leading": 1}),
    "deit": ("vit", {**SMALL, "leading": 2, "distilled": True}),
    "dinov2": ("vit", {**SMALL, "leading": 1, "order": "scaled(first=1.0)", "pool": "both"}),
    "beit": ("beit", SMALL),
    "swin": ("swin", {**SIDES, "width": 8, "heads": 2, "depths": [1, 1], "patch": 2, "window": 2}),
    "resnet": ("resnet", {**SIDES, "width": 4, "depths": [1, 1]}),
}


def drawn(family, **numbers):
    torch.manual_seed(0)
    return heedful.build(family, **numbers).eval()


def photo(folder, high, wide, grey=False):
    shape = (high, wide) if grey else (high, wide, 3)
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8))
    image.save(folder / "photo.png")
    return image, folder / "photo.png"


def seen(path, spec):
    """A picture as a model of ours is given it."""
    return torch.from_numpy(picture(path, Size(spec.channels, spec.high, spec.wide)))[None].float() / 255


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_picture_is_answered_alike_and_by_name(kind, tmp_path):
    import transformers

    family, numbers = FAMILIES[kind]
    model = drawn(family, **numbers)
    heedful.save(model, tmp_path / "there", layout="hf")
    theirs = transformers.AutoModelForImageClassification.from_pretrained(tmp_path / "there").eval()
    assert theirs.config.model_type == kind and theirs.config.id2label == dict(enumerate(NAMES))
    assert not {*PIXELS.values()} & json.loads((tmp_path / "there" / "config.json").read_text()).keys()
    image, path = photo(tmp_path, 40, 40)
    given = transformers.AutoImageProcessor.from_pretrained(tmp_path / "there")(image, return_tensors="pt")
    with torch.no_grad():
        one, two = model(seen(path, model.spec)), theirs(**given).logits
    torch.testing.assert_close(one, two, rtol=0, atol=1e-4)
    assert one.std() > 1e-3
    again, use = run.usable(tmp_path / "there")
    assert {key: getattr(again.spec, key) for key in SIDES} == SIDES
    assert torch.equal(again(seen(path, model.spec)), model(seen(path, model.spec)))
    assert plain(use.predict(again, [str(path)])) == [NAMES[int(one.argmax())]]


def test_a_pipeline_says_what_predict_says_and_the_middle_of_a_wide_picture_is_kept(tmp_path):
    import transformers

    model = drawn("vit", **SMALL)
    heedful.save(model, tmp_path / "there", layout="hf")
    _, path = photo(tmp_path, 16, 40)  # of the same height, so that nothing is resized
    said = transformers.pipeline("image-classification", model=str(tmp_path / "there"))(str(path))[0]
    again, use = run.usable(tmp_path / "there")
    assert plain(use.predict(again, [str(path)])) == [said["label"]]
    assert next(use.predict(again, [str(path)])).chance == pytest.approx(said["score"], abs=1e-5)


def test_what_is_grey_or_no_square_or_has_no_scale_is_said_as_far_as_it_can_be(tmp_path):
    import transformers

    sides = {**SMALL, "channels": 1, "high": 8, "wide": 16, "mean": None, "deviation": None}
    model = drawn("vit", **sides)
    with pytest.warns(UserWarning, match="cannot say that a picture fills 8 x 16 pixels"):
        heedful.save(model, tmp_path / "there", layout="hf")
    image, path = photo(tmp_path, 20, 40, grey=True)
    given = transformers.AutoImageProcessor.from_pretrained(tmp_path / "there")(image, return_tensors="pt")
    torch.testing.assert_close(given["pixel_values"], seen(path, model.spec), rtol=0, atol=1e-6)
    again = heedful.load(tmp_path / "there")
    assert again.spec.mean is None and torch.equal(again(seen(path, model.spec)), model(seen(path, model.spec)))


def test_an_autoencoder_has_a_scale_and_no_classes(tmp_path):
    import transformers

    decoder = {"decoder_width": 8, "decoder_depth": 1, "decoder_heads": 2}
    numbers = {key: value for key, value in SMALL.items() if key not in ("classes", "labels")}
    heedful.save(drawn("mae", **numbers, **decoder), tmp_path / "there", layout="hf")
    read = transformers.AutoImageProcessor.from_pretrained(tmp_path / "there")
    assert [[*read.image_mean], [*read.image_std]] == [*SCALE.values()]
    spec = heedful.load(tmp_path / "there").spec
    assert [spec.mean, spec.deviation] == [*SCALE.values()] and not {"classes", "labels"} & {*type(spec).model_fields}
