"""A run that is asked for another layout checks it before its first step, and writes it after the last."""

import pytest
import torch

import heedful
from heedful.errors import Refusal
from heedful.training.export import check_export
from heedful.training.run import device, prepare, train
from heedful.training.spec import recipes

TINY = ["data=toy", "data.samples=60", "data.held_out=16", "training.steps=2", "training.batch=8", "training.threads=1"]


def test_a_layout_that_cannot_say_the_model_is_refused_before_the_first_step_with_the_words_that_it_can(tmp_path):
    asked = recipes.resolve("translate", [*TINY, "export=hf"])
    with pytest.raises(Refusal, match=r"export=hf: .*position='rotary'; train it with model\.position=sine_halves, or"):
        train(asked, tmp_path / "run", False, device("cpu"))
    assert not (tmp_path / "run").exists()
    ready = prepare(recipes.resolve("translate", [*TINY, "export=hf", "model.position=sine_halves"]), device("cpu"))
    check_export(ready.run, ready.model)
    with pytest.raises(Refusal, match=r"export=onnx: .* is not written as ONNX"):
        check_export(recipes.resolve("series", [*TINY, "export=onnx"]), heedful.build("forecaster", channels=2))


@pytest.mark.parametrize("recipe", ["classify", "tag"])
def test_what_begins_with_a_public_encoder_is_written_as_one_without_another_word(tmp_path, recipe):
    small = ["model.width=16", "model.heads=2", "model.depth=1", "model.order=post", "model.position=learned"]
    first = recipes.resolve("bert-text", [*TINY, *small])
    train(first, tmp_path / "first", False, device("cpu"))
    heedful.save(heedful.load(tmp_path / "first"), tmp_path / "public", layout="hf")
    asked = recipes.resolve(recipe, [*TINY, f"start={tmp_path / 'public'}", "export=hf"])
    train(asked, tmp_path / "run", False, device("cpu"))
    one, two = (heedful.load(tmp_path / "run" / name) for name in ("model", "hf"))
    tokens = torch.randint(8, 20, (2, 5))
    assert torch.equal(one(tokens), two(tokens)) and two.spec.labels
