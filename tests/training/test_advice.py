"""What is unlikely to learn is warned of before the first step."""

import warnings
from pathlib import Path

import pytest
import torch

from heedful.training import run
from heedful.training.loop import Loop
from tests.training.runs import CPU, killed_at, loop_of, short, train


def advice(**changes: object) -> list[str]:
    recipe = str(changes.pop("recipe"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run.prepare(short(recipe, **changes), CPU)
    return [str(warning.message) for warning in told]


@pytest.mark.parametrize("recipe", ["reverse", "sort", "series"])
def test_an_ordered_task_without_positions_is_warned_of(recipe: str) -> None:
    (said,) = advice(recipe=recipe, model__position="none")
    assert "model.position=none" in said and "cannot tell the order" in said


@pytest.mark.parametrize("position", ["sine", "learned", "rotary"])
def test_positions_on_sets_are_warned_of(position: str) -> None:
    (said,) = advice(recipe="sets", model__position=position)
    assert "about sets" in said and "model.position=none" in said


def test_a_bias_on_sets_is_warned_of_and_tells_an_ordered_task_its_order() -> None:
    assert len(advice(recipe="sets", model__bias="alibi")) == 1
    assert advice(recipe="reverse", model__position="none", model__bias="alibi") == []


@pytest.mark.parametrize("recipe", ["reverse", "sort", "sets", "series"])
def test_a_recipe_as_it_is_gives_no_cause_to_warn(recipe: str) -> None:
    assert advice(recipe=recipe) == []


def test_the_warning_comes_before_the_first_step(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="cannot tell the order"), killed_at(Loop, "step", 1):
        train(short("reverse", model__position="none"), tmp_path / "run")


def sets_shuffled(tmp_path: Path, **changes: object) -> float:
    """By how much the logits of a trained model change when the members of its sets are shuffled."""
    loop = loop_of(tmp_path, short("sets", training__rate=0.005, **changes))
    samples = loop.splits.train[:30]
    for _ in range(25):
        loop.step(loop.portions.of(samples))
    loop.model.eval()
    batch = loop.task.batch(samples)
    vectors, lengths = batch["vectors"], batch["lengths"]
    shuffled = vectors.clone()
    for row, length in zip(shuffled, lengths.tolist(), strict=True):
        row[:length] = row[:length].flip(0)
    assert not torch.equal(shuffled, vectors) and len(set(lengths.tolist())) > 1
    with torch.no_grad():
        return float((loop.model(vectors, lengths) - loop.model(shuffled, lengths)).abs().max())


def test_a_set_is_the_same_in_any_order_of_its_members(tmp_path: Path) -> None:
    assert sets_shuffled(tmp_path) < 1e-5


def test_a_set_with_positions_is_not(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="about sets"):
        assert sets_shuffled(tmp_path, model__position="sine") > 1e-2
