"""Learning rates against their formulas."""

import math

import pytest

from heedful.training.schedule import SHAPES, rate
from heedful.training.spec.training_spec import TrainingSpec


def rates(schedule: str, **numbers: float) -> list[float]:
    """The rate of each step, and last the one that would follow."""
    spec = TrainingSpec(**({"rate": 0.5, "steps": 100, "warmup": 10, "schedule": schedule} | numbers))
    return [rate(spec, step) for step in range(spec.steps + 1)]


@pytest.mark.parametrize("warmup", [1, 10, 99])
def test_the_inverse_root_is_the_papers(warmup: int) -> None:
    made = rates("inverse_root", warmup=warmup)
    paper = [min(step**-0.5, step * warmup**-1.5) for step in range(1, len(made) + 1)]
    highest = max(paper)
    assert made == pytest.approx([0.5 * value / highest for value in paper], rel=1e-12)


def test_the_inverse_root_without_a_warm_up_falls_from_the_first_step() -> None:
    made = rates("inverse_root", warmup=0)
    assert made == pytest.approx([0.5 * step**-0.5 for step in range(1, len(made) + 1)], rel=1e-12)


def test_the_cosine_is_half_a_wave_that_ends_at_nothing() -> None:
    made = rates("cosine")
    assert made[10:] == pytest.approx([0.25 * (1 + math.cos(math.pi * step / 90)) for step in range(91)], abs=1e-15)
    assert made[55] == pytest.approx(0.25)
    assert made[99] > 0 and made[100] == pytest.approx(0, abs=1e-15)  # no step is wasted on a rate of nothing


def test_stable_decay_is_stable_and_then_falls_straight_to_nothing() -> None:
    made = rates("stable_decay", decay=0.2)
    assert made[9:81] == [0.5] * 72
    assert made[80:] == pytest.approx([0.5 * (1 - step / 20) for step in range(21)], abs=1e-15)


def test_stable_decay_without_a_decay_stays_to_the_last_step() -> None:
    assert rates("stable_decay", decay=0.0)[9:100] == [0.5] * 91


def test_a_constant_rate_is_constant_after_the_warm_up() -> None:
    assert rates("constant")[9:] == [0.5] * 92


@pytest.mark.parametrize("schedule", SHAPES)
def test_the_rate_rises_in_equal_steps_to_its_highest(schedule: str) -> None:
    assert rates(schedule)[:10] == pytest.approx([0.05 * step for step in range(1, 11)])


@pytest.mark.parametrize("schedule", SHAPES)
def test_without_a_warm_up_the_first_step_has_the_highest_rate(schedule: str) -> None:
    made = rates(schedule, warmup=0)
    assert made[0] == max(made) == 0.5


@pytest.mark.parametrize("schedule", SHAPES)
@pytest.mark.parametrize("numbers", [{"steps": 1, "warmup": 0}, {"steps": 5, "warmup": 5}, {"steps": 5, "warmup": 50}])
def test_every_step_of_a_short_run_has_a_rate_above_nothing(schedule: str, numbers: dict[str, float]) -> None:
    assert all(0 < value <= 0.5 for value in rates(schedule, **numbers)[:-1])
