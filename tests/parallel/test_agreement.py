"""Two processes take the same steps as one, whatever the recipe, the layout and how uneven the batches are."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.safe.json_and_tensors import read_tensors
from heedful.training import checkpoint
from heedful.training.distributed.ranks import Ranks
from heedful.training.loop import Loop
from tests.parallel.worker import loop_of, steps

ROOT = Path(__file__).parents[2]
EXACT = {"training__dtype": "float64", "model__dropout": 0.0}
SINGLE = {"training__dtype": "float32", "model__dropout": 0.0}
DDP, FSDP = {"training__parallel": "ddp"}, {"training__parallel": "fsdp"}


def case(recipe: str, steps: int, **changes: Any) -> dict[str, Any]:
    return {"recipe": recipe, "steps": steps, "changes": changes}


CASES = {
    "a hundred steps": case("reverse", 100, **EXACT, **DDP),
    "a hundred sharded": case("reverse", 100, **EXACT, **FSDP),
    "single precision": case("reverse", 20, **SINGLE, **DDP),
    "single precision sharded": case("reverse", 20, **SINGLE, **FSDP),
    "a lone sample": case("sets", 9, training__batch=1, **EXACT, **DDP),  # so that one process has none
    "a lone sample sharded": case("sets", 9, training__batch=1, **EXACT, **FSDP),
    "micro-batches": case("series", 12, training__accumulate=3, **EXACT, **DDP),  # 7 samples: 3, 3 and 1
    "micro-batches sharded": case("series", 12, training__accumulate=3, training__average=0.9, **EXACT, **FSDP),
    "batches by tokens": case("translate", 12, objective__smoothing=0.1, **EXACT, **DDP),
    "batches by tokens sharded": case(
        "translate", 12, objective__smoothing=0.1, training__recompute="true", training__average=0.9, **EXACT, **FSDP
    ),
    "all twice": case("reverse", 5, objective__consistency=1.0, **EXACT, **DDP),
    "gone on": case("sort", 6, **EXACT, **DDP),
    "gone on sharded": case("sort", 6, training__average=0.9, **EXACT, **FSDP),
    "norms over batches": case("resnet", 6, training__dtype="float64", training__batch=9, **DDP),
    "norms over batches sharded": case("resnet", 6, training__dtype="float64", training__batch=9, **FSDP),
    "orthogonal steps sharded": case("reverse", 12, training__optimiser="muon", **EXACT, **FSDP),
    "members": case(
        "classify", 12, model__members=3, training__accumulate=2, objective__consistency=1.0, **EXACT, **DDP
    ),
    "members sharded": case("classify", 12, model__members=3, training__batch=4, **EXACT, **FSDP),
    "low": case("reverse", 20, training__dtype="bfloat16", model__dropout=0.0, **FSDP),
}
FIRST = 5  # steps that one process takes before two go on


def alone(case: dict[str, Any], folder: Path) -> Loop:
    changes = case["changes"] | {"training__parallel": "none", "training__recompute": "false"}
    return loop_of(case | {"changes": changes}, folder)


def torchrun(count: int, *words: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}", *words]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes left of every case."""
    home = tmp_path_factory.mktemp("agreement")
    for name, one in CASES.items():
        (home / name).mkdir()
        if name.startswith("gone on"):
            loop = alone(one, home / name / "before")
            steps(loop, FIRST)
            loop.save()
            loop.saver.wait()
            (saved,) = checkpoint.all_of(home / name / "before" / "checkpoints")
            saved.rename(home / name / "begun")
    (home / "cases.json").write_text(json.dumps(CASES))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
    words = torchrun(2, "-m", "tests.parallel.worker", str(home))
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    return home


def gap(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    return max(float((one[name].double() - other[name].double()).abs().max()) for name in one)


@pytest.mark.parametrize("name", [name for name in CASES if name != "low"])
def test_two_processes_agree_with_one(folder: Path, name: str) -> None:
    loop = alone(CASES[name], folder / name / "alone")
    begun = steps(loop, FIRST) if name.startswith("gone on") else []
    losses = steps(loop, CASES[name]["steps"])
    told = [json.loads((folder / name / f"rank-{rank}.json").read_text()) for rank in range(2)]
    exact = loop.model.state_dict()
    single = CASES[name]["changes"]["training__dtype"] == "float32"
    bound = 1e-5 if single else 1e-9
    assert told[0] == told[1] and len(losses) == len(told[0]["losses"])
    assert max(abs(a - b) for a, b in zip(losses, told[0]["losses"], strict=True)) < bound
    assert gap(exact, read_tensors(folder / name / "weights.safetensors")) < (10 if single else 1) * bound
    assert begun or losses[0] != losses[-1]
    with loop.averaged():
        assert loop.task.score(loop.model, loop.splits.valid)[loop.task.watch] == pytest.approx(told[0]["score"])


@pytest.mark.parametrize("name", ["a hundred steps", "a hundred sharded", "micro-batches sharded", "gone on sharded"])
def test_what_two_processes_saved_one_goes_on_with(folder: Path, name: str) -> None:
    whole, resumed = (alone(CASES[name], folder / name / "resumed") for _ in range(2))
    before = CASES[name]["steps"] + (FIRST if name.startswith("gone on") else 0)
    steps(whole, before)
    resumed.restore(checkpoint.all_of(folder / name / "run" / "checkpoints")[-1])
    assert resumed.progress.step == before
    losses = steps(whole, 4), steps(resumed, 4)
    assert losses[0] == pytest.approx(losses[1], rel=1e-8)
    assert gap(whole.model.state_dict(), resumed.model.state_dict()) < 1e-9
    if whole.average and resumed.average:
        assert gap(whole.average.weights, resumed.average.weights) < 1e-9


def test_blocks_in_bfloat16_learn_about_the_same(folder: Path) -> None:
    losses = steps(alone(CASES["low"], folder / "low" / "alone"), 20)
    told = json.loads((folder / "low" / "rank-0.json").read_text())["losses"]
    assert told == pytest.approx(losses, rel=0.05)
    assert told != losses


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 4))
def test_every_sample_is_dealt_out_once_and_nobody_sits_out(count: int, size: int, together: int) -> None:
    samples, dealt = list(range(count)), []
    for rank in range(size):
        one = Ranks()
        one.rank, one.size = rank, size
        own, there = one.share(samples, together)
        assert len(own) > 0 and all(sample % together == at % together for at, sample in enumerate(own))
        dealt += own if there else []
        assert there in (0.0, 1.0)
    assert sorted(dealt) == samples
