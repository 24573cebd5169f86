"""Out of memory: one line that says where, how much was asked for and there was, and what would fit."""

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful import cli
from heedful.errors import Failure
from heedful.tasks.work import Work
from heedful.training.loop import Loop
from heedful.training.microbatches import Portions
from heedful.training.out_of_memory import name_what_lacked, room
from heedful.training.precision import Precision
from tests.training.runs import CHANGES, short, train

ROOT = Path(__file__).parents[2]
GPU = (
    "CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 1.75 GiB is "
    "free. Process 1 has 138.00 GiB memory in use. Of the allocated memory 130.00 GiB is allocated by PyTorch, and "
    "7.00 GiB is reserved by PyTorch but unallocated."
)
CPU = "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
LINUX, WINDOWS = (
    f"{CPU}4000000000000 bytes. Error code 12 (Cannot allocate memory)",
    "not enough memory: you tried to allocate 4000000000000 bytes.",
)


def failing(error: Exception) -> Any:
    def fail(*given: Any, **named: Any) -> Any:
        raise error

    return fail


def said(tmp_path: Path, owner: Any, name: str, error: Exception, **changes: Any) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, failing(error))
        with pytest.raises(Failure) as failure:
            train(short("reverse", training__steps=3, **changes), tmp_path / "run")
    return str(failure.value)


FIRST = [(Work, "loss", "a first try of the model")]
SAME = "which makes the same step in smaller pieces"
PARTS = [(Portions, "at", "data"), (Loop, "judged", "forward"), (Precision, "backward", "backward")]
MORE = [
    (Precision, "step", "optimiser"),
    (Loop, "evaluate", "evaluation"),
    (Loop, "save", "saving"),
]


@pytest.mark.parametrize(("owner", "name", "part"), FIRST + PARTS + MORE)
def test_the_part_is_named_and_what_a_gpu_said(tmp_path: Path, owner: Any, name: str, part: str) -> None:
    line = said(tmp_path, owner, name, torch.OutOfMemoryError(GPU))
    assert line.startswith(f"out of memory in {part}: 6 GiB more was asked for and 1.75 GiB of 140 GiB is free; set ")


@pytest.mark.parametrize("text", [LINUX, WINDOWS])
def test_of_a_cpu_the_system_is_asked(tmp_path: Path, text: str) -> None:
    line = said(tmp_path, Loop, "judged", RuntimeError(text))
    free, total = room(text)
    assert free is not None and total is not None and 0 < free < total
    assert line.startswith("out of memory in forward: 3.73e+03 GiB more was asked for and ")
    assert " GiB is free; set " in line


def test_memory_that_python_lacks_is_told_too(tmp_path: Path) -> None:
    line = said(tmp_path, Portions, "at", MemoryError())
    assert line.startswith("out of memory in data: more was asked for and ")


@pytest.mark.parametrize(
    ("changes", "cure"),
    [
        (  # 6 GiB into 1.75: four pieces
            {"training__batch": 7},
            f"set training.accumulate=4, {SAME}, or training.batch=1, or model.width=16",
        ),
        ({"training__batch": 2}, "set model.width=16"),
        (
            {"training__tokens": 400, "training__accumulate": 3},
            f"set training.accumulate=12, {SAME}, or training.tokens=100, or model.width=16",
        ),
    ],
)
def test_what_would_fit_is_computed(tmp_path: Path, changes: dict[str, Any], cure: str) -> None:
    line = said(tmp_path, Loop, "judged", torch.OutOfMemoryError(GPU), model__width=32, model__heads=4, **changes)
    assert line.endswith(f"free; {cure}")


def test_data_are_cured_by_smaller_batches_alone(tmp_path: Path) -> None:
    line = said(tmp_path, Portions, "at", torch.OutOfMemoryError(GPU), training__batch=7)
    assert line.endswith("free; set training.batch=1")
    (again := tmp_path / "again").mkdir()
    line = said(again, Portions, "at", torch.OutOfMemoryError(GPU), training__batch=2)
    assert line.endswith("free; use a machine that has more")


def test_an_optimiser_is_cured_by_one_that_keeps_less(tmp_path: Path) -> None:
    line = said(tmp_path, Precision, "step", torch.OutOfMemoryError(GPU))
    assert "; set training.optimiser=adafactor, which keeps less, or model.width=" in line
    (again := tmp_path / "again").mkdir()
    line = said(again, Precision, "step", torch.OutOfMemoryError(GPU), training__optimiser="adafactor")
    assert "; set model.width=" in line


def test_a_cure_can_be_taken(tmp_path: Path) -> None:
    line = said(tmp_path, Loop, "judged", torch.OutOfMemoryError(GPU))
    cures = [part.split(",")[0] for part in line.split("; set ")[1].split(", or ")]
    for number, cure in enumerate(cures):
        key, value = cure.split("=")
        train(short("reverse", training__steps=1, **{key.replace(".", "__"): int(value)}), tmp_path / str(number))
    assert len(cures) == 3


def test_any_other_error_goes_through() -> None:
    for error in (RuntimeError("shapes differ"), Failure("out of memory in forward: 1 GiB"), KeyError("out of memory")):
        with pytest.raises(type(error)) as seen, name_what_lacked("forward", short("reverse")):
            raise error
        assert seen.value is error


def test_the_command_line_says_it_in_one_line_with_status_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loop, "judged", failing(torch.OutOfMemoryError(GPU)))
    changes = [f"{key}={value}" for key, value in CHANGES.items()]
    with pytest.raises(SystemExit) as left:
        cli.main(["train", "reverse", "data=toy", *changes, "--out", str(tmp_path / "run"), "--device", "cpu"])
    assert left.value.code == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("heedful: out of memory in forward: 6 GiB more ")


def test_a_process_that_may_take_no_more_says_so(tmp_path: Path) -> None:
    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))

    changes = "data=toy training.threads=1 training.batch=8000 model.width=256 model.heads=8 model.depth=2"
    words = ["train", "reverse", *changes.split(), "--device", "cpu", "--out", str(tmp_path / "run")]
    command = [sys.executable, "-m", "heedful", *words]
    done = subprocess.run(command, cwd=ROOT, preexec_fn=little, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith("heedful: out of memory in forward: ") and " of 3 GiB is free; set training.acc" in said
