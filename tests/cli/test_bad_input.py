"""Bad input gets one line with its cure and status 2; nothing is lost by it, and nothing half made is left behind."""

import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful.cli import main
from heedful.safe import sealed_folders
from tests.cli.conftest import Program
from tests.cli.workshop import BROKEN, SMALL, listing, marks

ROOT = Path(__file__).parents[2]
WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
CUDA = "--device cuda was asked for and no GPU is found; leave it out or use --device cpu"
BRIEF = [change for change in SMALL if not change.startswith("data")]  # for data that are not made
Case = tuple[list[str], str]  # the words of a call, and the line that it gets


def table() -> dict[str, Case]:
    """The cases of bad_input.txt by what is wrong with them, or by their last word where that says it all."""
    cases: dict[str, Case] = {}
    text = Path(__file__).with_name("bad_input.txt").read_text(encoding="utf-8")
    for wrong, call, said in re.findall(r"(?:^# (.+)\n)?^[$] (.+)\n(.+)", text, re.MULTILINE):
        words = shlex.split(call.replace("{small}", " ".join(SMALL)).replace("{brief}", " ".join(BRIEF)))
        assert (wrong or words[-1]) not in cases
        cases[wrong or words[-1]] = words, said
    return cases


TABLE = table()
CASES = [pytest.param(*case, id=wrong) for wrong, case in TABLE.items()] + [
    pytest.param(["train", "sets", "data=toy", "--device", "cuda"], CUDA, id="no GPU", marks=WITHOUT_GPU),
    pytest.param(["train", "reverse", "training.steps=" + "9" * 5000], "training.steps=...", id="a number without end"),
    pytest.param(["predict", "a" * 5000, "12"], "...File name too long; check the path", id="a name without end"),
    pytest.param(["predict", "runs/sort", "\udcff"], r"'\udcff' is not UTF-8; ... -t UTF-8", id="no characters"),
    pytest.param(
        ["train", "reverse", *SMALL, "--out", f"new/{'a' * 300}"],
        "new/aaa... cannot be written: File name too long; choose another --out",
        id="a folder's name without end",
    ),
]


def fits(line: str, said: str) -> bool:
    """Whether a line is what was to be said, and nothing but that line."""
    pattern = re.escape(said).replace(r"\.\.\.", "[^\n]+")
    return re.fullmatch(f"heedful: {pattern}\n", line) is not None


@pytest.fixture(scope="module")
def contents(made: Path) -> dict[str, bytes | None]:
    return listing(made)


@pytest.fixture
def kept(workshop: Path, contents: dict[str, bytes | None]) -> Iterator[None]:
    """Whatever is done, all files and folders are the same afterwards, byte for byte; read where they were written."""
    before = marks(workshop)
    yield
    after = marks(workshop)
    assert after.keys() == before.keys()
    written = [name for name in after if after[name] != before[name]]
    assert [name for name in written if contents[name] != (workshop / name).read_bytes()] == []


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(("words", "said"), CASES)
def test_bad_input_gets_one_line_and_status_two_and_loses_nothing(
    heedful: Program, words: list[str], said: str
) -> None:
    answer = heedful(*words)
    assert (answer.status, answer.out) == (2, "")
    assert fits(answer.err, said), answer.err


def test_the_table_holds_every_broken_folder() -> None:
    assert len(TABLE) > 200
    assert {f"broken/{name}" for name in BROKEN} <= {word for words, _ in TABLE.values() for word in words}


ASKING = (  # every verb that answers by a model
    *("predict {} 12", "eval {}", "look {} 12 --out new.html", "align {} 12", "chat {}", "check {}"),
    *("convert {} new --to onnx", "train reverse data=toy start={} --out new"),
)
ANSWERING = ("runs/vit", "runs/reverse", "runs/sets", "runs/series", "runs/translate", "encoders/tags", "encoders/gpt")


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("folder", ANSWERING)
def test_a_weight_that_is_not_finite_is_named_by_every_verb(heedful: Program, folder: str, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "spoilt")
    place = next((tmp_path / "spoilt").rglob("model.safetensors"))
    (place.parent / "manifest.json").unlink(missing_ok=True)  # it would be refused before
    tensors = load_file(place)
    name = max(tensors)
    tensors[name].view(-1)[-1] = torch.inf
    save_file(tensors, place)
    said = f"{place}: tensor '{name}' holds NaN or infinite numbers, so that no answer means anything; ..."
    for verb in ASKING if folder == "runs/reverse" else ASKING[:1]:
        answer = heedful(*verb.format(tmp_path / "spoilt").split())
        assert (answer.status, answer.out) == (2, "")
        assert fits(answer.err, said), answer.err


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("folder", ANSWERING[:-1])
def test_scores_that_are_not_numbers_are_no_answer(heedful: Program, folder: str, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "lost")
    place = next((tmp_path / "lost").rglob("model.safetensors"))
    (place.parent / "manifest.json").unlink(missing_ok=True)
    save_file({name: torch.full_like(tensor, 3e38) for name, tensor in load_file(place).items()}, place)
    asked = {"runs/vit": "photos/class0/0.png", "encoders/tags": "the cat", "runs/series": "1,2; 3,4"}.get(
        folder, "1,2"
    )
    verbs = [["predict"], *([["look", "--out", "new.html"]] if "encoders" not in folder else [])]
    for verb, *options in verbs:
        answer = heedful(verb, str(tmp_path / "lost"), asked, *options)
        assert answer.status in (1, 2) and answer.out == "" and answer.err.count("\n") <= 2, answer.err
        assert re.search("not (numbers|finite|a number)", answer.err), answer.err


