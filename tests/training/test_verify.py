"""`heedful verify-resume`: real processes, really killed."""

import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from heedful.errors import Failure
from heedful.training import resume_proof
from heedful.training.resume_proof import Cut, choose_cuts, difference

WORDS = ["reverse", "data=toy", "data.samples=200", "data.held_out=16", "training.steps=40", "training.batch=8",
         "training.accumulate=2", "training.average=0.9", "model.dropout=0.1", "training.save_every=6",
         "training.evaluate_every=9", "training.log_every=4", "--device", "cpu"]  # fmt: skip


def test_a_kill_at_a_step_and_one_inside_a_save_leave_the_same_bytes(tmp_path: Path) -> None:
    said: list[str] = []  # `make prove` has a hundred of them
    assert resume_proof.verify(WORDS, tmp_path, choose_cuts(2, 40, 1), said.append) is None
    assert said[-1] == "came to its end after 2 kills"
    assert sum(line.startswith("killed at step") for line in said) == 2
    assert sum("at file operation" in line for line in said) == 1
    assert (tmp_path / "cut" / "result.json").exists()
    (tmp_path / "cut" / "metrics.jsonl").write_text("{}\n")
    assert str(difference(tmp_path / "whole", tmp_path / "cut")).startswith("metrics.jsonl differs first in line 1")


def test_cuts_are_spread_over_the_run_by_turns_at_steps_and_inside_saves() -> None:
    for cuts, steps in ((5, 100), (7, 7), (10, 3), (1, 1)):
        made = choose_cuts(cuts, steps, 0)
        assert len(made) == cuts and all(1 <= cut.step <= steps for cut in made)
        assert [cut.operation > 0 for cut in made] == [at % 2 == 1 for at in range(cuts)]
        assert [cut.step for cut in made] == sorted(cut.step for cut in made)
    assert choose_cuts(5, 100, 0) == choose_cuts(5, 100, 0) != choose_cuts(5, 100, 1)
    assert str(Cut(3, 0)) == "at step 3" and str(Cut(3, 2)) == "at step 3, at file operation 2 after it"


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "other"):
        (tmp_path / name / "model").mkdir(parents=True)
        save_file({"a": torch.zeros(2), "b": torch.ones(2)}, tmp_path / name / "model" / "model.safetensors")
        (tmp_path / name / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2}\n')
        (tmp_path / name / "timing.jsonl").write_text(name)
        (tmp_path / name / "tensorboard").mkdir()
        (tmp_path / name / "tensorboard" / name).write_text(name)
    return tmp_path / "one", tmp_path / "other"


def test_the_first_difference_is_named(two: tuple[Path, Path]) -> None:
    one, other = two
    assert difference(one, other) is None
    save_file({"a": torch.zeros(2), "b": torch.tensor([1.0, 2.0])}, other / "model" / "model.safetensors")
    assert difference(one, other) == "model/model.safetensors differs first in tensor 'b'"
    (other / "metrics.jsonl").write_text('{"step": 1}\n{"step": 3}\n')
    told = """metrics.jsonl differs first in line 2: "{\\"step\\": 2}" and "{\\"step\\": 3}\""""
    assert difference(one, other) == told
    (other / "a.json").write_text("{}")
    assert difference(one, other) == "a.json is in other alone"


def test_a_run_that_stops_by_itself_is_no_proof(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"^training stopped by itself: heedful: training\.steps"):
        resume_proof.verify(["reverse", "training.steps=0"], tmp_path, [], lambda line: None)
    assert os.listdir(tmp_path) == []
