"""Folders of others with models of images: classes by name, vectors, what is hidden; at the scale they learned."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

import heedful
from heedful.data.images.decode import Size
from heedful.errors import Refusal
from heedful.pipelines.image_preprocessing import ImageClasses
from heedful.training import run
from tests.answered import plain

SIZES = {"channels": 3, "high": 8, "wide": 8, "patch": 4, "width": 16, "heads": 2, "depth": 1}


@pytest.fixture
def photo(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png", torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255


def changed(folder, name, **more):
    there = json.loads((folder / name).read_text()) if (folder / name).exists() else {}
    (folder / name).write_text(json.dumps(there | more))


def test_classes_are_told_by_their_names_and_pixels_at_the_scale_that_was_learned(tmp_path, photo):
    torch.manual_seed(0)
    path, image = photo
    model = heedful.build("vit", **SIZES, classes=3).eval()
    heedful.save(model, tmp_path / "there", layout="hf")
    changed(tmp_path / "there", "config.json", id2label={"0": "cat", "1": "dog", "2": "gnu"})
    scale = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4], "do_normalize": True}
    changed(tmp_path / "there", "preprocessor_config.json", **scale)
    again, use = run.usable(tmp_path / "there")
    assert again.spec.mean == [0.5, 0.4, 0.3] and again.spec.deviation == [0.2, 0.3, 0.4]
    scaled = (image - torch.tensor([0.5, 0.4, 0.3])[:, None, None]) / torch.tensor([0.2, 0.3, 0.4])[:, None, None]
    wanted = ["cat", "dog", "gnu"][int(model(scaled).argmax())]
    assert plain(use.predict(again, [str(path)])) == [wanted]
    assert use.look(again, str(path)).name.startswith(f"photo.png → {wanted}")
    changed(tmp_path / "there", "preprocessor_config.json", image_mean="bright")
    with pytest.raises(Refusal, match="should be a"):
        heedful.load(tmp_path / "there")


def test_a_model_that_does_not_name_its_classes_is_asked_by_the_names_of_its_task(tmp_path, photo):
    model = heedful.build("vit", **SIZES, classes=2, mean=[0.0] * 3, deviation=[1.0] * 3).eval()
    heedful.save(model, tmp_path / "there")
    ImageClasses.unscaled(["cat", "dog"], Size(3, 8, 8)).write(tmp_path / "there", "image-classification")
    again, use = run.usable(tmp_path / "there")
    assert plain(use.predict(again, [str(photo[0])])) == [["cat", "dog"][int(model(photo[1]).argmax())]]


def test_a_model_without_classes_gives_vectors_and_an_autoencoder_its_skill(tmp_path, photo):
    path, image = photo
    model = heedful.build("vit", **SIZES, order="scaled(first=1.0)", leading=1).eval()
    heedful.save(model, tmp_path / "dino", layout="hf")
    again, use = run.usable(tmp_path / "dino")
    [said] = plain(use.predict(again, [str(path)]))
    with torch.no_grad():
        wanted = model(image)[0]
    torch.testing.assert_close(torch.tensor(json.loads(said)), wanted, rtol=0, atol=1e-6)
    assert any("segments" in part.title for part in use.look(again, str(path)).sections)
    decoder = {"decoder_width": 8, "decoder_depth": 1, "decoder_heads": 2}
    heedful.save(heedful.build("mae", **SIZES, **decoder), tmp_path / "mae", layout="hf")
    rebuilt, use = run.usable(tmp_path / "mae")
    assert use.name == "masked-autoencoding" and float(plain(use.predict(rebuilt, [str(path)]))[0]) < 1
