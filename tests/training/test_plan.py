"""Which samples make which step."""

from collections.abc import Sequence

import numpy as np
import pytest

from heedful.data.splits import Plan

LENGTHS = np.random.default_rng(0).integers(4, 25, 1003).tolist()


def epoch(plan: Plan, number: int) -> list[list[int]]:
    return [plan.at(number * plan.steps + step) for step in range(plan.steps)]


def padding(batches: Sequence[Sequence[int]]) -> float:
    """The share of places that hold no token."""
    rooms = sum(len(batch) * max(LENGTHS[at] for at in batch) for batch in batches)
    return 1 - sum(LENGTHS[at] for batch in batches for at in batch) / rooms


def test_a_step_has_the_same_samples_whenever_and_in_whatever_order_it_is_asked_for() -> None:
    one, other = Plan(lambda epoch: LENGTHS, 16, seed=3), Plan(lambda epoch: LENGTHS, 16, seed=3)
    steps = range(5 * one.steps)
    forwards = [one.at(step) for step in steps]
    backwards = [other.at(step) for step in reversed(steps)]
    assert forwards == backwards[::-1]


@pytest.mark.parametrize("size", [1, 7, 16, 1002, 1003, 5000])
@pytest.mark.parametrize("number", [0, 1, 9])
def test_every_sample_comes_exactly_once_an_epoch(size: int, number: int) -> None:
    batches = epoch(Plan(lambda epoch: LENGTHS, size, seed=3), number)
    assert sorted(at for batch in batches for at in batch) == list(range(len(LENGTHS)))


@pytest.mark.parametrize(("size", "sizes"), [(16, [16] * 62 + [11]), (17, [17] * 59), (1003, [1003]), (5000, [1003])])
def test_all_batches_are_full_but_one_that_takes_what_is_left(size: int, sizes: list[int]) -> None:
    assert sorted(map(len, epoch(Plan(lambda epoch: LENGTHS, size, seed=3), 2)), reverse=True) == sizes


def test_epochs_and_seeds_differ() -> None:
    plans = [Plan(lambda epoch: LENGTHS, 16, seed=seed) for seed in (3, 4)]
    made = [epoch(plan, number) for plan in plans for number in (0, 1)]
    as_sets = [{frozenset(batch) for batch in batches} for batches in made]
    for at, one in enumerate(as_sets):
        for other in as_sets[:at]:
            assert len(one & other) <= 2  # other batches, not the same ones in another order


def test_the_seed_and_the_epoch_are_not_added_up() -> None:
    assert epoch(Plan(lambda epoch: LENGTHS, 16, seed=3), 1) != epoch(Plan(lambda epoch: LENGTHS, 16, seed=4), 0)


def test_lengths_in_a_batch_are_alike() -> None:
    sorted_by_length = padding(epoch(Plan(lambda epoch: LENGTHS, 16, seed=3), 0))
    shuffled = padding(np.random.default_rng(0).permutation(len(LENGTHS))[:992].reshape(-1, 16).tolist())
    assert sorted_by_length < 0.06 < 0.3 < shuffled


def test_batches_of_like_lengths_do_not_come_in_the_order_of_their_lengths() -> None:
    longest = [max(LENGTHS[at] for at in batch) for batch in epoch(Plan(lambda epoch: LENGTHS, 16, seed=3), 0)]
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.4


def test_samples_of_one_length_are_shuffled_too() -> None:
    assert epoch(Plan(lambda epoch: [5] * 64, 8, seed=3), 0) != epoch(Plan(lambda epoch: [5] * 64, 8, seed=3), 1)
