"""What a beginning is worth is told beside the same run from scratch, which resumes as every run does."""

import json
from pathlib import Path

import pytest
import torch
import yaml

from heedful.errors import Refusal
from heedful.formats import native
from heedful.training.loop import Loop
from heedful.training.spec.recipes import resolve, validate_spec
from heedful.training.spec.run_spec import RunSpec
from tests.training.runs import assert_same, contents, killed_at, short, train

TINY = {"training__steps": 6, "training__warmup": 1, "training__save_every": 2, "training__evaluate_every": 3}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that filled in words, of a few steps."""
    out = tmp_path_factory.mktemp("start") / "run"
    train(short("bert-text", data__tokenizer="words(size=400)", **TINY), out)
    return out


def begun(start: Path) -> RunSpec:
    """A run that begins with it, and is compared."""
    return short("classify", start=start, compare="scratch", **TINY)


def test_pre_training_and_fine_tuning_are_one_chain_with_the_gain_in_the_report(tmp_path: Path, start: Path) -> None:
    result = train(begun(start), tmp_path / "run")
    scratch = json.loads((tmp_path / "run" / "scratch" / "result.json").read_text())
    assert scratch["step"] == result["step"] == 6 and scratch["weights"] == result["weights"]
    one, two = (native.load(tmp_path / "run" / name) for name in ("model", "scratch/model"))
    assert one.spec == two.spec
    pages = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    own, other = (found["scores"]["accuracy"] for found in (result, scratch))
    assert f"{100 * own:.2f} % against {100 * other:.2f} %" in pages and "accuracy, from scratch" in pages
    tokens = [(place / "tokenizer.json").read_bytes() for place in (start / "model", tmp_path / "run" / "model")]
    assert tokens[0] == tokens[1]


@pytest.mark.parametrize("call", [4, 10])  # in the run from scratch, and in the other
def test_both_runs_go_on_to_the_same_bits(tmp_path: Path, start: Path, call: int) -> None:
    with killed_at(Loop, "step", call):
        train(begun(start), tmp_path / "cut")
    train(begun(start), tmp_path / "cut", resume=True)
    train(begun(start), tmp_path / "whole")
    assert_same(contents(tmp_path / "cut"), contents(tmp_path / "whole"))


def test_from_scratch_all_of_a_model_learns_whatever_is_spared_of_a_beginning(tmp_path: Path, start: Path) -> None:
    spared = {"training__freeze": "[inputs, encoder.blocks.0]", "training__layer_decay": 0.5}
    train(short("classify", start=start, compare="scratch", **TINY, **spared), tmp_path / "run")
    own, other = (
        validate_spec(yaml.safe_load((tmp_path / "run" / name / "run.yaml").read_text())).training
        for name in ("", "scratch")
    )
    assert own.freeze == ["inputs", "encoder.blocks.0"] and own.layer_decay == 0.5
    assert (other.freeze, other.lora, other.layer_decay) == ([], None, 1.0)
    assert other.model_copy(update={"freeze": own.freeze, "layer_decay": 0.5}) == own  # and else it is the same run
    begun, fresh = (native.load(tmp_path / "run" / name).state_dict() for name in ("model", "scratch/model"))
    table = native.load(start).state_dict()["inputs.table.weight"]
    assert torch.equal(begun["inputs.table.weight"], table) and not torch.equal(fresh["inputs.table.weight"], table)


def test_without_a_start_there_is_nothing_to_compare() -> None:
    with pytest.raises(Refusal, match="compare=scratch measures what a start is worth; give start=FOLDER"):
        resolve("classify", ["data=toy", "compare=scratch"])
