"""Folders under timm's names: what our own models say is what they say when read from there, and what timm says."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import heedful
from heedful.checkpoints.names.rules import rules_of
from heedful.checkpoints.names.timm import TimmResNet, TimmSwin, TimmVit
from heedful.checkpoints.weights import state
from heedful.errors import Refusal

IMAGE = {"channels": 3, "classes": 4}
CASES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "vit": (TimmVit(), "vit_tiny_patch8_16", {"high": 16, "wide": 16, "patch": 8, "width": 64, "heads": 1, "depth": 2}),
    "deit": (
        TimmVit(),
        "deit_tiny_distilled_patch8_16",
        {"family": "vit", "high": 16, "wide": 16, "patch": 8, "width": 64, "heads": 1, "depth": 1, "distilled": True},
    ),
    "swin": (TimmSwin(), "swin_x", {"high": 32, "wide": 32, "width": 8, "heads": 2, "depths": [1, 2], "window": 4}),
    "resnet": (TimmResNet(), "resnet18", {"high": 32, "wide": 32, "width": 4, "depths": [1, 2]}),
    "bottleneck": (TimmResNet(), "resnet50", {"family": "resnet", "width": 4, "depths": [2, 1], "block": "bottleneck"}),
}


def drawn(case: str, **numbers: Any) -> nn.Module:
    torch.manual_seed(0)
    model = heedful.build(numbers.pop("family", case), **IMAGE | numbers).eval()
    with torch.no_grad():
        for tensor in state(model).values():
            tensor.copy_(torch.rand(tensor.shape) * 0.5)
    return model


def written(model: nn.Module, layout: Any, name: str, folder: Path) -> None:
    """The folder that timm would write of such a model."""
    folder.mkdir()
    own, tensors = state(model), {}
    for ours, rule in rules_of(own, layout.table(model.spec)).items():
        tensors |= dict(zip(rule.names, [one.clone() for one in rule.write(own[ours])], strict=True))
    save_file({key: one.contiguous() for key, one in tensors.items()}, folder / "model.safetensors")
    told = {"input_size": [3, model.spec.high, model.spec.wide], "tag": "x"}
    config = {"architecture": name, "num_classes": 4, "num_features": 8, "pretrained_cfg": told}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("case", CASES)
def test_a_folder_under_timms_names_is_read_and_its_sizes_are_found(case: str, tmp_path: Path) -> None:
    layout, name, numbers = CASES[case]
    norm = {"norm": "layer(eps=1e-06)"} if case in ("vit", "deit") else {}
    model = drawn(case, **numbers | norm)
    written(model, layout, name, tmp_path / "theirs")
    again = heedful.load(tmp_path / "theirs")
    x = torch.rand(2, 3, model.spec.high, model.spec.wide)
    with torch.no_grad():
        assert torch.equal(again(x), model(x))


def test_another_architecture_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    layout, _, numbers = CASES["vit"]
    written(drawn("vit", **numbers), layout, "efficientnet_b0", tmp_path / "theirs")
    with pytest.raises(Refusal, match=r"is .efficientnet_b0.; known are those that begin with vit_, deit_, swin_"):
        heedful.load(tmp_path / "theirs")


def test_a_hybrid_is_refused_as_one(tmp_path: Path) -> None:
    layout, _, numbers = CASES["vit"]
    written(drawn("vit", **numbers), layout, "vit_small_r26_s32_224", tmp_path / "theirs")
    place = tmp_path / "theirs" / "model.safetensors"
    save_file(load_file(place) | {"patch_embed.backbone.stem.conv.weight": torch.rand(4, 3, 7, 7)}, place)
    with pytest.raises(
        Refusal, match=r"is .vit_small_r26_s32_224.; a hybrid, whose ResNet before the patches is no stem"
    ):
        heedful.load(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("vit_tiny_patch16_224", {"img_size": 32, "depth": 2}),
        ("deit_tiny_distilled_patch16_224", {"img_size": 32, "depth": 2}),
        ("swin_tiny_patch4_window7_224", {"img_size": 56, "depths": (2, 2), "num_heads": (3, 6), "embed_dim": 24}),
        ("resnet18", {}),
        ("resnet50", {"layers": (1, 1, 1, 1)}),
    ],
)
def test_every_answer_is_timms(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    theirs = timm.create_model(name, num_classes=4, **more).eval()
    side = more.get("img_size", 64)
    with torch.no_grad():
        for tensor in theirs.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape) * 0.3)
    folder = tmp_path / "theirs"
    folder.mkdir()
    save_file({key: one.contiguous() for key, one in theirs.state_dict().items()}, folder / "model.safetensors")
    config = {"architecture": name, "num_classes": 4, "pretrained_cfg": {"input_size": [3, side, side]}}
    (folder / "config.json").write_text(json.dumps(config))
    x = torch.rand(2, 3, side, side)
    with torch.no_grad():
        torch.testing.assert_close(heedful.load(folder)(x), theirs(x), rtol=1e-4, atol=1e-4)
