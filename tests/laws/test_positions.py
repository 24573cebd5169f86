"""Positions: what each adds or turns, by its paper's formula, and what follows from it."""

import math

import pytest
import torch

from heedful.attention import Causal, Everything, Rotary, Sight
from heedful.errors import Refusal
from heedful.inputs import Learned, Network, NoPosition, Position, Sine, SineBeside, Tokens, Vectors
from heedful.models import part_tables, part_words
from tests.laws.cases import BATCH, EXACT, LENGTH, agree

AT = torch.tensor([[0, 1, 2, 3, 4, 5, 6]])
APIECE = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [3, 4, 5, 6, 7, 8, 9], [6, 5, 4, 3, 2, 1, 0]])


def here(at):
    return Sight(Everything(), at, at, len(at))


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("base", [10_000.0, 100.0])
@pytest.mark.parametrize("width", [2, 6, 8])
def test_a_rotary_score_depends_on_the_distance_alone(width, base):
    q, k = draw(1, 1, 1, width), draw(2, 1, 1, width)[1:]
    rotary, places = Rotary(base), torch.arange(12)[None]
    turned_q, turned_k = (rotary(x.expand(1, 1, 12, width), places, here(places)) for x in (q, k))
    scores = (turned_q @ turned_k.mT)[0, 0]
    for back in range(-11, 12):
        same = scores.diagonal(back)
        agree(same, same[:1].expand_as(same), [q, k], back)
    firsts = torch.stack([scores.diagonal(back)[0] for back in range(12)])
    assert firsts.unique().numel() == 12, "and it does depend on the distance"


@pytest.mark.parametrize("width", [2, 6])
def test_rotary_turns_each_pair_of_channels_by_its_angle(width):
    x, half = draw(BATCH, 2, LENGTH, width), width // 2
    y = Rotary()(x, APIECE, here(APIECE))
    for b in range(BATCH):
        for t, place in enumerate(APIECE[b].tolist()):
            for c in range(half):
                pair = torch.complex(x[b, :, t, c], x[b, :, t, c + half])
                angle = torch.tensor(place * 10_000.0 ** (-2 * c / width), dtype=torch.float64)
                turned = pair * torch.polar(torch.ones_like(angle), angle)
                torch.testing.assert_close(y[b, :, t, c], turned.real, **EXACT)
                torch.testing.assert_close(y[b, :, t, c + half], turned.imag, **EXACT)


def test_rotary_keeps_lengths_and_the_precision_of_what_it_turns():
    x = draw(BATCH, 2, LENGTH, 8)
    torch.testing.assert_close(Rotary()(x, AT, here(AT)).norm(dim=-1), x.norm(dim=-1), **EXACT)
    far = torch.tensor([[100_000, 100_001]])
    for dtype, within in ((torch.bfloat16, 0.06), (torch.float32, 0.03)):
        turned = Rotary()(x[:, :, :2].to(dtype), far, here(far))
        assert turned.dtype == dtype
        torch.testing.assert_close(turned.double(), Rotary()(x[:, :, :2], far, here(far)), rtol=0.0, atol=within)


def test_rotary_turns_rows_and_columns_of_one_sight_apart():
    rows, columns = torch.tensor([[5, 6]]), AT[:, :2]
    sight, rotary, x = Sight(Causal(), rows, columns, 1), Rotary(), draw(1, 1, 2, 4)
    one, two = rotary(x, sight.rows, sight), rotary(x, sight.columns, sight)
    assert not torch.allclose(one, two)
    torch.testing.assert_close(two, rotary(x, AT[:, :2], here(AT[:, :2])), **EXACT)


def wave(place, channel, width):
    """Vaswani et al. (2017), section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same)."""
    angle = place / 10_000 ** ((channel - channel % 2) / width)
    return math.cos(angle) if channel % 2 else math.sin(angle)


@pytest.mark.parametrize("width", [6, 7])
@pytest.mark.parametrize("at", [AT, APIECE])
def test_sine_adds_the_formula_of_the_paper(width, at):
    x = draw(BATCH, LENGTH, width)
    expected = torch.tensor([[[wave(p, c, width) for c in range(width)] for p in row] for row in at.tolist()])
    torch.testing.assert_close(Sine(width)(x, at) - x, expected.double().expand_as(x), rtol=0.0, atol=1e-6)
    beside = SineBeside(width)(x[..., :3], at)
    assert beside.shape == (BATCH, LENGTH, 3 + width)
    assert torch.equal(beside[..., :3], x[..., :3]), "what stands beside does not mix"
    torch.testing.assert_close(beside[..., 3:], expected.double().expand_as(x), rtol=0.0, atol=1e-6)


def test_learned_adds_the_vector_of_each_position_and_refuses_a_longer_sequence():
    position, x = Learned(10, 6).double(), draw(BATCH, LENGTH, 6)
    y = position(x, APIECE)
    for b in range(BATCH):
        for t in range(LENGTH):
            torch.testing.assert_close(y[b, t], x[b, t] + position.table[APIECE[b, t]], **EXACT)
    with pytest.raises(Refusal, match="11 is longer than the 10 positions"):
        position(draw(1, 11, 6), torch.arange(11)[None])


def test_network_adds_what_its_network_says_of_the_position():
    position, x = Network(6, hidden=5, scale=8.0).double(), draw(BATCH, LENGTH, 6)
    torch.testing.assert_close(
        position(x, APIECE) - x, position.network((APIECE.double() / 8.0).unsqueeze(-1)), **EXACT
    )


def test_no_position_adds_nothing():
    x = draw(BATCH, LENGTH, 6)
    assert NoPosition()(x, AT) is x


@pytest.mark.parametrize("word", part_tables.POSITIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_position_keeps_dtype_and_fills_the_width(word, dtype):
    position: Position = part_words.choose("position", word, part_tables.POSITIONS, width=8, length=9, room=2)
    sight = here(AT)
    for inputs, x in (
        (Tokens(5, 8, position), torch.randint(5, (BATCH, LENGTH))),
        (Vectors(3, 8, position), draw(BATCH, LENGTH, 3).to(dtype)),
    ):
        y = inputs.to(dtype)(x, sight)
        assert y.shape == (BATCH, LENGTH, 8)
        assert y.dtype == dtype


@pytest.mark.parametrize("word", part_tables.POSITIONS)
def test_a_position_reads_where_a_token_stands_and_not_its_index(word):
    position: Position = part_words.choose("position", word, part_tables.POSITIONS, width=8, length=19, room=2)
    x = draw(BATCH, LENGTH, 8 - position.room)
    position.double()
    whole = position(x, AT)
    torch.testing.assert_close(position(x[:, 3:], AT[:, 3:]), whole[:, 3:], **EXACT)
    torch.testing.assert_close(position(x, APIECE)[:1], whole[:1], **EXACT)
    if word not in ("none", *part_tables.ROTARY):
        assert not torch.allclose(position(x, AT + 3), whole)
