"""Folders that somebody made to do harm are refused with a line; nothing in them, nor out of them, is executed or read.

They are read in one process of their own, under an audit hook, an eye on the kernel, and a limit on its memory.
"""

import fcntl
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.formats.malice.table import TABLE

ROOT = Path(__file__).parents[2]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the eye on the kernel is Linux's")
Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all were read, once for all the processes that test."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    with (root / "malice.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "malice").exists():
            (root / "malice").mkdir()
            environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
            command = [sys.executable, "-m", "tests.formats.malice.watched", str(root / "malice")]
            with (root / "malice" / "said.txt").open("wb") as said:
                done = subprocess.run(command, env=environment, cwd=ROOT, stdout=said, stderr=said)
            (root / "malice" / "status.txt").write_text(str(done.returncode))
    return root / "malice"


@pytest.fixture(scope="module")
def rows(place: Path) -> Rows:
    """What came of each."""
    found = map(json.loads, (place / "results.jsonl").read_text().splitlines())
    return {row["name"]: row for row in found}


def test_there_are_many_of_them_and_reading_them_ends_no_process(place: Path) -> None:
    assert len(TABLE) > 200
    assert (place / "status.txt").read_text() == "0", (place / "said.txt").read_text()[-2000:]


@LINUX
@pytest.mark.parametrize("name", TABLE)
def test_a_bad_folder_is_refused_with_a_line_and_does_no_harm(name: str, rows: Rows) -> None:
    bad, row = TABLE[name], rows[name]
    assert row["fault"] == ""  # neither another error, nor more memory than there may be
    assert re.search(bad.said, row["refused"]) if bad.said else row["refused"] == ""
    assert row["refused"].isprintable() and len(row["refused"]) < 1000
    assert row["seen"] == []  # no import, no compile, no exec, no open outside
    assert not [path for path in row["opened"] if path.startswith("..")]
    assert not set(bad.unopened) & set(row["opened"])
    assert row["seconds"] < 30


@LINUX
def test_nothing_is_executed(place: Path, rows: Rows) -> None:
    assert (place / "canary" / "executed").exists()  # as the very same pickle does when it is opened
    assert not list(place.glob("executed")) + list(place.glob("[0-9]*/**/executed"))
    assert len(rows) > len(TABLE)


@LINUX
@pytest.mark.parametrize("word", ["open", "import", "exec", "compile", "os.system", "subprocess.Popen"])
def test_whatever_is_done_in_python_is_seen(word: str, rows: Rows) -> None:
    assert word in [seen.split()[0] for seen in rows[word]["seen"]]


@LINUX
def test_what_is_unpickled_opened_from_rust_or_too_large_is_seen(rows: Rows) -> None:
    assert {"pickle.find_class", "os.system"} <= {seen.split()[0] for seen in rows["pickle.find_class"]["seen"]}
    assert rows["rust"]["opened"] == ["../outside/model.safetensors"] and rows["rust"]["seen"] == []
    assert rows["memory"]["fault"].startswith("MemoryError")
