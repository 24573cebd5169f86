"""Batches made ahead: the same ones in the same order, as many as there is room for, and no thread is left behind."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.training import microbatches
from heedful.training.loop import Loop
from heedful.training.microbatches import Ahead, Portion
from tests.training.runs import Silent, loop_of, short


def portion(step: int, size: int = 1) -> Portion:
    return Portion([{"x": torch.full((size,), step)}], step, [1.0])


@given(st.integers(0, 50), st.integers(1, 150), st.integers(1, 10**6))
@settings(max_examples=40, deadline=None)
def test_steps_come_in_order_and_each_is_made_once(first: int, count: int, size: int) -> None:
    made: list[int] = []
    with Ahead(lambda step: (made.append(step), portion(step, size))[1], first, first + count) as coming:
        taken = [coming.take().samples for _ in range(count)]
    assert taken == made == list(range(first, first + count))


@pytest.mark.parametrize("recipe", ["reverse", "sets", "translate"])
def test_what_is_made_ahead_is_what_is_made_in_place(tmp_path: Path, recipe: str) -> None:
    loop = loop_of(tmp_path, short(recipe, training__accumulate=2))
    again = loop_of(tmp_path, short(recipe, training__accumulate=2))
    with Ahead(loop.portions.at, 5, 30) as coming:
        for step in range(5, 30):
            one, other = coming.take(), again.portions.at(step)
            assert one.samples == other.samples and len(one.batches) == len(other.batches)
            for batch, same in zip(one.batches, other.batches, strict=True):
                assert batch.keys() == same.keys() and all(torch.equal(batch[key], same[key]) for key in batch)


def test_the_next_step_is_made_while_one_runs() -> None:
    begun = threading.Event()

    def make(step: int) -> Portion:
        if step == 1:
            begun.set()
        return portion(step)

    with Ahead(make, 0, 10) as coming:
        coming.take()
        assert begun.wait(10)  # nobody asked for it yet
        for _ in range(8):
            assert coming.waiting and coming.take()


@pytest.mark.parametrize(("bytes", "most"), [(8, 64), (2**26, 4), (2**30, 1)])
def test_large_batches_are_not_piled_up(bytes: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Portion, "bytes", property(lambda self: bytes))
    made: list[int] = []
    with Ahead(lambda step: (made.append(step), portion(step))[1], 0, 1000) as coming:
        for _ in range(5):
            coming.take()
            assert len(coming.waiting) <= most
    assert microbatches.MOST == 64


def test_what_goes_wrong_is_raised_when_it_is_asked_for() -> None:
    def make(step: int) -> Portion:
        if step == 2:
            raise ValueError("no such sample")
        return portion(step)

    with Ahead(make, 0, 5) as coming:
        assert [coming.take().samples for _ in range(2)] == [0, 1]
        with pytest.raises(ValueError, match="no such sample"):
            coming.take()


def test_no_thread_outlives_a_run(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("batches")]

    class Ended(Loop):
        def step(self, *given: Any) -> Any:
            assert threads()
            raise Stop

    loop = loop_of(tmp_path, short("reverse"))
    with pytest.raises(Stop):
        Ended(loop.run, loop.task, loop.splits, loop.model, tmp_path).train(Silent())  # type: ignore[arg-type]
    assert not threads()
