"""Evaluation, the best weights, and when a run has learned enough."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.formats.native import load
from heedful.metrics import metric
from heedful.tasks.work import Work
from heedful.training.loop import Loop
from tests.training.runs import Silent, loop_of, short, train

EACH_STEP = {"training__evaluate_every": 1, "training__average": 0}


class Told:
    """Scores that are told beforehand, the last of them again and again; keeps the weights that it was shown."""

    def __init__(self, *scores: float) -> None:
        self.left, self.shown = list(scores), []

    def __call__(self, model: torch.nn.Module, samples: Any) -> dict[str, float]:
        self.shown.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        return {"exact": self.left.pop(0) if len(self.left) > 1 else self.left[0]}


def told(loop: Loop, *scores: float) -> Told:
    told = Told(*scores)

    class Judged(Work):
        def score(self, model: torch.nn.Module, samples: Any) -> dict[str, float]:
            return told(model, samples)

    loop.task = Judged(**{one.name: getattr(loop.task, one.name) for one in fields(loop.task) if one.init})
    return told


def told_of_a_run(monkeypatch: pytest.MonkeyPatch, tested: float, *scores: float) -> tuple[Told, Told]:
    """What validation data and then the test come to, in a run."""
    valid, test = Told(*scores), Told(tested)
    monkeypatch.setattr(Work, "score", lambda self, model, samples: valid(model, samples))
    monkeypatch.setattr(Work, "measure", lambda self, model, samples: [test(model, samples)])
    monkeypatch.setattr(metric, "scores", lambda measured: measured[0])
    monkeypatch.setattr(metric, "details", lambda measured: {})
    return valid, test


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_evaluation_is_of_the_average_and_leaves_the_weights_bit_for_bit(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, short("reverse", training__average=0.9, training__evaluate_every=23))
    score = told(loop, 0.5)
    loop.train(Silent())
    raw = {name: tensor.clone() for name, tensor in loop.model.state_dict().items()}
    loop.evaluate(Silent())
    assert loop.average is not None
    assert equal(score.shown[-1], loop.average.weights)
    assert not equal(score.shown[-1], raw)
    assert equal(loop.model.state_dict(), raw)
    assert all(torch.equal(tensor, loop.average.weights[name]) for name, tensor in loop.best.items())


def test_the_weights_come_back_when_an_evaluation_breaks(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, short("reverse", training__average=0.9, training__steps=3))
    told(loop, 0.5)
    loop.train(Silent())
    raw = {name: tensor.clone() for name, tensor in loop.model.state_dict().items()}
    with pytest.raises(RuntimeError, match="broke"), loop.averaged():
        raise RuntimeError("broke")
    assert equal(loop.model.state_dict(), raw)


def test_without_an_average_the_weights_themselves_are_evaluated(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, short("reverse", training__steps=2, **EACH_STEP))
    score = told(loop, 0.1, 0.2)
    loop.train(Silent())
    assert equal(score.shown[-1], loop.model.state_dict())


@pytest.mark.parametrize(
    ("scores", "best"),
    [((0.1, 0.5, 0.3, 0.2), 2), ((0.5, 0.1, 0.2, 0.3), 1), ((0.1, 0.5, 0.5, 0.2), 3), ((0.0, 0.0, 0.0, 0.0), 4)],
)
def test_the_best_weights_are_kept_and_of_equals_the_last(tmp_path: Path, scores: tuple[float, ...], best: int) -> None:
    loop = loop_of(tmp_path, short("reverse", training__steps=4, **EACH_STEP))
    score = told(loop, *scores)
    loop.train(Silent())
    assert (loop.progress.best_step, loop.progress.best_score) == (best, max(scores))
    assert all(torch.equal(tensor, score.shown[best - 1][name]) for name, tensor in loop.best.items())
    assert not equal(score.shown[0], score.shown[-1])


def test_the_model_of_a_run_has_its_best_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    score, tested = told_of_a_run(monkeypatch, 0.25, 0.1, 0.7, 0.2, 0.3)
    result = train(short("reverse", training__steps=4, **EACH_STEP), tmp_path / "run")
    assert (result["step"], result["best_step"], result["scores"]) == (4, 2, {"exact": 0.25})
    assert equal(load(tmp_path / "run").state_dict(), score.shown[1])
    assert equal(tested.shown[0], score.shown[1])  # what was tested is what was written


@pytest.mark.parametrize(
    ("patience", "scores", "stops"),
    [
        (2, (0.5, 0.4, 0.3), 3),
        (3, (0.5, 0.4, 0.3), 4),
        (2, (0.5, 0.5, 0.5), 3),  # as good is no better
        (2, (0.1, 0.1, 0.2, 0.1, 0.3, 0.3, 0.3), 7),
        (0, (0.5, 0.4, 0.3), 23),
    ],
)
def test_a_run_ends_when_its_score_has_not_grown_for_too_long(
    tmp_path: Path, patience: int, scores: tuple[float, ...], stops: int
) -> None:
    loop = loop_of(tmp_path, short("reverse", training__patience=patience, **EACH_STEP))
    told(loop, *scores)
    loop.train(Silent())
    assert loop.progress.step == stops


@pytest.mark.parametrize(("enough", "stops"), [(0.5, 3), (0.51, 4), (0.05, 1), (0.9, 23)])
def test_a_run_ends_when_its_score_is_good_enough(tmp_path: Path, enough: float, stops: int) -> None:
    loop = loop_of(tmp_path, short("reverse", training__enough=enough, **EACH_STEP))
    told(loop, 0.1, 0.2, 0.5, 0.6)
    loop.train(Silent())
    assert loop.progress.step == stops


def test_a_negative_score_can_be_the_best(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, short("reverse", training__steps=2, **EACH_STEP))
    told(loop, -3.0, -2.0)
    loop.train(Silent())
    assert (loop.progress.best_step, loop.progress.best_score) == (2, -2.0)


def test_a_log_line_is_the_mean_loss_since_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, record, losses = loop_of(tmp_path, short("reverse")), Silent(), []
    own = Loop.step
    monkeypatch.setattr(Loop, "step", lambda self, *given: (losses.append(own(self, *given)), losses[-1].clone())[1])
    loop.train(record)
    lines = {line[1]: line[2] for line in record.lines if line[0] == "learned"}
    assert list(lines) == [5, 10, 15, 20, 23]
    for step, loss in lines.items():
        window = losses[5 * ((step - 1) // 5) : step]
        assert loss == pytest.approx(float(sum(window) / len(window)), rel=1e-6)
