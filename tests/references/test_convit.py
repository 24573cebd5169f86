"""ConViT against its formula written out by hand; test_timm.py compares it with timm's."""

import torch
from torch import nn

import heedful
from heedful.attention import GridSight


def small() -> nn.Module:
    torch.manual_seed(0)
    sizes = {
        "width": 24,
        "depth": 3,
        "local_up_to_layer": 2,
        "heads": 4,
        "hidden": 96,
        "patch": 4,
        "project_bias": False,
    }
    model = heedful.build("convit", channels=3, high=16, wide=16, classes=5, norm="layer(eps=1e-06)", **sizes).eval()
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(torch.randn(tensor.shape) * 0.3)
    return model


def test_a_gated_layer_is_its_formula_row_by_row():
    layer = small().double().encoder.blocks[0].attention
    x = torch.randn(2, 6, 24, dtype=torch.float64)
    grid = GridSight(x, (2, 3))
    q, k, v = layer.project(x, grid)
    made = torch.zeros(2, 4, 6, 6, dtype=torch.float64)
    for head in range(4):
        for row in range(6):
            across, down = torch.arange(6) % 3 - row % 3, torch.arange(6) // 3 - row // 3
            ways = torch.stack((across, down, across**2 + down**2), -1).double()
            place = (ways @ layer.likes.weight[head] + layer.likes.bias[head]).softmax(-1)
            content = torch.einsum("bd,bsd->bs", q[:, head, row], k[:, head]) / 6**0.5
            share = layer.mechanism.gate[head].sigmoid()
            made[:, head, row] = (1 - share) * content.softmax(-1) + share * place
    torch.testing.assert_close(layer(x, grid), layer.join(made @ v), rtol=0, atol=1e-12)
    with heedful.look(layer) as seen:
        layer(x, grid)
    torch.testing.assert_close(seen.weights(seen.paths[0]), made, rtol=0, atol=1e-12)


def test_heads_begin_as_the_cells_of_a_window():
    model = heedful.build(
        "convit",
        channels=1,
        high=12,
        wide=12,
        patch=4,
        width=18,
        heads=9,
        depth=2,
        local_up_to_layer=1,
        locality_strength=9.0,
    )
    x = torch.randn(1, 9, 18)
    layer = model.encoder.blocks[0].attention
    with heedful.look(layer) as seen:
        layer(x, GridSight(x, (3, 3)))
    by_place = layer.mechanism.placed(seen._calls[seen.paths[0]][0][3])[0, :, 4]  # of the cell in the middle
    assert sorted(by_place.argmax(-1).tolist()) == list(range(9)) and (by_place.amax(-1) > 0.99).all()
