"""BEiT against transformers' at random weights: every layer, both kinds of bias, classes and visual tokens."""

from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from heedful.formats import native
from tests.references.test_dino import drawn
from tests.references.test_vit import CLOSE, images, states

SMALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
CASES: dict[str, dict[str, Any]] = {
    "a bias for every layer": {"image_size": 12, "patch_size": 4, "use_relative_position_bias": True},
    "a bias for all": {"image_size": 9, "patch_size": 3, "num_channels": 1, "use_shared_relative_position_bias": True},
    "positions, the class token": {
        **{"image_size": 12, "patch_size": 4, "use_absolute_position_embeddings": True, "use_mean_pooling": False},
        **{"layer_scale_init_value": 0.0},
    },
}


@pytest.mark.parametrize("case", CASES)
def test_every_layer_and_answer_is_theirs(case: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BeitConfig(**SMALL | CASES[case], id2label={n: str(n) for n in range(5)})
    model = drawn(transformers.BeitForImageClassification(config))
    model.save_pretrained(tmp_path / "theirs")
    own = heedful.load(tmp_path / "theirs")
    side = own.spec.patch
    for high, wide in ((own.spec.high, own.spec.wide), (4 * side, 4 * side)):
        x = images(own, high, wide)
        with torch.no_grad():
            layers, answer = states(own, x)
            wanted = model(x, output_hidden_states=True, interpolate_pos_encoding=True)
        for at, (mine, other) in enumerate(zip(layers, wanted.hidden_states, strict=True)):
            torch.testing.assert_close(mine, other, **CLOSE, msg=f"layer {at}")
        torch.testing.assert_close(answer, wanted.logits, **CLOSE)
    heedful.save(own, tmp_path / "ours", layout="hf")
    again = type(model).from_pretrained(tmp_path / "ours").eval()
    x = images(own, own.spec.high, own.spec.wide)
    with torch.no_grad():
        assert torch.equal(again(x).logits, model(x).logits)


def test_what_stands_behind_hidden_patches_is_theirs(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    numbers = {"image_size": 12, "patch_size": 4, "use_shared_relative_position_bias": True, "use_mask_token": True}
    config = transformers.BeitConfig(**SMALL | numbers, vocab_size=11)
    model = drawn(transformers.BeitForMaskedImageModeling(config))
    model.save_pretrained(tmp_path / "theirs")
    own = heedful.load(tmp_path / "theirs")
    x, hidden = images(own, 12, 12), torch.rand(3, 9, generator=torch.Generator().manual_seed(0)) < 0.4
    with torch.no_grad():
        wanted = model(x, bool_masked_pos=hidden).logits
        torch.testing.assert_close(own.guess(x, hidden), wanted, **CLOSE)


def test_what_was_pre_trained_here_is_theirs_without_the_autoencoder_that_taught_it(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"width": 16, "heads": 2, "depth": 1, "hidden": 24, "patch": 4, "channels": 3, "high": 12, "wide": 12}
    own = heedful.build("beit", **sizes, vocab=7, tokenizer_width=5, mask_ratio=0.5, bias="shared").eval()
    heedful.save(own, tmp_path / "own")
    (tmp_path / "own" / "task.json").write_text("{}")
    with pytest.warns(UserWarning, match=r"the autoencoder that taught the model \(tokenizer_width=5\) is left out"):
        kind, count = native.convert(tmp_path / "own", tmp_path / "theirs", "hf")
    whole, taught = (sum(p.numel() for p in part.parameters()) for part in (own, own.coder))
    assert (kind, count) == ("beit", whole - taught)
    assert not (tmp_path / "theirs" / "task.json").exists()  # no guess can be scored without what it should be
    model = transformers.BeitForMaskedImageModeling.from_pretrained(tmp_path / "theirs").eval()
    x, hidden = images(own, 12, 12), torch.rand(3, 9, generator=torch.Generator().manual_seed(0)) < 0.4
    with torch.no_grad():
        torch.testing.assert_close(own.guess(x, hidden), model(x, bool_masked_pos=hidden).logits, **CLOSE)
