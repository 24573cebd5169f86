"""Learning in context: what examples of a map say, least squares beside it, and prompts as they are typed."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.readers.number_series import Maps
from heedful.data.toys.linear_maps import draw_prompts, least_squares
from heedful.errors import Refusal
from heedful.metrics.in_context_errors import errors_of
from heedful.models import build
from heedful.pipelines.in_context_prompts import MapsLearned, answers_of, steps_of
from heedful.pipelines.pipeline import unheard
from heedful.tasks.series.in_context import TASK
from tests.answered import plain

SMALL = Maps(name="maps", samples=40, held_out=20, dimensions=3, longest=6)


@given(st.integers(1, 5), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_least_squares_is_numpys_and_exact_once_there_are_enough_examples(size: int, count: int, seed: int) -> None:
    prompts = draw_prompts(seed, 0, range(4), count, size)
    inputs, answers = np.stack([one.inputs for one in prompts]), np.stack([one.answers for one in prompts])
    found = least_squares(inputs, answers)
    for row, one in enumerate(prompts):
        for known in range(1, count):
            fit = np.linalg.lstsq(one.inputs[:known].astype(float), one.answers[:known].astype(float), rcond=1e-6)[0]
            assert found[row, known] == pytest.approx(float(fit @ one.inputs[known]), abs=1e-5)
            spread = np.linalg.cond(one.inputs[:known].astype(float))
            assert known < size or spread > 100 or found[row, known] == pytest.approx(one.answers[known], abs=1e-2)
    assert (found[:, 0] == 0).all()


def test_maps_follow_from_seed_epoch_and_place_and_answers_have_a_variance_of_one() -> None:
    many = draw_prompts(3, 1, range(3000), 4, 7)
    assert 0.9 < np.var([one.answers for one in many]) < 1.1
    alone = draw_prompts(3, 1, [17], 4, 7)[0]
    assert (alone.inputs == many[17].inputs).all() and (alone.answers == many[17].answers).all()
    assert (draw_prompts(3, 2, [17], 4, 7)[0].answers != alone.answers).all()


def test_no_answer_is_seen_before_it_is_foretold() -> None:
    task, splits = TASK.open(SMALL, 1)
    model = build("forecaster", channels=4, width=16, depth=1, heads=2, position="rotary").double().eval()
    batch = {name: tensor.double() for name, tensor in task.batch(splits.test[:3]).items()}
    with torch.no_grad():
        said = model(batch["series"])[:, ::2, -1]
        batch["series"][:, 7:] = 5.0  # from the fourth answer on
        again = model(batch["series"])[:, ::2, -1]
    assert torch.equal(said[:, :4], again[:, :4]) and not torch.equal(said[:, 4:], again[:, 4:])


def test_the_loss_is_that_of_the_answers_alone() -> None:
    task, splits = TASK.open(SMALL, 1)
    model = build("forecaster", channels=4, width=16, depth=1, heads=2, position="rotary").eval()
    with torch.no_grad():
        loss, count = task.loss(model, task.batch(splits.test))
    wanted = np.stack([one.answers for one in splits.test])
    said = answers_of(model, splits.test, task.learned, unheard)
    assert float(loss) == pytest.approx(float(np.square(said - wanted).sum()), rel=1e-5)
    assert int(count) == 20 * 6 and errors_of(splits.test, said)["this decoder"].shape == (6,)


def test_a_prompt_is_read_as_it_is_written() -> None:
    task, splits = TASK.open(SMALL, 1)
    series = steps_of(TASK.pipeline.accepts(task.as_input(splits.test[0]), task.learned))[:-1]
    np.testing.assert_allclose(series, task.batch(splits.test[:1])["series"][0, :-1].numpy(), rtol=1e-5)
    model = build("forecaster", channels=4, width=16, depth=1, heads=2, position="rotary").eval()
    with torch.no_grad():
        alone = model(torch.tensor([[[1.0, 2, 3, 0], [0, 0, 0, 4], [0, 1, 0, 0]]]))[0, -1, -1]
    assert float(plain(task.predict(model, ["1,2,3,4; 0,1,0"]))[0]) == pytest.approx(float(alone), rel=1e-5)
    assert [map.rows for map in task.look(model, "1,2,3,4; 0,1,0").maps] == [("x1", "y1", "x2")]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("1,2,3", ""),
        ("1,2", "part 1 of the input, '1,2', is not 3 numbers"),
        ("1,2,3; 1,2,3", "part 1 of the input, '1,2,3', is not 4 numbers"),
        ("1,2,x", "is not 3 numbers"),
        ("; ".join(["1,2,3,4"] * 6 + ["1,2,3"]), "has 7 parts, and the model learned from 6"),
    ],
)
def test_a_prompt_that_fits_no_map_is_refused(text: str, fault: str) -> None:
    learned = MapsLearned(3, 6)
    if not fault:
        TASK.pipeline.accepts(text, learned)
        return
    with pytest.raises(Refusal, match=fault):
        TASK.pipeline.accepts(text, learned)


def test_an_input_without_an_example_before_it_is_refused() -> None:
    with pytest.raises(Refusal, match=r"data\.longest=1 leaves no example before the input that is asked"):
        TASK.open(Maps(name="maps", samples=4, held_out=4, longest=1), 1)


def test_maps_are_read_from_no_file() -> None:
    with pytest.raises(Refusal, match=r"data=points\.csv: maps are drawn by chance"):
        TASK.open(Maps(name="points.csv"), 1)
