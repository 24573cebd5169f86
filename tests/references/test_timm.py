"""Folders under timm's names: what our own models say is what they say when read from there, and what timm says."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import heedful
from heedful.errors import Refusal
from heedful.formats.name_rules import rules_of
from heedful.formats.timm import LAYOUTS, TimmBeit, TimmConvit, TimmResNet, TimmSwin, TimmVit
from heedful.formats.weights import state
from tests.references.timm_here import timm

NAMES: dict[str, list[str]] = json.loads((Path(__file__).parent / "timm.json").read_text())

PLAIN = {"mean": [0.0, 0.0, 0.0], "std": [1.0, 1.0, 1.0]}  # ImageNet's are taken where a folder is silent
IMAGE = {"channels": 3, "classes": 4}
CASES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "vit": (TimmVit(), "vit_tiny_patch8_16", {"high": 16, "wide": 16, "patch": 8, "width": 64, "heads": 1, "depth": 2}),
    "deit": (
        TimmVit(),
        "deit_tiny_distilled_patch8_16",
        {"family": "vit", "high": 16, "wide": 16, "patch": 8, "width": 64, "heads": 1, "depth": 1, "distilled": True},
    ),
    "scaled": (
        TimmVit(),
        "vit_small_patch14_dinov2",
        {"family": "vit", "high": 16, "wide": 24, "patch": 8, "width": 64, "heads": 1, "depth": 1, "order": "scaled"},
    ),
    "beit": (
        TimmBeit(),
        "beitv2_base_patch16_224",
        {"high": 16, "wide": 24, "patch": 8, "width": 64, "heads": 1, "depth": 2},
    ),
    "convit": (
        TimmConvit(),
        "convit_tiny",
        {
            "high": 16,
            "wide": 24,
            "patch": 8,
            "width": 16,
            "heads": 4,
            "depth": 3,
            "local_up_to_layer": 2,
            "project_bias": False,
        },
    ),
    "swin": (
        TimmSwin(),
        "swin_tiny_patch4_window7_224",
        {"high": 32, "wide": 32, "width": 8, "heads": 2, "depths": [1, 2], "window": 4},
    ),
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
    told = {"input_size": [3, model.spec.high, model.spec.wide], "tag": "x", **PLAIN}
    config = {"architecture": name, "num_classes": 4, "num_features": 8, "pretrained_cfg": told}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("case", CASES)
def test_a_folder_under_timms_names_is_read_and_its_sizes_are_found(case: str, tmp_path: Path) -> None:
    layout, name, numbers = CASES[case]
    norm = {} if layout.family in ("swin", "resnet") else {"norm": "layer(eps=1e-06)"}
    model = drawn(case, **numbers | norm)
    written(model, layout, name, tmp_path / "theirs")
    again = heedful.load(tmp_path / "theirs")
    x = torch.rand(2, 3, model.spec.high, model.spec.wide)
    with torch.no_grad():
        assert torch.equal(again(x), model(x))


@pytest.mark.parametrize(
    "name", ["resnetaa50", "resnetblur50", "resnet50d", "vit_base_patch16_rope_224", "efficientnet_b0"]
)
def test_an_architecture_that_computes_something_else_is_refused_by_name(name: str, tmp_path: Path) -> None:
    """Also where its tensors are those of a plain one: resnetaa50 and resnetblur50 differ in what no tensor tells."""
    layout, _, numbers = CASES["bottleneck"]
    written(drawn("bottleneck", **numbers), layout, name, tmp_path / "theirs")
    with pytest.raises(Refusal, match=f"architecture is '{name}'; no model here computes what it does; take one like"):
        heedful.load(tmp_path / "theirs")


def test_of_timms_names_these_are_read_and_all_others_refused() -> None:
    read = [name for some in NAMES.values() for name in some if any(layout.reads(name) for layout in LAYOUTS)]
    assert read == [*NAMES["read"], *NAMES["older"]]
    assert all(sum(layout.reads(name) for layout in LAYOUTS) == 1 for name in read)
    likes = [name for layout in LAYOUTS for name in layout.like.split(", ")]
    assert set(likes) <= set(read)


def test_the_table_of_names_is_timms() -> None:
    every, older = timm().list_models(), timm().models._registry._deprecated_models
    assert [name for name in every if any(layout.reads(name) for layout in LAYOUTS)] == NAMES["read"]
    assert set(NAMES["refused"]) <= {*every, *older}
    assert [name for name, new in older.items() if new.split(".")[0] in NAMES["read"]] == NAMES["older"]
    assert not any(layout.reads(name) for layout in LAYOUTS for name in {*older} - {*NAMES["older"]})


@pytest.mark.parametrize("name", ["vit_small_r26_s32_224", "vit_base_resnet50d_224", "vit_tiny_r_s16_p8_224"])
def test_a_hybrid_is_refused_as_one(name: str, tmp_path: Path) -> None:
    layout, _, numbers = CASES["vit"]
    written(drawn("vit", **numbers), layout, name, tmp_path / "theirs")
    with pytest.raises(Refusal, match=f"is '{name}'; a hybrid, whose ResNet before the patches is no stem"):
        heedful.load(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"global_pool": "avg"}, "global_pool is 'avg'; only token is supported"),
        ({"model_args": {"act_layer": "quick_gelu"}}, "model_args is .* could change what the model computes"),
        ({"pretrained_cfg": {"input_size": [3, "x"]}}, "input_size should be three whole numbers"),
        ({"pretrained_cfg": [1]}, "input_size should be three whole numbers"),
        ({"architecture": "convit_tiny"}, "its files should hold 'blocks.0.attn.pos_proj.weight', of 2 axes"),
    ],
)
def test_what_could_change_the_numbers_is_refused(said: dict[str, Any], why: str, tmp_path: Path) -> None:
    layout, name, numbers = CASES["vit"]
    written(drawn("vit", **numbers), layout, name, tmp_path / "theirs")
    place = tmp_path / "theirs" / "config.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | said))
    with pytest.raises(Refusal, match=why):
        heedful.load(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("case", "name", "made"),
    [
        ("vit", "patch_embed.proj.weight", torch.zeros(64, 3, 0, 0)),
        ("vit", "pos_embed", torch.zeros(1, 1, 64)),
        ("vit", "pos_embed", torch.zeros(64)),
        ("vit", "blocks.999999999999.norm1.bias", torch.zeros(64)),
        ("vit", f"blocks.{'9' * 5000}.norm1.bias", torch.zeros(64)),
        ("beit", "blocks.0.attn.relative_position_bias_table", torch.zeros(2, 1)),
        ("convit", "blocks.1.attn.pos_proj.weight", torch.zeros(4, 2)),
        ("swin", "layers.99999.blocks.0.norm1.bias", torch.zeros(8)),
        ("resnet", "layer99999.0.bn1.bias", torch.zeros(8)),
    ],
)
def test_tensors_of_no_network_are_refused(case: str, name: str, made: torch.Tensor, tmp_path: Path) -> None:
    layout, architecture, numbers = CASES[case]
    written(drawn(case, **numbers), layout, architecture, tmp_path / "theirs")
    place = tmp_path / "theirs" / "model.safetensors"
    save_file(load_file(place) | {name: made}, place)
    with pytest.raises(Refusal):
        heedful.load(tmp_path / "theirs")


def test_the_names_of_classes_are_read(tmp_path: Path) -> None:
    layout, name, numbers = CASES["resnet"]
    written(drawn("resnet", **numbers), layout, name, tmp_path / "theirs")
    place = tmp_path / "theirs" / "config.json"
    said = {"label_names": ["ant", "bee", "cat", "dog"], "label_descriptions": {}, "model_args": {}}
    place.write_text(json.dumps(json.loads(place.read_text()) | said))
    assert heedful.load(tmp_path / "theirs").spec.labels == ["ant", "bee", "cat", "dog"]


@pytest.mark.parametrize(
    ("numbers", "read"),
    [
        ({"window": 4, "depths": [2, 2]}, True),  # 8 x 8 and 4 x 4 cells
        ({"window": 3, "depths": [1, 1]}, True),  # a rest, and no window is shifted
        ({"window": 3, "depths": [1, 2]}, False),
        (
            {"window": 4, "depths": [2], "high": 16},
            False,
        ),  # on a side of 4 cells timm shifts nothing, on that of 8 it does
        ({"window": 4, "depths": [2, 1, 1]}, True),  # at last windows of 2 x 2 cells
    ],
)
def test_images_whose_windows_timm_cuts_otherwise_are_refused(
    numbers: dict[str, Any], read: bool, tmp_path: Path
) -> None:
    layout, name, more = CASES["swin"]
    written(drawn("swin", **more | {"norm": "layer(eps=1e-05)"} | numbers), layout, name, tmp_path / "theirs")
    with nullcontext() if read else pytest.raises(Refusal, match=r"input_size.* timm shifts windows before"):
        heedful.load(tmp_path / "theirs")


SMALL = {"img_size": 32, "depth": 2}  # most of timm's take other sizes than those that they are named for
FEW = {"layers": (2, 1, 1, 1)}


NONE: dict[str, Any] = {"num_classes": 0}
TIMMS: list[tuple[str, dict[str, Any]]] = [
    ("vit_tiny_patch16_224", {"img_size": (48, 32), "depth": 2}),
    ("vit_base_patch16_224_miil", {"img_size": 32, "depth": 1}),
    ("vit_base_patch32_plus_256", {"img_size": 64, "depth": 1}),
    ("vit_small_patch16_36x1_224", SMALL),
    ("vit_small_patch14_dinov2", {"img_size": 42, "depth": 2}),
    ("vit_huge_patch14_224", {"img_size": 28, "depth": 1}),
    ("vit_giant_patch14_224", {"img_size": 28, "depth": 1}),
    ("vit_gigantic_patch14_224", {"img_size": 28, "depth": 1}),
    ("deit_tiny_patch16_224", SMALL),
    ("deit_tiny_distilled_patch16_224", SMALL),
    ("beit_base_patch16_224", {"img_size": (48, 32), "depth": 2}),
    ("beit_base_patch16_224", SMALL | {"global_pool": "token"}),
    ("beitv2_large_patch16_224", {"img_size": 48, "depth": 1}),
    ("convit_tiny", SMALL | {"depth": 3, "local_up_to_layer": 2}),
    ("convit_small", SMALL | {"local_up_to_layer": 1}),
    ("convit_base", SMALL | {"local_up_to_layer": 1}),
    ("swin_tiny_patch4_window7_224", {"img_size": 56, "depths": (2, 2), "num_heads": (3, 6), "embed_dim": 24}),
    (
        "swin_tiny_patch4_window7_224",
        {"img_size": 48, "window_size": 6, "depths": (2, 2, 2), "num_heads": (3, 6, 12), "embed_dim": 24},
    ),
    ("resnet18", FEW),
    ("resnet26", FEW),
    ("resnet50", FEW),
    *((name, SMALL | NONE) for name in ("vit_tiny_patch16_224", "beit_base_patch16_224")),
    ("convit_tiny", SMALL | {"local_up_to_layer": 1} | NONE),
    ("swin_tiny_patch4_window7_224", {"img_size": 56, "depths": (2, 2), "num_heads": (3, 6), "embed_dim": 24} | NONE),
    ("resnet18", FEW | NONE),
]


def test_every_layout_of_timm_is_compared_with_classes_and_without() -> None:
    has = {
        (layout.kind, more.get("num_classes", 4) > 0)
        for name, more in TIMMS
        for layout in LAYOUTS
        if layout.reads(name)
    }
    assert has == {(layout.kind, classes) for layout in LAYOUTS for classes in (True, False)}


@pytest.mark.parametrize(("name", "more"), TIMMS)
def test_every_answer_is_timms(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs = timm().create_model(name, **{"num_classes": 4} | more).eval()
    side = more.get("img_size", (96, 64))
    high, wide = side if isinstance(side, tuple) else (side, side)
    with torch.no_grad():
        for key, tensor in theirs.state_dict().items():
            if tensor.is_floating_point():  # so large that every part matters; scales and deviations around one
                around = (key.endswith((".weight", "_var")) and tensor.dim() == 1) or "gamma" in key
                tensor.copy_(torch.rand(tensor.shape) * 0.2 + 0.9 if around else torch.randn(tensor.shape) * 0.05)
    folder = tmp_path / "theirs"
    folder.mkdir()
    save_file({key: one.contiguous() for key, one in theirs.state_dict().items()}, folder / "model.safetensors")
    config = {"architecture": name, "num_classes": theirs.num_classes, "global_pool": theirs.global_pool}
    if not isinstance(theirs.global_pool, str):
        config["global_pool"] = "avg"
    (folder / "config.json").write_text(
        json.dumps(config | {"pretrained_cfg": {"input_size": [3, high, wide], **PLAIN}})
    )
    own = heedful.load(folder)
    x = torch.randn(2, 3, high, wide)
    with torch.no_grad():
        torch.testing.assert_close(own(x), theirs(x), rtol=1e-5, atol=1e-5)
        if hasattr(theirs, "blocks"):
            torch.testing.assert_close(
                layers(own.encoder.blocks, own, x), layers(theirs.blocks, theirs, x), rtol=1e-5, atol=1e-5
            )


def layers(blocks: nn.ModuleList, model: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """What each block of a model gives for an image."""
    seen: list[torch.Tensor] = []
    hooks = [block.register_forward_hook(lambda _, __, given: seen.append(given)) for block in blocks]
    model(x)
    for hook in hooks:
        hook.remove()
    return seen
