"""The vision transformer and DeiT against transformers' at random weights: every layer, gradients, other sizes."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.inputs import ConvolvedPatches, Patches, SineGrid

CLOSE = {"rtol": 0.0, "atol": 1e-5}
SMALL = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}
CASES: dict[str, dict[str, Any]] = {
    "square": {"image_size": 16, "patch_size": 4, "num_channels": 3},
    "odd and not square": {"image_size": [9, 21], "patch_size": 3, "num_channels": 1},
    "five channels, no biases": {"image_size": 10, "patch_size": 5, "num_channels": 5, "qkv_bias": False},
    "another activation and eps": {"image_size": 8, "patch_size": 2, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
}
KINDS = ["ViTForImageClassification", "DeiTForImageClassification", "DeiTForImageClassificationWithTeacher"]


def theirs(kind: str, **numbers: Any) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    family = "ViT" if kind.startswith("ViT") else "DeiT"
    config = getattr(transformers, f"{family}Config")(**SMALL | numbers, id2label={n: str(n) for n in range(5)})
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(torch.randn(tensor.shape) * 0.3)
    return model


def both(kind: str, folder: Path, **numbers: Any) -> tuple[nn.Module, nn.Module]:
    model = theirs(kind, **numbers)
    model.save_pretrained(folder / "theirs")
    return model, heedful.load(folder / "theirs")


def images(model: nn.Module, high: int, wide: int) -> Tensor:
    return torch.randn(3, model.spec.channels, high, wide, generator=torch.Generator().manual_seed(1))


def states(model: nn.Module, x: Tensor) -> tuple[list[Tensor], Tensor]:
    """What comes out of every layer, and the answer."""
    seen: list[Tensor] = []
    hooks = [model.inputs.register_forward_hook(lambda _, given, made: seen.append(made))]
    hooks += [block.register_forward_hook(lambda _, given, made: seen.append(made)) for block in model.encoder.blocks]
    answer = model(x)
    for hook in hooks:
        hook.remove()
    return seen, answer


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS[::2])
def test_every_layer_answer_and_gradient_is_theirs(kind, case, tmp_path):
    model, own = both(kind, tmp_path, **CASES[case])
    x = images(own, own.spec.high, own.spec.wide).requires_grad_()
    x2 = x.detach().clone().requires_grad_()
    layers, answer = states(own, x)
    wanted = model(x2, output_hidden_states=True)
    for at, (mine, other) in enumerate(zip(layers, wanted.hidden_states, strict=True)):
        torch.testing.assert_close(mine, other, **CLOSE, msg=f"layer {at}")
    torch.testing.assert_close(answer, wanted.logits, **CLOSE)
    answer.square().sum().backward()
    wanted.logits.square().sum().backward()
    torch.testing.assert_close(x.grad, x2.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("size", [(12, 20), (4, 36), (24, 24), (16, 16)])
def test_a_position_table_is_resized_as_theirs_is(kind, size, tmp_path):
    model, own = both(kind, tmp_path, image_size=16, patch_size=4)
    x = images(own, *size)
    with torch.no_grad():
        wanted = model(x, interpolate_pos_encoding=True).logits
        torch.testing.assert_close(own(x), wanted, **CLOSE)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_what_is_saved_here_is_read_there(kind, tmp_path):
    model, own = both(kind, tmp_path, **CASES["square"])
    heedful.save(own, tmp_path / "ours", layout="hf")
    again = type(model).from_pretrained(tmp_path / "ours").eval()
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["architectures"] == [kind]
    x = images(own, 16, 16)
    with torch.no_grad():
        assert torch.equal(again(x).logits, model(x).logits)


def test_sines_of_rows_and_columns_are_those_of_maes():
    from transformers import ViTMAEConfig
    from transformers.models.vit_mae.modeling_vit_mae import ViTMAEEmbeddings

    embeddings = ViTMAEEmbeddings(ViTMAEConfig(hidden_size=24, image_size=20, patch_size=4))
    embeddings.initialize_weights()
    own = SineGrid(24)(torch.zeros(1, 26, 24), (5, 5))
    torch.testing.assert_close(own, embeddings.position_embeddings.data, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("channels", "patch", "high", "wide"), [(3, 4, 8, 12), (1, 7, 7, 14), (6, 2, 10, 4)])
def test_patches_by_a_matrix_and_by_a_convolution_are_the_same_numbers(channels, patch, high, wide):
    torch.manual_seed(0)
    one = Patches(channels, 10, patch).double()
    two = ConvolvedPatches(channels, 10, patch).double()
    two.load_state_dict(one.state_dict())
    x = torch.randn(2, channels, high, wide, dtype=torch.float64)
    torch.testing.assert_close(one(x), two(x), rtol=0, atol=1e-12)
    assert one(x).shape[-2:] == one.shape(high, wide)
