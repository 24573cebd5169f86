"""Public sets arrive whole or not at all: by checksum, from HEEDFUL_DATA first, from the network only when asked."""

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from heedful.data.public import catalogue, download
from heedful.errors import Failure, Refusal

FILES = {"raw/train.txt": b"seen while learning\n" * 9000, "raw/test.txt": b"seen once\n"}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose files a local server publishes, as the set 'poems'; no HEEDFUL_DATA."""
    root = tmp_path / "site"
    for path, content in FILES.items():
        write(root / path, content)
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root)) as server:
        base = f"http://127.0.0.1:{server.server_port}/"
        files = [(path, len(content), hashlib.sha256(content).hexdigest()) for path, content in FILES.items()]
        poems = catalogue.PublicSet("poems", "two poems", "CC0", catalogue.published_files(base, *files))
        monkeypatch.setitem(catalogue.PUBLIC, "poems", poems)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield root
        server.shutdown()
        thread.join()


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A complete copy of 'poems' under HEEDFUL_DATA."""
    for path, content in FILES.items():
        write(tmp_path / "shelf" / "poems" / path, content)
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "shelf"))
    return tmp_path / "shelf" / "poems"


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def files_under(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_set_is_downloaded_whole(site, tmp_path):
    heard: list[int] = []
    home = download.get("poems", tmp_path / "data", heard.append)
    assert home == tmp_path / "data" / "poems"
    assert files_under(tmp_path / "data") == {f"poems/{path}": content for path, content in FILES.items()}
    assert sum(heard) == catalogue.PUBLIC["poems"].bytes == sum(map(len, FILES.values()))


def test_what_is_already_there_is_left_alone_and_said_so(site, tmp_path):
    home = download.get("poems", tmp_path)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    (site / "raw/train.txt").unlink()  # nothing is asked of the publisher a second time
    said: list[str] = []
    heard: list[int] = []
    assert download.get("poems", tmp_path, heard.append, said.append) == home
    assert said == [f"poems is already complete in {home}"]
    assert sum(heard) == catalogue.PUBLIC["poems"].bytes
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_only_what_is_missing_is_brought(site, tmp_path):
    home = download.get("poems", tmp_path)
    (home / "raw/test.txt").unlink()
    (site / "raw/train.txt").unlink()
    said: list[str] = []
    download.get("poems", tmp_path, say=said.append)
    assert files_under(home) == FILES
    assert len(said) == 1
    assert "test.txt from http://127.0.0.1" in said[0]


@pytest.mark.parametrize("content", [b"altered", FILES["raw/train.txt"][:-1], FILES["raw/train.txt"].upper()])
def test_a_corrupted_download_is_refused_and_nothing_is_left_behind(site, tmp_path, content):
    write(site / "raw/train.txt", content)
    with pytest.raises(Refusal) as refused:
        download.get("poems", tmp_path / "data")
    line = str(refused.value)
    assert "raw/train.txt is not the published file" in line
    assert hashlib.sha256(FILES["raw/train.txt"]).hexdigest() in line
    assert hashlib.sha256(content).hexdigest() in line
    assert list((tmp_path / "data").iterdir()) == []


def test_a_file_that_the_publisher_no_longer_has_is_a_failure_in_one_line(site, tmp_path):
    (site / "raw/test.txt").unlink()
    with pytest.raises(Failure, match=r"^http://127\.0\.0\.1:\d+/raw/test\.txt could not be fetched: .*404.*$"):
        download.get("poems", tmp_path / "data")
    assert files_under(tmp_path / "data").keys() == {"poems/raw/train.txt"}  # it was whole, and need not come again


def test_no_network_is_a_failure_in_one_line(site, tmp_path, monkeypatch):
    nowhere = catalogue.published_files("http://127.0.0.1:1/", ("a.txt", 1, "0" * 64))
    monkeypatch.setitem(catalogue.PUBLIC, "lost", catalogue.PublicSet("lost", "", "", nowhere))
    with pytest.raises(Failure, match=r"^http://127\.0\.0\.1:1/a\.txt could not be fetched: .*refused$"):
        download.get("lost", tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_an_interrupted_download_leaves_nothing_behind(site, tmp_path):
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download.get("poems", tmp_path / "data", interrupt)
    assert list((tmp_path / "data").iterdir()) == []


def test_heedful_data_is_asked_before_the_network(site, copy, tmp_path):
    for path in FILES:
        (site / path).unlink()
    said: list[str] = []
    home = download.get("poems", tmp_path / "data", say=said.append)
    assert files_under(home) == FILES
    assert said == [f"{home / path} from {copy / path}" for path in FILES]


def test_a_spoilt_copy_in_heedful_data_is_refused_not_passed_over(site, copy, tmp_path):
    write(copy / "raw/test.txt", b"seen twice")
    with pytest.raises(Refusal, match=r"raw/test\.txt is not the published file"):
        download.get("poems", tmp_path / "data")


def test_a_spoilt_file_at_the_target_is_refused_and_never_overwritten(site, tmp_path):
    write(tmp_path / "poems/raw/test.txt", b"my own notes")
    with pytest.raises(Refusal, match=r"raw/test\.txt is not the published file.*; remove it to get it anew$"):
        download.get("poems", tmp_path)
    assert files_under(tmp_path / "poems") == {"raw/test.txt": b"my own notes"}


def test_a_target_that_is_a_file_is_refused(site, tmp_path):
    write(tmp_path / "data", b"")
    with pytest.raises(Refusal, match=r"data cannot take poems: .*; name another folder$"):
        download.get("poems", tmp_path / "data")


def test_only_a_complete_and_unaltered_copy_is_found(site, copy):
    assert download.find("poems") == copy
    write(copy / "raw/test.txt", FILES["raw/test.txt"].upper())
    assert download.find("poems") is None
    (copy / "raw/test.txt").unlink()
    assert download.find("poems") is None


def test_nothing_is_found_where_heedful_data_is_not_set(site):
    assert download.folder() is None
    assert download.find("poems") is None


def test_heedful_data_that_is_no_folder_is_refused(site, monkeypatch):
    monkeypatch.setenv("HEEDFUL_DATA", "/no/such/folder")
    with pytest.raises(Refusal, match="HEEDFUL_DATA is '/no/such/folder', which is not a folder"):
        download.find("poems")


@pytest.mark.parametrize("ask", [download.find, partial(download.get, into=Path("unused"))])
@pytest.mark.parametrize(
    ("name", "meant"),
    [("fashion-minst", "; did you mean 'fashion-mnist'?"), ("Multi30k", "; did you mean 'multi30k'?"), ("x", ";")],
)
def test_an_unknown_set_is_refused_with_the_nearest_name(ask, name, meant):
    with pytest.raises(Refusal) as refused:
        ask(name)
    line = f"unknown data set '{name}'{meant} known: {', '.join(sorted(catalogue.PUBLIC))}"
    assert str(refused.value) == line


@pytest.mark.parametrize("public", catalogue.PUBLIC.values(), ids=catalogue.PUBLIC)
def test_every_registered_file_is_named_sized_and_summed(public):
    assert public.files
    for file in public.files:
        assert file.url.startswith("http") and not file.url.endswith("/")
        assert len(bytes.fromhex(file.sha256)) == 32
        assert file.bytes > 0
        assert not Path(file.path).is_absolute()
        assert ".." not in Path(file.path).parts
