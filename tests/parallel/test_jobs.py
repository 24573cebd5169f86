"""Whole jobs by torchrun: a process that is killed takes them down and is named; they come back, and go on anywhere."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heedful.safe.json_and_tensors import read_tensors
from heedful.training import checkpoint
from heedful.training.spec import recipes
from tests.parallel.test_agreement import ROOT, gap, torchrun
from tests.training.runs import assert_same, contents, train

CHANGES = [
    "data=toy",
    "data.samples=300",
    "data.held_out=16",
    "model.dropout=0",
    "training.dtype=float64",
    "training.steps=60",
    "training.batch=15",
    "training.log_every=5",
    "training.save_every=5",
    "training.evaluate_every=30",
]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
GONE = "heedful: rank 1 (process {}) is gone; go on from what was saved last with --resume, or let torchrun do so"


def words(out: Path, *more: str) -> list[str]:
    return ["-m", "heedful", "train", "reverse", *CHANGES, *more, "--out", str(out), "--device", "cpu"]


def saved(out: Path) -> int:
    """The last step that was saved."""
    places = checkpoint.all_of(out / "checkpoints")
    return int(places[-1].name.removeprefix("step-")) if places else 0


def second_process(job: int) -> int:
    """The process of rank 1: torchrun starts them in order."""
    return int(Path(f"/proc/{job}/task/{job}/children").read_text().split()[1])


def kill_after(job: subprocess.Popen[str], out: Path, step: int) -> int:
    """Kills rank 1 once a step was saved."""
    until = time.monotonic() + 120
    while saved(out) < step:
        assert job.poll() is None and time.monotonic() < until, job.communicate()[1]
        time.sleep(0.02)
    process = second_process(job.pid)
    os.kill(process, signal.SIGKILL)
    return process


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int], str, float]:
    """A job of two whose rank 1 is killed, comes back, and is killed again: folder, processes, words and seconds."""
    out = tmp_path_factory.mktemp("jobs") / "run"
    job = subprocess.Popen(
        torchrun(2, "--max-restarts=1", *words(out)),
        cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    first = kill_after(job, out, 10)
    second = kill_after(job, out, saved(out) + 10)
    began = time.monotonic()
    said = job.communicate(timeout=60)[1]
    assert job.returncode == 1
    return out, [first, second], said, time.monotonic() - began


def test_a_killed_process_is_named_once_and_ends_the_job_within_seconds(
    killed: tuple[Path, list[int], str, float],
) -> None:
    _, processes, said, seconds = killed
    lines = [line for line in said.splitlines() if line.startswith("heedful: ")]
    assert len(lines) == 2, said
    for line, process in zip(lines, processes, strict=True):
        assert line.startswith(GONE.format(process))
    assert "[rank" not in said  # no traceback of ours
    assert seconds < 10


def test_a_job_that_may_restart_goes_on_from_what_was_saved(killed: tuple[Path, list[int], str, float]) -> None:
    at = [int(step) for step in re.findall(r"going on at step (\d+)", killed[2])]
    assert len(at) == 1 and at[0] >= 10 and at[0] % 5 == 0
    assert killed[2].count("from step 0") == 1


def test_what_two_processes_left_goes_on_with_one_and_with_four(
    killed: tuple[Path, list[int], str, float], tmp_path: Path
) -> None:
    spec = recipes.resolve("reverse", CHANGES)
    train(spec, tmp_path / "whole")
    for name in ("one", "four"):
        shutil.copytree(killed[0], tmp_path / name)
    with pytest.warns(UserWarning, match="was made with processes 2, now 1: the run goes on, but perhaps not to the"):
        train(spec, tmp_path / "one", resume=True)
    four = torchrun(4, *words(tmp_path / "four", "training.parallel=fsdp"), "--resume")
    done = subprocess.run(four, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for part in ("checkpoints/step-00000060/model", "checkpoints/step-00000060/average", "model/model"):
        exact, one, other = (read_tensors(tmp_path / name / f"{part}.safetensors") for name in ("whole", "one", "four"))
        assert gap(exact, one) < 1e-9 and gap(exact, other) < 1e-9
    assert done.stderr.count("report    ") == 1 and "4 processes" in done.stderr


def test_a_job_that_is_asked_to_end_finishes_the_step_and_saves_it(tmp_path: Path) -> None:
    out, more = tmp_path / "run", ["training.steps=9000", "training.save_every=9000", "training.evaluate_every=9000"]
    command = torchrun(2, *words(out, *more))
    with subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as job:
        until = time.monotonic() + 120
        while not (out / "metrics.jsonl").exists() or not (out / "metrics.jsonl").read_bytes():
            assert job.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        job.send_signal(signal.SIGTERM)
        said = job.communicate(timeout=60)[1]
    assert 5 <= saved(out) < 9000
    assert said.count("finishing this step") == said.count("heedful: stopped and saved; go on with: ") == 1


def test_two_processes_that_were_killed_go_on_to_the_same_bits(
    killed: tuple[Path, list[int], str, float], tmp_path: Path
) -> None:
    shutil.copytree(killed[0], tmp_path / "killed")
    for command in (words(tmp_path / "whole"), [*words(tmp_path / "killed"), "--resume"]):
        done = subprocess.run(torchrun(2, *command), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert_same(contents(tmp_path / "whole"), contents(tmp_path / "killed"))


def test_what_all_processes_refuse_is_said_once(tmp_path: Path) -> None:
    command = torchrun(2, *words(tmp_path / "run", "training.parallel=none"))
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert re.findall(r"^heedful: .*", done.stderr, re.MULTILINE) == [
        "heedful: training.parallel=none is for one process and torchrun started more; leave it or torchrun out"
    ]
    assert not (tmp_path / "run").exists()


def test_a_process_that_leaves_says_all_and_takes_nothing_down() -> None:
    program = """
import atexit
from heedful.training.distributed.ranks import leave
class Hand:
    def __del__(self): print("taken down")
hand = Hand()
atexit.register(print, "heard")
print("said")
leave(3)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\nheard\n", "")