REAL = ["a verb that is not", "another rate", "code for a word", "weights cut short", "a blank target", "a file"]


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("name", REAL)
def test_a_process_says_the_same(name: str) -> None:
    words, said = TABLE[name]
    done = process(words)
    assert (done.returncode, done.stdout) == (2, "")
    assert fits(done.stderr, said), done.stderr


def process(words: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "heedful", *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, text=True, capture_output=True, **how)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("recipe", "stdin", "said"),
    [
        ("reverse", b"", r"standard input is empty; give a sequence of characters, one a line$"),
        ("reverse", b"\n", r"input 1: the input is empty; give a sequence of characters$"),
        (
            "reverse",
            b"12\n\xff\n",
            r"standard input is not UTF-8; convert it, .* iconv -f latin1 -t UTF-8$",
        ),
        ("sets", b"1\n", r"input 1: row 1 of the input has 1 number and the model takes 2; give vectors"),
        ("series", b"", r"standard input is empty; give steps as numbers with commas, .*, one a line$"),
    ],
)
def test_standard_input_of_which_nothing_can_be_read_is_refused(
    heedful: Program, recipe: str, stdin: bytes, said: str
) -> None:
    answer = heedful("predict", f"runs/{recipe}", stdin=stdin)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert re.search(said, answer.err.strip())


def test_bytes_that_a_lenient_locale_lets_through_are_refused_too(workshop: Path) -> None:
    command = [sys.executable, "-m", "heedful", "predict", "runs/reverse"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "LC_ALL": "C"}
    done = subprocess.run(command, env=environment, input=b"12\n\xff\n", capture_output=True)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert b"standard input is not UTF-8" in done.stderr


@pytest.mark.usefixtures("kept")
def test_a_file_that_may_not_be_read_is_refused(heedful: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.data.line_files.content", forbidden)
    answer = heedful("train", "reverse", "data=pairs.tsv", "--out", "new")
    monkeypatch.undo()
    assert answer.status == 2
    assert answer.err == "heedful: pairs.tsv cannot be read: Permission denied; name another file\n"


def forbidden(path: Path, largest: int) -> bytes:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def test_a_full_disk_is_a_failure_in_one_line(
    heedful: Program, workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(tensors: Any, path: Path, *told: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(sealed_folders, "save_file", full)
    answer = heedful("train", "reverse", *SMALL, "--out", tmp_path / "run")
    assert answer.status == 1
    assert re.search(
        r"\nheedful: .*checkpoints cannot be written: No space left on device; nothing was saved .* with --resume\n$",
        answer.err,
    )


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")]
)
def test_too_little_memory_is_a_failure_in_one_line(
    heedful: Program, workshop: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def short(folder: Path) -> None:
        raise error

    monkeypatch.setattr("heedful.formats.native.load", short)
    answer = heedful("check", "runs/reverse")
    assert answer.status == 1
    assert answer.err == "heedful: there is not enough memory; choose a smaller model, batch or input\n"


def test_a_fault_of_our_own_is_not_hidden(workshop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Path) -> None:
        raise RuntimeError("a fault of our own")

    monkeypatch.setattr("heedful.formats.native.load", broken)
    with pytest.raises(RuntimeError, match="a fault of our own"):
        main(["check", "runs/reverse"])


@pytest.mark.usefixtures("kept")
def test_ctrl_c_says_so_and_gives_status_130(heedful: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.training.run.usable", lambda folder: signal.raise_signal(signal.SIGINT))
    answer = heedful("predict", "runs/reverse", "12")
    assert (answer.status, answer.out, answer.err) == (130, "", "heedful: stopped\n")


@pytest.mark.usefixtures("kept")
def test_ctrl_c_before_the_first_step_leaves_no_folder(heedful: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.training.run.prepare", lambda *_: signal.raise_signal(signal.SIGINT))
    answer = heedful("train", "reverse", *SMALL, "--out", "new/run")
    assert (answer.status, answer.err) == (130, "heedful: stopped\n")


@pytest.mark.parametrize("reader", ["head -n 1", "true"])
def test_a_reader_that_leaves_early_is_no_error(workshop: Path, reader: str) -> None:
    command = f"{sys.executable} -m heedful predict runs/sets | {reader}; exit ${{PIPESTATUS[0]}}"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    lines = b"1,2\n" * (50_000 if reader == "head -n 1" else 2)
    done = subprocess.run(["bash", "-c", command], env=environment, input=lines, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(done.stdout.splitlines()) == (reader == "head -n 1")
