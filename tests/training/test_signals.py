"""Real processes: killed at any moment, or asked to stop."""

import hashlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from heedful import interrupts, tokenizers
from heedful.cli import main
from heedful.training import checkpoint
from heedful.training.loop import Interrupted, Loop
from heedful.training.spec import recipes
from tests.training.runs import assert_same, contents, short, train

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
    assert 28 <= checkpoint.read_checkpoint(place)[0].step < 200
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


@pytest.mark.parametrize(("number", "step"), [*((number, 3) for number in interrupts.SIGNALS), (signal.SIGTERM, 5)])
def test_any_of_the_signals_finishes_the_step_saves_it_and_is_answered(
    tmp_path: Path, number: int, step: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Loop.step

    def signalled(loop: Loop, portion: object) -> object:
        if loop.progress.step == step - 1:
            os.kill(os.getpid(), number)
        return own(loop, portion)  # type: ignore[arg-type]

    monkeypatch.setattr(Loop, "step", signalled)
    before = [signal.getsignal(one) for one in interrupts.SIGNALS]
    with pytest.raises(Interrupted):
        train(short("reverse", training__steps=5), tmp_path / "run")
    assert [place.name for place in checkpoint.all_of(tmp_path / "run" / "checkpoints")] == [f"step-{step:08d}"]
    assert capsys.readouterr().err.count("finishing this step; again to stop at once") == 1
    assert [signal.getsignal(one) for one in interrupts.SIGNALS] == before
    if step == 5:  # nothing is left but the test
        assert train(short("reverse", training__steps=5), tmp_path / "run", resume=True)["step"] == 5


def raised(times: int) -> None:
    """Ctrl-C, so many times at once."""
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


def inside_a_call(*after: float, number: int = signal.SIGINT) -> float:
    """A signal so many seconds after the main thread went into a call; when it came out of that again."""
    for seconds in after:
        threading.Timer(seconds, os.kill, (os.getpid(), number)).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)
    return time.monotonic()


def test_ctrl_c_is_answered_while_the_main_thread_is_inside_a_call() -> None:
    said: list[float] = []
    with interrupts.finishing_the_step(lambda line: said.append(time.monotonic())) as stop:
        back = inside_a_call(0.02)
    assert stop == [True] and len(said) == 1 and said[0] < back


def test_the_second_one_stops_at_once_in_python_and_inside_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[float] = []
    monkeypatch.setattr(interrupts, "end", lambda: ended.append(time.monotonic()))
    with pytest.raises(KeyboardInterrupt), interrupts.finishing_the_step(print):
        raised(2)
    assert not ended
    monkeypatch.setattr(interrupts, "GRACE", 0.01)
    with interrupts.finishing_the_step(print):
        back = inside_a_call(0.02, 0.06)
    assert len(ended) == 1 and ended[0] < back


def test_outside_of_steps_all_of_them_stop_what_runs_and_nohup_is_obeyed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in interrupts.SIGNALS:
        with pytest.raises(KeyboardInterrupt), interrupts.stopping():
            signal.raise_signal(number)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(interrupts, "PATIENCE", 0.01)
    with pytest.raises(KeyboardInterrupt), interrupts.stopping():
        inside_a_call(0.02)
    assert capsys.readouterr().err == f"heedful: {interrupts.STOPPING}\n"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts.stopping(), interrupts.finishing_the_step(print) as stop:
            signal.raise_signal(signal.SIGHUP)
        assert stop == []
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", interrupts.SIGNALS)
def test_every_verb_is_answered_inside_a_call_and_leaves_with_130(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(interrupts, "PATIENCE", 0.01)
    monkeypatch.setattr(tokenizers, "train_files", lambda *given, **more: inside_a_call(0.02, number=number))
    with pytest.raises(SystemExit) as left:
        main(["tokenizer", "train", "texts", "--out", str(tmp_path / "tokenizer.json")])
    assert left.value.code == 130
    assert capsys.readouterr().err == f"heedful: {interrupts.STOPPING}\nheedful: stopped\n"


def test_what_torchrun_hands_on_of_a_terminal_is_no_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    with interrupts.finishing_the_step(print) as stop:
        raised(2)
    assert stop == [True, True]
