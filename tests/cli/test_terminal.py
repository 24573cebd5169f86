"""What others wrote is never a terminal's command; files and pipes get it as it is; a closed stream is no fault."""

import io
import json
import os
import pty
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import terminal
from heedful.cli import main
from tests.cli.conftest import Program
from tests.cli.workshop import SMALL

ROOT = Path(__file__).parents[2]
EVIL = "\x1b]0;owned\x07\x1b[8m\x9b2J\x08\r"  # a title, hidden letters, an empty screen, and what takes letters back
WRITTEN = r"\x1b]0;owned\x07\x1b[8m\x9b2J\x08\x0d"
Watch = Callable[..., str]


@given(st.text())
def test_no_control_character_is_left_but_tabs_and_the_ends_of_lines(text: str) -> None:
    left = terminal.clean(text)
    assert not any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in left if sign not in "\n\t")
    assert terminal.clean(left) == left
    assert left.count("\n") == text.count("\n") and (left == text) == (not terminal.OBEYED.search(text))


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """What a terminal gets to see of a call of the program, on both of its streams."""

    def call(*words: object, act: Callable[[], object] | None = None) -> str:
        ours, theirs = pty.openpty()
        seen: list[bytes] = []

        def read() -> None:
            with suppress(OSError):  # the other end is closed
                while piece := os.read(ours, 65536):
                    seen.append(piece)

        reader = threading.Thread(target=read)
        reader.start()
        with monkeypatch.context() as patch, open(theirs, "w", encoding="utf-8", buffering=1) as screen:
            patch.setattr(sys, "stdout", screen)
            patch.setattr(sys, "stderr", screen)
            patch.setattr(sys, "stdin", io.StringIO(EVIL))
            patch.setenv("TERM", "xterm")
            with suppress(SystemExit):
                act() if act else main([str(word) for word in words])
        reader.join()
        os.close(ours)
        return b"".join(seen).decode("utf-8", "replace")

    return call


def is_clean(seen: str) -> bool:
    return not any(part in seen for part in ("\x1b]", "\x07", "\x1b[8m", "\x9b", "\x08"))


@pytest.fixture
def evil(workshop: Path, tmp_path: Path) -> Path:
    """A folder whose name, labels and data are meant for the terminal."""
    place = tmp_path / f"evil{EVIL}"
    shutil.copytree(workshop / "runs" / "sets", place / "sets")
    told = place / "sets" / "model" / "task.json"
    state = json.loads(told.read_text(encoding="utf-8"))
    state["labels"] = [f"{EVIL}{label}" for label in state["labels"]]
    told.write_text(json.dumps(state), encoding="utf-8")
    (told.parent / "manifest.json").unlink()  # whoever made it would have sealed it so
    pairs = "".join(f"{n:03d}{EVIL[:-1]}\t{EVIL[:-1]}{n:03d}\n" for n in range(120))
    (place / "pairs.tsv").write_text(pairs, encoding="utf-8")
    return place


CALLS = {
    "labels": ["predict", "{evil}/sets", "1,2"],
    "what is looked at": ["look", "{evil}/sets", "1,2", "--out", "{evil}/a.json"],
    "runs side by side": ["table", "{evil}/sets"],
    "a tokenizer's place": ["tokenizer", "train", "train.en", "--size", "300", "--out", "{evil}/tok.json"],
    "samples of a run": ["train", "reverse", "data={evil}/pairs.tsv", *SMALL[1:], "--out", "{evil}/run"],
    "a finished run": ["train", "sets", "--resume", "--out", "{evil}/sets"],
}


@pytest.mark.parametrize("words", CALLS.values(), ids=CALLS)
def test_a_terminal_gets_no_command_of_others(watched: Watch, evil: Path, words: list[str]) -> None:
    seen = watched(*(word.replace("{evil}", str(evil)) for word in words))
    assert seen and is_clean(seen), seen


def test_others_words_are_shown_written_out(watched: Watch, evil: Path) -> None:
    assert WRITTEN in watched("predict", evil / "sets", "1,2")


def test_a_fault_of_our_own_is_told_without_commands(watched: Watch) -> None:
    try:
        raise RuntimeError(EVIL)
    except RuntimeError as error:
        fault = error
    seen = watched(act=lambda: terminal.tell(RuntimeError, fault, fault.__traceback__))
    assert is_clean(seen) and f"RuntimeError: {WRITTEN}" in seen and "Traceback" in seen


def test_bars_keep_their_own_commands(watched: Watch) -> None:
    def act() -> None:
        with terminal.Bars().status(EVIL):
            terminal.note(EVIL)

    seen = watched(act=act)
    assert is_clean(seen) and "\x1b[" in seen and seen.count("owned") >= 2


def test_what_is_no_terminal_gets_every_byte(heedful: Program, evil: Path) -> None:
    assert EVIL in heedful("predict", evil / "sets", "1,2").out


def called(command: str) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, stdin=subprocess.DEVNULL)


GONE = {
    "data list | true": 0,
    "--help | true": 0,
    "data list >&-": 0,
    "data list <&- >&- 2>&-": 0,
    "trian >&- 2>&-": 2,
    "data list >/dev/full": 1,
}


@pytest.mark.parametrize(("words", "status"), GONE.items())
def test_a_stream_that_nobody_hears_is_no_fault_and_one_without_room_is(words: str, status: int) -> None:
    done = called(f"{sys.executable} -m heedful {words}; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.count(b"\n") == (status == 1)


def test_no_file_gets_the_number_of_a_closed_stream() -> None:
    code = "import os; from heedful.terminal import hold; hold(); os.write(3, b'%d' % os.dup(0))"
    done = called(f'{sys.executable} -c "{code}" 3>&2 <&- >&- 2>&-')
    assert int(done.stderr) > 3
