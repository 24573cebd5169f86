"""Batches by tokens, and one file divided into parts: pure functions, and nothing lost, doubled or leaked."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.near_duplicates import Cut
from heedful.data.splits import Plan, Splits, divide_samples
from heedful.errors import Refusal

Lengths = list[tuple[int, ...]]
LENGTHS = st.integers(1, 3).flatmap(
    lambda sides: st.lists(st.tuples(*[st.integers(1, 60)] * sides), min_size=1, max_size=120)
)
MANY = [tuple(row) for row in np.random.default_rng(0).integers(3, 40, (3000, 2)).tolist()]


def changing(lengths: Lengths) -> Callable[[int], Lengths]:
    """Lengths that differ from epoch to epoch, as with merges left out."""
    return lambda epoch: [tuple(1 + (length * (epoch + 1)) % 61 for length in sample) for sample in lengths]


def epoch(plan: Plan, number: int) -> list[list[int]]:
    """The batches of an epoch, however many it has."""
    step = 0
    while plan.epoch(step) < number:
        step += 1
    made = []
    while plan.epoch(step) == number:
        made.append(plan.at(step))
        step += 1
    return made


def room(lengths: Sequence[Sequence[int]], batch: list[int]) -> int:
    """The places of a batch's longest side."""
    return len(batch) * max(max(lengths[at]) for at in batch)


@given(LENGTHS, st.integers(1, 400), st.integers(0, 5), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_every_sample_comes_once_an_epoch_and_no_batch_of_several_has_more_tokens_than_allowed(
    lengths: Lengths, tokens: int, seed: int, number: int
) -> None:
    of = changing(lengths)
    batches = epoch(Plan(of, 64, seed, tokens), number)
    assert sorted(at for batch in batches for at in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or room(of(number), batch) <= tokens for batch in batches)


@given(LENGTHS, st.integers(1, 400), st.data())
@settings(max_examples=40, deadline=None)
def test_a_step_is_the_same_whenever_and_in_whatever_order_it_is_asked_for(
    lengths: Lengths, tokens: int, data: st.DataObject
) -> None:
    one, other = (Plan(changing(lengths), 64, 3, tokens) for _ in range(2))
    steps = range(2 * one.steps + 5)
    forwards = [(one.epoch(step), one.at(step)) for step in steps]
    for step in data.draw(st.permutations(steps)):
        assert (other.epoch(step), other.at(step)) == forwards[step]


@given(LENGTHS, st.integers(1, 400))
@settings(max_examples=40, deadline=None)
def test_padding_is_the_share_of_places_that_hold_no_token(lengths: Lengths, tokens: int) -> None:
    plan = Plan(lambda epoch: lengths, 64, 3, tokens)
    places = sum(
        len(batch) * max(lengths[at][side] for at in batch)
        for batch in epoch(plan, 0)
        for side in range(len(lengths[0]))
    )
    assert plan.padding == pytest.approx(1 - sum(map(sum, lengths)) / places)


def test_a_sample_with_more_tokens_than_allowed_is_a_batch_of_its_own() -> None:
    batches = epoch(Plan(lambda epoch: [(5, 5), (90, 3), (3, 80), (6, 6)], 64, 1, 40), 0)
    assert sorted(map(sorted, batches)) == [[0, 3], [1], [2]]


def test_batches_are_as_full_as_lengths_allow() -> None:
    batches = epoch(Plan(lambda epoch: [(10, 10)] * 100, 64, 1, 80), 0)
    assert sorted(map(len, batches)) == [4, *[8] * 12]


def test_epochs_and_seeds_make_other_batches_of_the_same_samples() -> None:
    made = [epoch(Plan(lambda epoch: MANY, 64, seed, 500), number) for seed in (3, 4) for number in (0, 1)]
    as_sets = [{frozenset(batch) for batch in batches} for batches in made]
    for at, one in enumerate(as_sets):
        for other in as_sets[:at]:
            assert len(one & other) <= 3


def test_two_sides_that_go_together_leave_little_padding_and_chance_leaves_much() -> None:
    random = np.random.default_rng(1)
    source = random.integers(3, 40, 6000)
    lengths = np.stack((source, np.maximum(1, source + random.integers(-3, 4, 6000))), 1)
    plan = Plan(lambda epoch: lengths.tolist(), 64, 1, 1024)
    shuffled = random.permutation(6000)[:5952].reshape(-1, 48)
    by_chance = 1 - lengths[shuffled].sum() / (48 * lengths[shuffled].max(1).sum())
    assert plan.padding < 0.1 < 0.4 < by_chance


def test_batches_of_like_lengths_do_not_come_in_the_order_of_their_lengths() -> None:
    longest = [max(max(MANY[at]) for at in batch) for batch in epoch(Plan(lambda epoch: MANY, 64, 1, 500), 0)]
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.4


# ---------------------------------------------------------------------- one file, divided


def sides(splits: Splits[tuple[str, int]]) -> dict[tuple[str, int], int]:
    return {sample: side for side, part in enumerate((splits.train, splits.valid, splits.test)) for sample in part}


def sources(count: int) -> list[tuple[str, int]]:
    return [(f"sentence {at % (count - count // 4)}", at) for at in range(count)]  # a quarter come twice


@given(
    st.lists(st.tuples(st.text(max_size=3), st.integers()), max_size=150, unique=True),
    st.integers(0, 2**40),
)
@settings(max_examples=50, deadline=None)
def test_the_same_source_never_stands_on_two_sides_and_nothing_is_lost(
    samples: list[tuple[str, int]], seed: int
) -> None:
    samples = samples + sources(200)
    made = sides(divide_samples(samples, lambda one: one[0], "a file", Cut(seed)))
    assert sorted(made, key=repr) == sorted(set(samples), key=repr)
    side: dict[str, int] = {}
    assert all(side.setdefault(source, made[source, at]) == made[source, at] for source, at in samples)


def test_each_part_keeps_the_order_of_the_file() -> None:
    splits = divide_samples(sources(500), lambda one: one[0], "a file")
    for part in (splits.train, splits.valid, splits.test):
        assert [at for _, at in part] == sorted(at for _, at in part)


def test_another_seed_divides_otherwise_and_the_same_seed_alike() -> None:
    made = [sides(divide_samples(sources(1000), lambda one: one[0], "a file", Cut(seed))) for seed in (0, 0, 1, 2)]
    assert made[0] == made[1]
    for one, other in ((0, 2), (0, 3), (2, 3)):
        moved = sum(made[one][sample] != made[other][sample] for sample in made[0])
        assert 200 < moved < 500  # of 1,000; by chance 340


def test_a_sample_keeps_its_side_when_the_file_grows() -> None:
    few, many = (
        sides(divide_samples(sources(1000)[:count], lambda one: one[0], "a file", Cut(7))) for count in (600, 1000)
    )
    assert all(many[sample] == side for sample, side in few.items())


def test_a_tenth_is_held_out_for_choosing_and_a_tenth_for_testing() -> None:
    splits = divide_samples([(f"{at}", at) for at in range(5000)], lambda one: one[0], "a file", Cut(3))
    assert [round(len(part) / 500) for part in (splits.train, splits.valid, splits.test)] == [8, 1, 1]


def test_too_few_to_divide_are_refused() -> None:
    with pytest.raises(Refusal, match=r"^few\.tsv has 2 samples, too few to hold some out; "):
        divide_samples([("a", 0), ("b", 1)], lambda one: one[0], "few.tsv")
