"""The mean of the last checkpoints is tried at the end, and taken only where it is better than the best weights."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from heedful.errors import Refusal
from heedful.formats.native import load
from heedful.formats.weights import restore
from heedful.training import checkpoint
from heedful.training.loop import Loop
from tests.training.runs import Silent, loop_of, short, train
from tests.training.test_choosing import Told, equal, told, told_of_a_run

EACH = {"training__steps": 9, "training__evaluate_every": 3, "training__save_every": 2, "training__keep": 4}


def by_hand(folder: Path, steps: list[int], part: str) -> dict[str, Tensor]:
    """The mean of what checkpoints hold, in float64."""
    held = [load_file(folder / "checkpoints" / f"step-{step:08d}" / f"{part}.safetensors") for step in steps]
    return {name: torch.stack([one[name].double() for one in held]).mean(0) for name in held[0]}


def close(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    names = one.keys() & other.keys()  # tied weights are written once
    assert len(names) > 20
    return all(torch.allclose(one[name].double(), other[name].double(), rtol=0, atol=1e-7) for name in names)


def tried(folder: Path, *scores: float, **changes: Any) -> tuple[Loop, Told, Silent]:
    """A loop that has learned, and was told how good it is: three times on the way, and then with the mean."""
    loop, record = loop_of(folder, short("reverse", **(EACH | changes))), Silent()
    score = told(loop, *scores)
    loop.train(record)
    restore(loop.model, loop.best, "the best weights")
    loop.try_mean(record)  # type: ignore[arg-type]
    return loop, score, record


@pytest.mark.parametrize(("average", "part"), [(0, "model"), (0.9, "average")])
@pytest.mark.parametrize(("last", "steps"), [(2, [8, 9]), (3, [6, 8, 9]), (4, [4, 6, 8, 9])])
def test_what_is_tried_is_the_mean_of_the_last_checkpoints_or_of_their_averages(
    tmp_path: Path, average: float, part: str, last: int, steps: list[int]
) -> None:
    _, score, _ = tried(tmp_path, 0.1, training__average=average, training__average_last=last)
    assert len(score.shown) == 4
    assert close(score.shown[-1], by_hand(tmp_path, steps, part))
    assert not close(score.shown[-1], by_hand(tmp_path, steps[:-1], part))


@pytest.mark.parametrize(("of_the_mean", "taken"), [(0.51, True), (0.5, False), (0.2, False)])
def test_it_is_taken_only_where_it_is_better_than_the_best(tmp_path: Path, of_the_mean: float, taken: bool) -> None:
    loop, score, record = tried(tmp_path, 0.1, 0.5, 0.3, of_the_mean, training__average_last=3)
    expected = score.shown[-1] if taken else loop.best
    assert all(torch.equal(loop.model.state_dict()[name], expected[name]) for name in loop.best)
    assert not close(score.shown[-1], loop.best)
    said = [line[1] for line in record.lines if line[0] == "said"]
    assert said == [
        f"mean of the last 3 checkpoints: exact {of_the_mean:.4f} on validation against 0.5000; "
        f"{'taken' if taken else 'not taken'}"
    ]


@pytest.mark.parametrize("taken", [True, False])
def test_the_model_that_is_tested_and_written_is_the_one_that_was_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    score, tested = told_of_a_run(monkeypatch, 0.25, 0.1, 0.5, 0.3, 0.9 if taken else 0.4)  # on the way, the mean
    result = train(short("reverse", training__average_last=2, **EACH), tmp_path / "run")
    assert result["scores"] == {"exact": 0.25} and len(score.shown) == 4
    assert equal(tested.shown[0], score.shown[3 if taken else 1])
    assert equal(load(tmp_path / "run").state_dict(), tested.shown[0])


@pytest.mark.parametrize(
    "changes", [{}, {"average_last": 0}, {"average_last": 1}, {"average_last": 2, "save_every": 9}]
)
def test_nothing_is_tried_where_nothing_was_asked_for_or_there_is_but_one(tmp_path: Path, changes: Any) -> None:
    loop, score, record = tried(
        tmp_path, 0.1, 0.5, 0.3, **{f"training__{key}": value for key, value in changes.items()}
    )
    assert len(score.shown) == 3 and not [line for line in record.lines if line[0] == "said"]
    assert all(torch.equal(loop.model.state_dict()[name], tensor) for name, tensor in loop.best.items())


def test_weights_of_any_precision_keep_it(tmp_path: Path) -> None:
    for dtype in (torch.float32, torch.float64):
        place = tmp_path / str(dtype)
        loop = loop_of(place, short("reverse", training__dtype=str(dtype).removeprefix("torch."), training__average=0))
        for step in (1, 2):
            loop.progress.step = step
            loop.save()
            loop.saver.wait()
        mean = checkpoint.mean(checkpoint.all_of(place / "checkpoints"))
        assert {tensor.dtype for tensor in mean.values()} == {dtype}
        assert all(torch.equal(tensor, loop.model.state_dict()[name]) for name, tensor in mean.items())


def test_as_many_checkpoints_must_be_kept() -> None:
    said = r"^training\.average_last=3 needs as many checkpoints; set training\.keep=3$"
    with pytest.raises(Refusal, match=said):
        short("reverse", training__average_last=3, training__keep=2)
    assert short("reverse", training__average_last=3, training__keep=3).training.average_last == 3
