"""Data are read from plain files of a size that is told: what may have no end is refused at once, by every reader."""

import gzip
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from heedful.data import line_files
from heedful.data.formats import chat_jsonl, conll, documents, labelled_text, parallel_text, pharaoh, squad
from heedful.data.formats.class_folders import Classes, sides_of
from heedful.data.images import sources
from heedful.data.parallel_sample import Sides
from heedful.data.readers.labelled_images import ImageFiles
from heedful.errors import Refusal
from heedful.tokenizers import train_files

READERS: dict[str, Callable[[str], object]] = {
    "texts": documents.read_texts,
    "pairs": parallel_text.read_pairs,
    "two sides": lambda path: parallel_text.read_pairs(Sides(source=path, target=path)),
    "tabs": labelled_text.read_sentences,
    "commas": lambda path: labelled_text.read_sentences(f"{path}.csv"),
    "objects": lambda path: labelled_text.read_sentences(f"{path}.jsonl"),
    "tags": conll.read_tagged,
    "questions": squad.read_questions,
    "conversations": chat_jsonl.read_dialogues,
    "links": pharaoh.read_links,
    "numbers": lambda path: list(line_files.numbers(path)),
    "a list of images": lambda path: list(sources.images_of_list(Path(path))),
    "a tokenizer": lambda path: train_files([path]),
}


def device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # one that gives zeros without end
    except PermissionError:
        path.symlink_to("/dev/zero")


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)  # the name of a socket may have a hundred characters
        made.bind(path.name)


def endless(path: Path) -> None:
    path.touch()
    os.truncate(path, line_files.MOST + 1)  # a hole: it takes no room


NO_FILE, EMPTY = "no plain file", "is empty"
ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, NO_FILE),
    "a socket": (bound, NO_FILE),
    "a device": (device, NO_FILE),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), NO_FILE),
    "the system's own": (lambda path: path.symlink_to("/proc/self/environ"), EMPTY),
}


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """Nothing here waits for what never comes."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits"))
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_what_is_no_plain_file(reader: str, odd: str, tmp_path: Path) -> None:
    make, said = ODD[odd]
    for ending in ("", ".csv", ".jsonl"):
        make(tmp_path / f"odd{ending}")
    with pytest.raises(Refusal, match=said):
        READERS[reader](str(tmp_path / "odd"))


@pytest.mark.parametrize("reader", sorted(READERS.keys() - {"a tokenizer", "objects", "commas"}))
def test_a_file_that_is_held_whole_has_a_bound_and_is_told_of(
    reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endless(tmp_path / "large")
    with pytest.raises(Refusal, match="it is larger than 4096 MB"):
        READERS[reader](str(tmp_path / "large"))
    assert "large, 4096 MB" in capsys.readouterr().err


def test_a_gzipped_file_unfolds_to_no_more_than_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_files, "MOST", 1000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"\n" * 100_000))
    with pytest.raises(Refusal, match="unfolds to more than"):
        line_files.lines(tmp_path / "bomb.gz")


def test_what_a_shell_hands_over_is_learned_from(tmp_path: Path) -> None:
    code = (
        "import sys; from heedful.tokenizers import train_files; print(len(train_files([sys.argv[1]], 'characters')))"
    )
    command = f'{sys.executable} -c "{code}" <(echo abc)'
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert done.stdout == "7\n", done.stderr


@pytest.mark.parametrize("leads", ["/", "..", "../.."])
def test_a_link_to_what_holds_it_is_told_and_not_walked(leads: str, tmp_path: Path) -> None:
    place = tmp_path / "below" / "photos"
    for name in ("cat", "dog"):
        (place / name).mkdir(parents=True)
        Image.new("L", (4, 4)).save(place / name / "1.png")
    Image.new("L", (4, 4)).save(tmp_path / "other.png")
    (place / "cow").symlink_to(leads)
    (place / "cat" / "deep").symlink_to(leads)
    found = Classes.of(place, "images", sources.is_image)
    assert [label for _, label in found.found] == ["cat", "dog"]
    with pytest.warns(UserWarning, match=re.escape(f"lie in are passed over: 1, first {place / 'cow'}")):
        found.tell()


def test_a_link_to_all_there_is_is_no_half_of_a_set(tmp_path: Path) -> None:
    (tmp_path / "train").symlink_to("/")
    (tmp_path / "test").mkdir()
    assert sides_of(tmp_path) == []


def test_a_set_with_a_pipe_among_its_images_is_refused(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        Image.new("L", (4, 4)).save(tmp_path / name / "1.png")
    os.mkfifo(tmp_path / "cat" / "2.png")
    with pytest.raises(Refusal, match=r"2\.png.*no plain file"):
        ImageFiles(name=str(tmp_path)).read(1)
