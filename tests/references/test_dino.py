"""DINOv2 and the masked autoencoder against transformers' at random weights, read from their own folders."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import heedful
from heedful.errors import Refusal
from tests.references.test_vit import CLOSE, images, states

SMALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
CASES: dict[str, dict[str, Any]] = {
    "plain": {"image_size": 12, "patch_size": 4, "mlp_ratio": 2, "layerscale_value": 0.5},
    "gated, one channel": {"image_size": 9, "patch_size": 3, "num_channels": 1, "use_swiglu_ffn": True},
}


def drawn(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if tensor.requires_grad and "pos_embed" not in name:
                tensor.copy_(torch.randn(tensor.shape, generator=torch.Generator().manual_seed(len(name))) * 0.3)
    return model.eval()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["Dinov2Model", "Dinov2ForImageClassification"])
def test_every_layer_and_answer_is_theirs_at_any_size(kind: str, case: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.Dinov2Config(**SMALL | CASES[case], id2label={n: str(n) for n in range(5)})
    model = drawn(getattr(transformers, kind)(config))
    model.save_pretrained(tmp_path / "theirs")
    own = heedful.load(tmp_path / "theirs")
    side = own.spec.patch
    for high, wide in ((own.spec.high, own.spec.wide), (2 * side, 5 * side)):
        x = images(own, high, wide)
        with torch.no_grad():
            layers, answer = states(own, x)
            wanted = model(x, output_hidden_states=True)
        for at, (mine, other) in enumerate(zip(layers, wanted.hidden_states, strict=True)):
            torch.testing.assert_close(mine, other, **CLOSE, msg=f"layer {at}")
        torch.testing.assert_close(answer, wanted.pooler_output if kind == "Dinov2Model" else wanted.logits, **CLOSE)
    heedful.save(own, tmp_path / "ours", layout="hf")
    again = type(model).from_pretrained(tmp_path / "ours").eval()
    x = images(own, own.spec.high, own.spec.wide)
    with torch.no_grad():
        assert all(torch.equal(a, b) for a, b in zip(again(x).to_tuple(), model(x).to_tuple(), strict=True))


def test_a_masked_autoencoder_goes_there_and_back_and_older_names_are_read(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from safetensors.torch import load_file, save_file

    torch.manual_seed(0)
    sizes = {"width": 24, "depth": 2, "heads": 4, "decoder_width": 16, "decoder_depth": 1, "decoder_heads": 2}
    own = heedful.build("mae", channels=3, high=16, wide=16, patch=4, norm="layer(eps=1e-12)", **sizes).eval()
    heedful.save(own, tmp_path / "ours", layout="hf")
    theirs = transformers.ViTMAEForPreTraining.from_pretrained(tmp_path / "ours").eval()
    x, noise = images(own, 16, 16), torch.rand(3, 16, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        wanted = theirs(x, noise=noise).logits
        found = own(x, noise.argsort(1)[:, :4])
    order = torch.arange(48).view(4, 4, 3).permute(2, 0, 1).flatten()  # theirs: pixel by pixel, all channels of each
    torch.testing.assert_close(found, wanted[..., order], **CLOSE)
    path = tmp_path / "ours" / "model.safetensors"
    tensors = load_file(path)
    save_file({name.replace("decoder_encoder.layer", "decoder_layers"): one for name, one in tensors.items()}, path)
    with torch.no_grad():
        assert torch.equal(heedful.load(tmp_path / "ours")(x, noise.argsort(1)[:, :4]), found)
    save_file(tensors | {"decoder.decoder_pos_embed": torch.zeros(1, 17, 16)}, path)
    with pytest.raises(Refusal, match=r"'decoder\.decoder_pos_embed' is not what such a model has"):
        heedful.load(tmp_path / "ours")
