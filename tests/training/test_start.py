"""A run may begin with what another model has learned: what fits is taken over, and what does not is told."""

import pytest
import torch

import heedful
from heedful import recipes
from heedful.checkpoints.weights import state
from heedful.errors import Refusal
from heedful.training.prepare import prepare
from heedful.training.start import begin

CPU = torch.device("cpu")
SMALL = ["data=toy", "data.samples=60", "data.held_out=12", "data.pixels=[8,8]"]
SIZES = ["model.width=16", "model.heads=2", "model.depth=2", "model.hidden=24"]


def test_a_masked_autoencoders_encoder_begins_a_classifier(tmp_path):
    torch.manual_seed(5)
    sizes = {"width": 16, "heads": 2, "depth": 2, "hidden": 24, "patch": 4, "channels": 3, "high": 8, "wide": 8}
    decoder = {"decoder_width": 8, "decoder_depth": 1, "decoder_heads": 1}
    learned = heedful.build("mae", **sizes, **decoder)
    heedful.save(learned, tmp_path / "mae")
    run = recipes.resolve("vit", [*SMALL, *SIZES, "model.position=sine", f"start={tmp_path / 'mae'}"])
    ready = prepare(run, CPU)
    own, there = state(ready.model), state(learned)
    for name, tensor in own.items():
        assert (name in there and torch.equal(tensor, there[name])) == (not name.startswith("outputs")), name
    assert "anew: outputs.weight, outputs.bias" in ready.start


def test_a_table_of_positions_is_resized_to_the_grid(tmp_path):
    numbers = {"channels": 1, "width": 8, "heads": 2, "depth": 1, "patch": 4}
    large = heedful.build("vit", high=16, wide=12, classes=3, **numbers)
    heedful.save(large, tmp_path / "large")
    small = heedful.build("vit", high=8, wide=8, classes=5, **numbers)
    told = begin(small, tmp_path / "large")
    assert torch.equal(small.inputs.position.table, large.inputs.position.resized((2, 2)))
    assert torch.equal(small.inputs.leading, large.inputs.leading) and "anew: outputs.weight, outputs.bias" in told


def test_another_model_altogether_is_refused(tmp_path):
    heedful.save(heedful.build("vit", channels=1, high=8, wide=8, patch=4, width=8, heads=2), tmp_path / "narrow")
    wide = heedful.build("vit", channels=1, high=8, wide=8, patch=4, width=16, heads=2)
    with pytest.raises(Refusal, match=r"0 % of the weights fit, so it is another model"):
        begin(wide, tmp_path / "narrow")
