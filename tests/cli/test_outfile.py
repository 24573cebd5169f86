"""What a verb writes where it is told: plain files whole, streams as they are, and nothing else is ever replaced."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.errors import Refusal
from heedful.safe import outfile
from tests.cli.conftest import Program

ROOT = Path(__file__).parents[2]
NULL, ZERO = os.makedev(1, 3), os.makedev(1, 5)


def node(device: int) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, device)
        except PermissionError:
            pytest.skip("only root makes devices")

    return make


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)  # the name of a socket may have a hundred characters
        made.bind(path.name)


def linked(path: Path) -> None:
    path.with_name("kept").write_text("kept")
    path.symlink_to("kept")


ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a socket": bound,
    "a device": node(ZERO),
    "a link": linked,
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a folder": Path.mkdir,
}
odd = pytest.mark.parametrize("make", ODD.values(), ids=ODD)


@odd
def test_what_is_no_plain_file_is_refused_and_stays(make: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    make(path)
    before = path.lstat()
    for do in (outfile.check, lambda path: outfile.write(path, "new")):
        with pytest.raises(Refusal, match=r"odd.json is (no plain file|a link|a folder)"):
            do(path)
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert {one.name for one in tmp_path.iterdir()} <= {"odd.json", "kept"}
    assert not (tmp_path / "kept").exists() or (tmp_path / "kept").read_text() == "kept"


VERBS = [
    "tokenizer train train.en --out {odd}",
    "table runs/reverse --out {odd}.md",
    "attention explain linear --out {odd}.json",
    "look runs/reverse 12 --out {odd}.html",
    "look runs/reverse 12 --temperatures 1 --out {odd}.png",
    "align runs/invented a --out {odd}.svg",
    "bench attention --json {odd}",
    "bench attention --plot {odd}.png",
]


@pytest.mark.parametrize("words", VERBS)
def test_every_verb_that_writes_a_file_refuses_it_before_the_work(
    heedful: Program, workshop: Path, tmp_path: Path, words: str
) -> None:
    called = words.format(odd=tmp_path / "odd").split()
    os.mkfifo(called[-1])
    answer = heedful(*called)
    assert (answer.status, answer.out) == (2, "")
    assert f"{called[-2]} {called[-1]} is no plain file" in answer.err or f"{called[-1]} is no plain file" in answer.err
    assert stat.S_ISFIFO(os.lstat(called[-1]).st_mode)


def test_the_device_that_forgets_takes_all_and_stays(tmp_path: Path) -> None:
    node(NULL)(tmp_path / "null")
    (tmp_path / "named").symlink_to("null")
    for name in ("null", "named"):
        outfile.write(tmp_path / name, "gone")
    assert stat.S_ISCHR((tmp_path / "null").stat().st_mode) and (tmp_path / "named").is_symlink()


def test_a_stream_that_a_path_stands_for_is_written_into(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    outfile.write(f"/dev/fd/{theirs}", "said")
    os.close(theirs)
    assert os.read(ours, 99) == b"said"
    os.close(ours)
    with pytest.raises(Refusal, match="no open stream"):
        outfile.check(f"/dev/fd/{theirs}")


def test_standard_output_holds_the_file_and_nothing_beside_it(workshop: Path) -> None:
    words = "-m heedful tokenizer train train.en --size 300 --out"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *words.split(), "/dev/stdout"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("{") and done.stdout.endswith("}")
    assert "/dev/stdout: bpe" in done.stderr


def test_a_file_is_replaced_whole_and_keeps_who_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o600)
    outfile.write(path, "new")
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(OSError, match="File name too long") as long:
        outfile.write(tmp_path / ("a" * 250), "new")
    assert long.value.filename == str(tmp_path / ("a" * 250))
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_link_that_lies_where_files_are_begun_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    (tmp_path / f".file.{os.getpid()}.aside").symlink_to("kept")
    outfile.write(tmp_path / "file", "new")
    assert (tmp_path / "kept").read_text() == "kept" and not (tmp_path / "file").is_symlink()
