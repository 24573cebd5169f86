"""Sequences that are grids: their positions tell rows from columns, at any size."""

import pytest
import torch

import heedful
from heedful.attention import Everything, GridSight, Rotary2D
from heedful.inputs import LearnedGrid, SineGrid

ROWS, COLUMNS = 4, 5


def scores(q: torch.Tensor, k: torch.Tensor, leading: int = 0) -> torch.Tensor:
    x = torch.zeros(1, leading + ROWS * COLUMNS, 1)
    sight, turn = GridSight(x, (ROWS, COLUMNS)), Rotary2D()
    every = [one.expand(1, 1, x.shape[1], -1) for one in (q, k)]
    return (turn(every[0], sight.rows, sight) @ turn(every[1], sight.rows, sight).mT)[0, 0]


def test_turned_queries_and_keys_know_only_the_way_from_cell_to_cell():
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 8, dtype=torch.float64)
    found = scores(q, k).view(ROWS, COLUMNS, ROWS, COLUMNS)
    for down in (0, 1, 2):
        for across in (0, 1, 3):
            here = found[: ROWS - down, : COLUMNS - across]
            cells = [(r, c) for r in range(ROWS - down) for c in range(COLUMNS - across)]
            same = torch.stack([here[r, c, r + down, c + across] for r, c in cells])
            torch.testing.assert_close(same, same[:1].expand_as(same))
    assert not torch.isclose(found[0, 0, 0, 1], found[0, 0, 1, 0])  # a row is no column


def test_tokens_that_stand_nowhere_are_not_turned():
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 8, dtype=torch.float64)
    found = scores(q, k, leading=2)
    torch.testing.assert_close(found[:2, :2], (q * k).sum().expand(2, 2))
    torch.testing.assert_close(found[2:, 2:], scores(q, k))


def test_what_is_no_grid_and_heads_that_cannot_be_turned_are_refused():
    x = torch.zeros(1, 1, 6, 6)
    with pytest.raises(ValueError, match="is no grid; use rotary"):
        Rotary2D()(x, torch.arange(6)[None], Everything().over(x[0]))
    with pytest.raises(ValueError, match="a head has 6"):
        Rotary2D()(x, torch.arange(6)[None], GridSight(x[0], (2, 3)))


@pytest.mark.parametrize("position", ["none", "learned", "sine", "rotary", "rotary_2d"])
def test_an_image_without_positions_is_a_set_of_patches_and_with_them_is_not(position):
    torch.manual_seed(0)
    model = heedful.build(
        "vit",
        channels=2,
        classes=3,
        high=12,
        wide=8,
        patch=4,
        width=16,
        heads=2,
        depth=2,
        position=position,
        pool="mean",
    ).double()
    images = torch.randn(2, 2, 12, 8, dtype=torch.float64)
    turned = images.roll(4, 2).roll(4, 3)  # whole patches go elsewhere
    moved = not torch.allclose(model(images), model(turned), atol=1e-9)
    assert moved == (position != "none")


def test_a_table_of_one_size_is_itself_and_sines_of_a_part_are_a_part():
    table = LearnedGrid((3, 4), 8, leading=1)
    torch.testing.assert_close(table.resized((3, 4)), table.table.data, rtol=0, atol=1e-6)
    assert table.resized((5, 2)).shape == (11, 8)
    large, small = (SineGrid(8)(torch.zeros(1, r * c, 8), (r, c)).view(r, c, 8) for r, c in ((6, 7), (3, 4)))
    torch.testing.assert_close(large[:3, :4], small)
    assert len(large.flatten(0, 1).unique(dim=0)) == 42


@pytest.mark.parametrize("stem", ["convolution", "matrix", "overlapping"])
@pytest.mark.parametrize("pool", ["first", "mean", "attention"])
def test_every_stem_and_pool_learns_and_is_looked_into(stem, pool):
    torch.manual_seed(0)
    model = heedful.build(
        "vit", channels=1, classes=3, high=8, wide=12, patch=4, width=16, heads=2, depth=1, stem=stem, pool=pool
    )
    images = torch.randn(2, 1, 8, 12)
    with heedful.look(model) as seen:
        answer = model(images)
    assert torch.equal(answer, model(images)) and answer.shape == (2, 3)
    assert len(seen.paths) == 1 + (pool == "attention")
    answer.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
