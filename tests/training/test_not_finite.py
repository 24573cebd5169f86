"""A loss that is not finite stops a run before anything bad is saved, and says where to go back to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful import cli
from heedful.errors import Failure
from heedful.tasks.work import Work
from heedful.training import checkpoint
from heedful.training.loop import Loop
from heedful.training.schedule import rate
from tests.training.runs import CHANGES, assert_same, contents, short, train


@contextmanager
def lost_at(step: int, spoil: Any) -> Iterator[None]:
    """Spoils a loop from a step on."""
    own = Loop.step

    def step_or_lose(self: Loop, *given: Any) -> Any:
        return spoil(self, own, *given) if self.progress.step + 1 >= step else own(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "step", step_or_lose)
        yield


def bad_loss(loop: Loop, own: Any, *step: Any) -> Any:
    """The weights stay finite; it is the loss that is not."""
    losses = Work.losses

    def spoiled(*given: Any) -> Any:
        return {name: replace(loss, sum=loss.sum + float("inf")) for name, loss in losses(*given).items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Work, "losses", spoiled)
        return own(loop, *step)


def bad_weights(loop: Loop, own: Any, *step: Any) -> Any:
    """The loss is finite; it is the step after it that is not."""
    loss = own(loop, *step)
    with torch.no_grad():
        next(loop.model.parameters())[0, 0] = float("inf")
    return loss


def finite(place: Path) -> bool:
    _, parts = checkpoint.read_checkpoint(place)
    return all(bool(tensor.isfinite().all()) for tensors in parts.values() for tensor in tensors.values())


@pytest.mark.parametrize(("spoil", "what"), [(bad_loss, "loss is"), (bad_weights, "weights are")])
@pytest.mark.parametrize("step", [14, 20, 23])  # where it saves, where it scores, and the last
def test_the_last_good_checkpoint_is_named_is_finite_and_goes_on(
    tmp_path: Path, step: int, spoil: Any, what: str
) -> None:
    spec, out = short("reverse"), tmp_path / "run"
    good = out / "checkpoints" / f"step-{7 * ((step - 1) // 7):08d}"
    with lost_at(step, spoil), pytest.raises(Failure) as failure:
        train(spec, out)
    expected = f"the {what} not finite at step {step}, at a rate of {rate(spec.training, step - 1):.3g}; "
    assert str(failure.value).startswith(
        f"{expected}the last good checkpoint is {good}; train anew with a lower training.rate"
    )
    assert checkpoint.all_of(out / "checkpoints")[-1] == good and finite(good)
    train(spec, out, resume=True)
    train(spec, tmp_path / "whole")
    assert_same(contents(out), contents(tmp_path / "whole"))


def test_the_step_that_is_named_is_the_first_whose_loss_was_lost(tmp_path: Path) -> None:
    with lost_at(8, bad_loss), pytest.raises(Failure, match="loss is not finite at step 8, "):
        train(short("reverse", training__evaluate_every=23), tmp_path / "run")  # found out at step 10


def test_what_is_not_finite_is_neither_scored_nor_told(tmp_path: Path) -> None:
    with lost_at(3, bad_loss), pytest.raises(Failure, match="nothing was saved before it"):
        train(short("reverse"), tmp_path / "run")  # scores at step 4, before the first line of the log
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == ""


@pytest.mark.parametrize("recipe", ["reverse", "series"])
def test_a_rate_that_is_far_too_high_ends_in_one_line_and_status_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recipe: str
) -> None:
    out = tmp_path / "run"
    changes = [f"{key}={value}" for key, value in (CHANGES | {"training.rate": 1e30, "training.save_every": 1}).items()]
    with pytest.raises(SystemExit) as left:
        cli.main(["train", recipe, "data=toy", *changes, "--out", str(out), "--device", "cpu"])
    assert left.value.code == 1
    said = capsys.readouterr().err.splitlines()[-1]
    saved = checkpoint.all_of(out / "checkpoints")
    assert said.startswith("heedful: the ") and " not finite at step " in said and " at a rate of " in said
    assert (f"the last good checkpoint is {saved[-1]}" if saved else "nothing was saved before it") in said
    assert all(finite(place) for place in saved)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert all(abs(value) < float("inf") for row in rows for value in row.values() if isinstance(value, float))
