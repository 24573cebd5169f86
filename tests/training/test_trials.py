"""What is tried before the first step: the rate by a range test, the largest batch, the steps that fit the minutes."""

import json
import time

import pytest
import torch

from heedful import terminal
from heedful.errors import Refusal
from heedful.formats.native import load
from heedful.training import trials
from heedful.training.prepare import prepare
from heedful.training.record import Record
from heedful.training.run import device, train
from heedful.training.run_folder import same
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import read_yaml

TINY = ["data.samples=300", "data.held_out=40", "training.batch=16", "training.log_every=1000", "training.threads=1"]
FEW = [*TINY, "training.steps=6", "training.evaluate_every=6", "training.warmup=2"]


def test_the_rate_of_a_range_test_is_where_the_loss_falls_fastest():
    rates = [10 ** (-6 + 6 * at / 99) for at in range(100)]
    found = [(rate, 4 / (1 + (rate / 1e-3) ** 2) + max(0.0, 30 * (rate - 0.05))) for rate in rates]
    assert 3e-4 < trials.chosen_rate(found) < 1.5e-3
    with pytest.raises(Refusal, match=r"give a rate"):
        trials.chosen_rate(found[:5])


def test_a_rate_that_is_found_is_written_as_if_asked_for_and_its_curve_stands_in_the_report(tmp_path, capsys):
    asked = recipes.resolve("reverse", ["data=toy", *FEW, "training.rate=find"])
    train(asked, tmp_path / "run", False, device("cpu"))
    tried = json.loads((tmp_path / "run" / trials.SEARCH).read_text())
    run = read_yaml(tmp_path / "run" / "run.yaml")
    assert run["training"]["rate"] == tried["rate"] > 1e-4 and run["training"]["tried"] == ["rate"]
    assert len(tried["tried"]) > 20 and "How high a rate" in (tmp_path / "run" / "report.html").read_text()
    assert f"training.rate={tried['rate']:g}" in capsys.readouterr().err
    again = recipes.resolve("reverse", ["data=toy", *FEW, f"training.rate={tried['rate']}"])
    train(again, tmp_path / "again", False, device("cpu"))  # the model that was tried is a copy
    one, two = (load(tmp_path / name / "model").state_dict() for name in ("run", "again"))
    assert all(torch.equal(one[key], two[key]) for key in one)


def test_minutes_become_steps_once_and_a_run_that_goes_on_keeps_them(tmp_path):
    asked = recipes.resolve("reverse", ["data=toy", *TINY, "training.minutes=0.02", "training.evaluate_every=5"])
    began = time.monotonic()
    train(asked, tmp_path / "run", False, device("cpu"))
    begun = recipes.resolve(str(tmp_path / "run" / "run.yaml"))
    assert 0 < begun.training.steps != asked.training.steps and begun.training.minutes == 0.02
    assert begun.training.warmup <= max(1, begun.training.steps) and time.monotonic() - began < 60
    kept = same(asked, begun, tmp_path / "run", ["training.minutes", "training.evaluate_every"])
    assert kept.training.steps == begun.training.steps


def test_the_largest_batch_fits_the_memory_that_is_free_and_twice_as_many_samples_do_not(tmp_path, monkeypatch):
    ready = prepare(recipes.resolve("reverse", ["data=toy", *FEW, "training.batch=auto"]), device("cpu"))
    needs = {batch: trials.peak_of(ready, batch) for batch in (4, 8)}
    monkeypatch.setattr(trials, "free_memory", lambda device: (needs[4] + needs[8]) / 2 / trials.ROOM)
    settled = trials.settle_by_trial(ready, tmp_path, 1)
    assert settled.run.training.batch == 4 and needs[4] < needs[8]
    with pytest.raises(Refusal, match=r"training\.batch is tried by one process, and there are 2"):
        trials.settle_by_trial(ready, tmp_path, 2)


def test_who_has_no_terminal_hears_where_the_run_is_after_a_silence_and_how_long_it_takes(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(terminal, "SILENCE", 0.0)
    with Record(tmp_path, 10, 0) as record:
        record.advance(4)
        time.sleep(1.2)
        with record.working("scoring", 8) as heard:
            heard(8)
    assert "step 4/10  " in (said := capsys.readouterr().err) and " left" in said


@pytest.mark.parametrize(("seconds", "said"), [(4.4, "4 s"), (720, "12 min"), (12_000, "3 h 20 min")])
def test_a_time_is_said_in_words(seconds, said):
    assert terminal.duration(seconds) == said
