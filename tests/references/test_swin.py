"""Swin against transformers' at random weights: every stage, gradients, grids that windows leave a rest of."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import heedful
from heedful.attention import GridSight
from heedful.errors import Refusal

CLOSE = {"rtol": 0.0, "atol": 1e-5}
CASES: dict[str, dict[str, Any]] = {
    "windows that fit": {"image_size": 32, "window_size": 4, "depths": [2, 2], "num_heads": [2, 4]},
    "a rest in every stage": {"image_size": [36, 20], "window_size": 3, "depths": [2, 3], "num_heads": [1, 2]},
    "odd merges": {"image_size": 28, "window_size": 2, "depths": [1, 2, 2], "num_heads": [2, 4, 8]},
    "other numbers": {
        "image_size": 24,
        "window_size": 3,
        "depths": [2, 2],
        "num_heads": [2, 4],
        "qkv_bias": False,
        "mlp_ratio": 2.0,
        "layer_norm_eps": 0.03,
    },
}


def both(folder: Path, **numbers: Any) -> tuple[nn.Module, nn.Module]:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    labels = {n: str(n) for n in range(5)}
    config = transformers.SwinConfig(embed_dim=16, patch_size=4, num_channels=3, id2label=labels, **numbers)
    model = transformers.SwinForImageClassification(config).eval()
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(torch.randn(tensor.shape) * 0.2)
    model.save_pretrained(folder / "theirs")
    return model, heedful.load(folder / "theirs")


@pytest.mark.parametrize("case", CASES)
def test_every_stage_answer_and_gradient_is_theirs(case, tmp_path):
    model, own = both(tmp_path, **CASES[case])
    x = torch.randn(3, 3, own.spec.high, own.spec.wide).requires_grad_()
    x2 = x.detach().clone().requires_grad_()
    seen: list[torch.Tensor] = []
    for stage in own.stages:
        stage.register_forward_hook(lambda _, given, made: seen.append(made))
    answer = own(x)
    wanted = model(x2, output_hidden_states=True)
    theirs = wanted.hidden_states[1:]  # after each stage's merging, but for the last
    for at, mine in enumerate(seen):
        if at == len(seen) - 1:
            torch.testing.assert_close(mine, theirs[-1], **CLOSE)
        else:
            shape = own.stem.shape(own.spec.high, own.spec.wide)
            for _ in range(at):
                shape = tuple(-(-side // 2) for side in shape)
            torch.testing.assert_close(own.merges[at](mine, shape), theirs[at], **CLOSE)
    torch.testing.assert_close(answer, wanted.logits, **CLOSE)
    answer.square().sum().backward()
    wanted.logits.square().sum().backward()
    torch.testing.assert_close(x.grad, x2.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("case", ["windows that fit", "other numbers"])
def test_what_is_saved_here_is_read_there(case, tmp_path):
    model, own = both(tmp_path, **CASES[case])
    heedful.save(own, tmp_path / "ours", layout="hf")
    again = type(model).from_pretrained(tmp_path / "ours").eval()
    x = torch.randn(2, 3, own.spec.high, own.spec.wide)
    with torch.no_grad():
        assert torch.equal(again(x).logits, model(x).logits)


SIZES = [(32, 32), (64, 64), (32, 64), (36, 44), (28, 52), (16, 64), (20, 12), (8, 40)]


def test_windows_shift_while_every_side_is_larger_and_become_no_larger_than_the_smaller_side(tmp_path):
    """Theirs fails where a side is smaller than a window: it looks for as many ways as that side has in its table."""
    from transformers.models.swin import modeling_swin as swin

    model, own = both(tmp_path, image_size=32, window_size=4, depths=[2, 3], num_heads=[2, 4])
    for size in SIZES:
        x = torch.randn(2, 3, *size)
        other = copy.deepcopy(model)  # for it goes on with the smallest windows that it has seen
        for at, stage in enumerate(other.swin.encoder.layers):
            side = min(4, -(-min(size) // (4 << at)))
            for block in stage.blocks:
                whole = block.attention.relative_position_bias
                heads = whole.relative_position_bias_table.shape[1]
                part = swin.SwinRelativePositionBias(heads, (side, side))
                table = whole.relative_position_bias_table.view(7, 7, heads)[4 - side : 3 + side, 4 - side : 3 + side]
                part.relative_position_bias_table = nn.Parameter(table.reshape(-1, heads))
                block.attention.relative_position_bias = part
        with torch.no_grad():
            torch.testing.assert_close(own(x), other(x).logits, **CLOSE)


def test_what_transformers_computes_otherwise_is_refused_by_its_key(tmp_path):
    numbers = {
        "channels": 3,
        "classes": 5,
        "width": 16,
        "heads": 2,
        "window": 4,
        "depths": [2, 2],
        "high": 32,
        "wide": 32,
    }
    own = heedful.build("swin", **numbers, norm="layer(eps=0.03)")
    with pytest.raises(Refusal, match=r"cannot say merge_norm=None; train it with model.merge_norm=layer\(eps=1e-05\)"):
        heedful.save(own, tmp_path / "ours", layout="hf")
    small = heedful.build("swin", **numbers | {"high": 16, "wide": 40})
    with pytest.raises(Refusal, match=r"image_size is .*; a stage would be smaller than window_size.* set it to 32 or"):
        heedful.save(small, tmp_path / "ours", layout="hf")
    heedful.save(heedful.build("swin", **numbers, merge_norm="layer"), tmp_path / "ours", layout="hf")


@pytest.mark.parametrize("shift", [0, 1])
def test_a_cell_sees_its_window_and_nothing_that_came_round(shift):
    torch.manual_seed(0)
    model = heedful.build(
        "swin", channels=1, classes=2, high=6, wide=6, patch=1, width=4, heads=1, depths=[1], window=3
    )
    attention = model.stages[0].blocks[0].attention
    attention.shift = shift
    x = torch.randn(1, 36, 4, dtype=torch.float64)
    attention.double()
    before = attention(x, GridSight(x, (6, 6))).view(6, 6, 4)
    for row, column in ((0, 0), (2, 3), (5, 5)):
        other = x.view(1, 6, 6, 4).clone()
        other[0, row, column] += 1
        after = attention(other.flatten(1, 2), GridSight(x, (6, 6))).view(6, 6, 4)
        moved = (after - before).abs().amax(-1) > 1e-12
        home = [(side + (3 - shift) % 3) // 3 for side in (row, column)]
        mine = torch.tensor([[[(r + (3 - shift) % 3) // 3, (c + (3 - shift) % 3) // 3] == home for c in range(6)] for r in range(6)])  # fmt: skip  # noqa: E501
        assert torch.equal(moved, mine)


def test_a_looked_at_swin_tells_of_every_window():
    model = heedful.build(
        "swin", channels=1, classes=2, high=12, wide=12, patch=1, width=8, heads=2, depths=[2], window=4
    )
    x = torch.randn(2, 1, 12, 12)
    with heedful.look(model) as seen:
        answer = model(x)
    assert torch.equal(answer, model(x))
    assert seen.weights("stages.0.blocks.1.attention").shape == (2 * 9, 2, 16, 16)
