"""The masked autoencoder against transformers' at random weights: what it makes of every patch, and its loss."""

import json

import pytest
import torch
from torch import nn

import heedful
from heedful.data.readers.labelled_images import Shapes
from heedful.errors import Refusal
from heedful.objectives.masked_patches import PIXELS, rebuild
from heedful.tasks.vision.masked_autoencoding import TASK

NUMBERS = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
DECODER = {"decoder_hidden_size": 16, "decoder_num_hidden_layers": 2, "decoder_num_attention_heads": 2}
NAMES = {
    "norm1": "layernorm_before",
    "norm2": "layernorm_after",
    "feedforward.up": "mlp.fc1",
    "feedforward.down": "mlp.fc2",
    "attention.join": "attention.o_proj",
}


def pair() -> tuple[nn.Module, nn.Module]:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ViTMAEConfig(
        **NUMBERS, **DECODER, decoder_intermediate_size=64, image_size=20, patch_size=4, norm_pix_loss=True
    )
    theirs = transformers.ViTMAEForPreTraining(config).eval()
    with torch.no_grad():
        for name, tensor in theirs.named_parameters():
            if "pos" not in name:
                tensor.copy_(torch.randn(tensor.shape) * 0.3)
        alone = type(theirs.vit.embeddings)(config)  # within a model it leaves its tables of sines at zero
        alone.initialize_weights()
        theirs.vit.embeddings.position_embeddings.copy_(alone.position_embeddings)
        theirs.decoder.initialize_weights(25)
    own = heedful.build(
        "mae", channels=3, high=20, wide=20, patch=4, width=24, depth=2, heads=4, hidden=96, norm="layer(eps=1e-12)",
        decoder_width=16, decoder_depth=2, decoder_heads=2,
    ).eval()  # fmt: skip
    copy(theirs, own)
    return theirs, own


@torch.no_grad()
def copy(theirs: nn.Module, own: nn.Module) -> None:
    embeddings, decoder = theirs.vit.embeddings, theirs.decoder
    own.inputs.leading.copy_(embeddings.cls_token[0])
    own.inputs.stem.matrix.weight.copy_(embeddings.patch_embeddings.projection.weight.flatten(1))
    own.inputs.stem.matrix.bias.copy_(embeddings.patch_embeddings.projection.bias)
    for blocks, layers in ((own.encoder.blocks, theirs.vit.layers), (own.decoder.blocks, decoder.decoder_layers)):
        for block, layer in zip(blocks, layers, strict=True):
            parts = [layer.attention.q_proj, layer.attention.k_proj, layer.attention.v_proj]
            for kind in ("weight", "bias"):
                getattr(block.attention.project.to_qkv, kind).copy_(torch.cat([getattr(one, kind) for one in parts]))
                for ours, name in NAMES.items():
                    getattr(block.get_submodule(ours), kind).copy_(getattr(layer.get_submodule(name), kind))
    own.blank.copy_(decoder.mask_token[0, 0])
    for mine, other in (
        (own.encoder.norm, theirs.vit.layernorm),
        (own.bridge, decoder.decoder_embed),
        (own.decoder.norm, decoder.decoder_norm),
    ):
        mine.load_state_dict(other.state_dict())
    order = torch.arange(48).view(4, 4, 3).permute(2, 0, 1).flatten()  # theirs: pixel by pixel, all channels of each
    own.outputs.weight.copy_(decoder.decoder_pred.weight[order])
    own.outputs.bias.copy_(decoder.decoder_pred.bias[order])


def test_what_is_rebuilt_and_the_loss_are_theirs():
    theirs, own = pair()
    images = torch.rand(3, 3, 20, 20)
    dice = torch.arange(3) + 5
    from heedful.data.sample_dice import draw

    noise = draw(dice, 25, PIXELS)
    with torch.no_grad():
        wanted = theirs(images, noise=noise)
        found, _, seen, made = rebuild(own, images, dice)
    order = torch.arange(48).view(4, 4, 3).permute(2, 0, 1).flatten()
    torch.testing.assert_close(made, wanted.logits[..., order], rtol=0, atol=1e-5)
    hidden = torch.ones(3, 25).scatter(1, seen, 0.0)
    assert torch.equal(hidden, wanted.mask)
    torch.testing.assert_close(found.mean(), wanted.loss, rtol=1e-4, atol=1e-4)


def test_patches_and_images_are_each_others_inverse_and_what_is_hidden_is_not_seen():
    model = heedful.build(
        "mae", channels=2, high=8, wide=12, patch=4, width=16, depth=1, heads=2, decoder_width=8, decoder_depth=1,
        decoder_heads=2,
    ).double()  # fmt: skip
    images = torch.rand(2, 2, 8, 12, dtype=torch.float64)
    assert torch.equal(model.whole(model.patches(images), (2, 3)), images)
    seen = torch.tensor([[0, 4], [5, 1]])
    other = model.patches(images)
    other[0, [1, 2, 3, 5]] += 1
    other[1, [0, 2, 3, 4]] += 1
    torch.testing.assert_close(model(images, seen), model(model.whole(other, (2, 3)), seen), rtol=0, atol=1e-12)


def test_what_is_hidden_is_another_in_every_epoch_and_a_plain_guess_has_no_skill():
    task, splits = TASK.open(Shapes(name="shapes", samples=12, held_out=8, pixels=[8, 8]), 3)
    assert "classes" not in task.facts()
    model = heedful.build(
        "mae", **task.facts(), patch=4, width=16, depth=1, heads=2, decoder_width=8, decoder_depth=1, decoder_heads=2
    )
    batches = [task.batch(task.augmented(splits.train[:6], epoch)) for epoch in (0, 1, 0)]
    one, two, again = (task.loss(model, batch)[0] for batch in batches)
    assert torch.equal(one, again) and not torch.equal(one, two)
    with torch.no_grad():
        model.outputs.weight.zero_(), model.outputs.bias.zero_()
    assert task.score(model, splits.test)["skill"] == pytest.approx(0.0, abs=1e-6)
    shown = task.look(model, task.as_input(splits.test[0]))
    assert [len(one.rows) for one in shown.maps] == [2, 5] and len(shown.sections[0].pictures) == 3


def test_positions_of_an_absurd_image_are_not_reckoned(tmp_path):
    heedful.save(
        heedful.build("mae", channels=1, high=8, wide=8, patch=4, width=8, heads=2), tmp_path / "mae", layout="hf"
    )
    config = json.loads((tmp_path / "mae" / "config.json").read_text())
    (tmp_path / "mae" / "config.json").write_text(json.dumps(config | {"image_size": [8_000_000_000, 16]}))
    with pytest.raises(Refusal):
        heedful.load(tmp_path / "mae")
