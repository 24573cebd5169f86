"""Merges left out while learning: other sub-words in each epoch, the same text, by seed, epoch and sample alone."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from heedful.data.encoded_pairs import Encoded
from heedful.data.splits import Plan, Splits
from heedful.errors import Refusal
from heedful.tasks.text.translation import TASK
from heedful.tasks.work import Work
from tests.training.runs import loop_of, short

DATA = TASK.reader("invented")(name="invented", samples=150, held_out=40, tokenizer="bpe(size=400)", merge_dropout=0.2)


def opened(seed: int = 1, **changes: object) -> tuple[Work, Splits[Encoded]]:
    task, splits = TASK.open(DATA.model_copy(update=changes), seed)
    return taking(1000, task), splits


def taking(longest: int, task: Work) -> Work:
    """The task with a model of another length."""
    return Work(TASK, replace(task.learned, longest=longest))  # type: ignore[call-arg]


def ids(samples: object) -> list[tuple[list[int], list[int]]]:
    return [(list(map(int, one.source)), list(map(int, one.target))) for one in samples]  # type: ignore[attr-defined]


def test_what_is_learned_from_is_the_same_text_in_other_sub_words() -> None:
    task, splits = opened()
    fresh = task.augmented(splits.train, 3)
    assert task.tokenizer.decode_all([row for pair in ids(fresh) for row in pair]) == [
        text for sample in splits.train for text in (sample.texts.source, sample.texts.target)
    ]
    changed = sum(one != other for one, other in zip(ids(fresh), ids(splits.train), strict=True))
    assert changed > 0.9 * len(splits.train)
    assert [one.texts for one in fresh] == [one.texts for one in splits.train]


def test_an_epoch_is_a_pure_function_of_seed_epoch_and_sample() -> None:
    (task, splits), (again, same) = opened(), opened()
    whole = ids(task.augmented(splits.train, 2))
    task.augmented(splits.train, 5)  # whatever was asked in between
    assert ids(task.augmented(splits.train, 2)) == whole == ids(again.augmented(same.train, 2))
    order = np.random.default_rng(0).permutation(len(whole)).tolist()
    assert ids(again.augmented([same.train[at] for at in order], 2)) == [whole[at] for at in order]
    assert [ids(again.augmented([sample], 2))[0] for sample in same.train[:20]] == whole[:20]


def test_other_epochs_and_other_seeds_are_broken_otherwise() -> None:
    task, splits = opened()
    other = opened(seed=2, samples=150)[0]
    made = [ids(task.augmented(splits.train, epoch)) for epoch in (0, 1, 7)]
    for at, one in enumerate(made):
        for another in made[:at]:
            assert sum(a != b for a, b in zip(one, another, strict=True)) > 0.9 * len(one)
    first, second = (list(one.learned.broken[0].lengths(0)) for one in (task, other))  # type: ignore[attr-defined]
    assert first != second


@pytest.mark.parametrize("epoch", [0, 1, 6])
def test_lengths_of_an_epoch_are_those_of_its_samples(epoch: int) -> None:
    task, splits = opened()
    wanted = [(len(one.source) + 1, len(one.target) + 1) for one in task.augmented(splits.train, epoch)]
    assert [tuple(map(int, row)) for row in task.lengths(splits.train, epoch)] == wanted
    some = [splits.train[at] for at in (140, 3, 77)]
    assert [tuple(map(int, row)) for row in task.lengths(some, epoch)] == [wanted[at] for at in (140, 3, 77)]


def test_samples_that_were_left_out_do_not_shift_the_others() -> None:
    task, splits = opened()
    whole = ids(task.augmented(splits.train, 2))
    kept = [at for at in range(150) if at % 7]  # as after data.too_long=drop
    assert ids(task.augmented([splits.train[at] for at in kept], 2)) == [whole[at] for at in kept]


def test_what_would_be_longer_than_the_model_is_learned_from_as_it_is_and_so_counted() -> None:
    task, splits = opened()
    longest = max(map(task.length, splits.train))
    task = taking(longest, task)
    fresh = task.augmented(splits.train, 1)
    assert max(map(task.length, fresh)) <= longest
    unbroken = [at for at, one in enumerate(fresh) if one is splits.train[at]]
    assert unbroken  # some would have been longer
    wanted = [(len(one.source) + 1, len(one.target) + 1) for one in fresh]
    assert [tuple(map(int, row)) for row in task.lengths(splits.train, 1)] == wanted


def test_batches_by_tokens_keep_within_them_in_every_epoch() -> None:
    task, splits = opened()
    plan = Plan(partial(task.lengths, splits.train), 64, 1, 200)
    for step in range(3 * plan.steps):
        batch = task.batch(task.augmented([splits.train[at] for at in plan.at(step)], plan.epoch(step)))
        assert len(batch["source"]) == 1 or max(batch["source"].numel(), batch["target"].numel()) <= 200


def test_a_step_is_learned_from_as_its_epoch_has_it(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, short("translate", data__merge_dropout=0.2))
    for step in range(loop.portions.plan.steps + 4):
        samples, epoch = [loop.splits.train[at] for at in loop.portions.plan.at(step)], loop.portions.plan.epoch(step)
        assert epoch == (step >= loop.portions.plan.steps)
        assert ids(loop.portions.samples(step)) == ids(loop.task.augmented(samples, epoch))
    assert ids(loop.portions.samples(step)) != ids(loop.task.augmented(samples, 0))


def test_what_is_chosen_and_tested_by_is_left_whole_and_so_is_everything_without_dropout() -> None:
    _, splits = opened()
    plain, same = opened(merge_dropout=0.0)
    assert ids(splits.valid) == ids(same.valid) and ids(splits.test) == ids(same.test)
    assert plain.learned.broken is None and plain.augmented(same.train, 3) is same.train


@pytest.mark.parametrize("tokenizer", ["characters", "words(size=90)", "unigram(size=120)"])
def test_a_tokenizer_without_merges_is_refused(tokenizer: str) -> None:
    with pytest.raises(Refusal, match="has no merges to leave out; use one of bpe"):
        opened(tokenizer=tokenizer)
