"""Real processes: killed at any moment, or asked to stop."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heedful import recipes
from heedful.cli import main
from heedful.training import checkpoint
from tests.training.runs import assert_same, contents, train

ROOT = Path(__file__).parents[2]
CHANGES = [
    "data=toy",
    "data.samples=300",
    "data.held_out=16",
    "model.dropout=0.1",
    "training.steps=200",
    "training.batch=16",
    "training.accumulate=2",
    "training.log_every=7",
    "training.evaluate_every=50",
]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "heedful", *words]


def start(out: Path, *changes: str) -> subprocess.Popen[str]:
    """Trains in a process of its own, and returns when it is well under way."""
    words = command("train", "reverse", *CHANGES, *changes, "--out", str(out), "--device", "cpu")
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 300  # on a machine that is busy with other things
    while not (out / "metrics.jsonl").exists() or len((out / "metrics.jsonl").read_bytes().splitlines()) < 4:
        assert process.poll() is None and time.monotonic() < until, process.communicate()[1]
        time.sleep(0.01)
    return process


def finish(*words: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["train", *words])
    assert left.value.code == 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the same run leaves behind when nobody stops it."""
    out = tmp_path_factory.mktemp("whole") / "run"
    train(recipes.resolve("reverse", [*CHANGES, "training.save_every=10"]), out)
    return contents(out)


def test_a_process_that_was_killed_goes_on_to_the_same_bytes(tmp_path: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "run"
    process = start(out, "training.save_every=10")
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert checkpoint.all_of(out / "checkpoints") and not (out / "result.json").exists()
    finish("reverse", *CHANGES, "training.save_every=10", "--out", str(out), "--resume")
    assert_same(contents(out), whole)


def test_ctrl_c_finishes_the_step_saves_it_and_says_how_to_go_on(tmp_path: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "run"
    process = start(out, "training.save_every=1000")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1].splitlines()[-1]
    assert process.returncode == 130
    (place,) = checkpoint.all_of(out / "checkpoints")
    assert 28 <= checkpoint.read(place)[0].step < 200
    before, _, after = said.partition("heedful train")
    assert before == "heedful: stopped and saved; go on with: "
    finish(*shlex.split(after))  # the very words that it said
    made = contents(out)
    for part in ("metrics.jsonl", "result.json"):
        assert made[part] == whole[part]
    for part in whole:
        if part.startswith(("model/", "checkpoints/step-00000200/")):
            assert made[part] == whole[part]


def test_ctrl_c_in_a_terminal_reaches_a_run_that_was_told_to_ignore_it(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as for a process that a script put into the background
    try:
        process = start(tmp_path / "run")
    finally:
        signal.signal(signal.SIGINT, before)
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
