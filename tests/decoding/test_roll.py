"""A series rolled on: each step from all before it, with memory and without."""

import pytest
import torch

from heedful.decoding import roll
from heedful.errors import Refusal
from tests.decoding.toys import KINDS, forecaster


@pytest.mark.parametrize("kind", KINDS)
def test_rolling_with_memory_is_rolling_without(kind):
    model = forecaster(**KINDS[kind])
    series = torch.randn(4, 9, 3, dtype=torch.float64)
    torch.testing.assert_close(roll(model, series, 7), roll(model, series, 7, remember=False), atol=1e-10, rtol=0)


def test_each_step_is_what_the_model_says_of_all_before_it():
    model = forecaster()
    series = torch.randn(2, 5, 3, dtype=torch.float64)
    rolled = roll(model, series, 6)
    assert rolled.shape == (2, 6, 3)
    said = model(torch.cat((series, rolled), 1))[:, 4:-1]
    torch.testing.assert_close(rolled, said, atol=1e-10, rtol=0)
    assert roll(model, series, 0).shape == (2, 0, 3)


def test_many_series_are_rolled_as_one_by_one():
    model = forecaster(position="rotary")
    series = torch.randn(3, 5, 3, dtype=torch.float64)
    alone = torch.cat([roll(model, one[None], 6) for one in series])
    torch.testing.assert_close(roll(model, series, 6), alone, atol=1e-10, rtol=0)


def test_a_forecaster_that_was_learning_learns_on():
    model = forecaster(dropout=0.5).train()
    series = torch.randn(2, 5, 3, dtype=torch.float64)
    rolled = roll(model, series, 6)
    assert model.training
    assert model.inputs.drop.training
    assert torch.equal(rolled, roll(model, series, 6))
    model(rolled).sum().backward()  # what was rolled may be learned from


def test_a_series_goes_as_far_as_the_positions_that_are_learned_and_no_further():
    model = forecaster(position="learned", length=8)
    series = torch.randn(1, 5, 3, dtype=torch.float64)
    assert roll(model, series, 4).shape == (1, 4, 3)  # the last one is said, never read
    with pytest.raises(Refusal, match="8 positions"):
        roll(model, series, 5)


def test_a_series_without_a_step_is_refused():
    with pytest.raises(Refusal, match="one step or more"):
        roll(forecaster(), torch.zeros(1, 0, 3, dtype=torch.float64), 3)
