"""Reads bad folders in a process of its own that sees what is opened, imported and executed, and may not grow.

Python tells its audit hooks of what Python does; what is opened from Rust and C++ the kernel tells, by inotify.
"""

import ast
import ctypes
import json
import os
import pickle
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

import heedful.models.refusals  # noqa: F401 - is imported with the first refusal, and is ours
from heedful.errors import Refusal
from tests.formats.malice.good import WARM, WAYS, make
from tests.formats.malice.table import TABLE
from tests.formats.malice.tools import OUTSIDE, PICKLE

ROOM = 1 << 29  # bytes that reading a folder may ask for beyond what the process has
SECONDS = 60  # after which the kernel ends it
IN_OPEN, IN_ISDIR = 0x20, 0x40000000
HARMLESS = {"os.listdir", "os.scandir", "os.walk", "pathlib.Path.glob", "glob.glob"}  # names, and no contents
HARMLESS |= {"object.__getattr__", "sys._getframe", "builtins.id"}
HARMLESS |= {"fcntl.flock", "socket.gethostname"}  # of a run's lock; nothing is sent
HARMLESS |= {"mmap.__new__", "array.__new__"}  # of a file that is open: that was seen; of numbers
WRITING = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree", "os.truncate"}


def imports(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    try:
        __import__("json_of_evil")
    finally:
        sys.path.remove(str(folder))


CANARIES: dict[str, Callable[[Path], object]] = {  # what must be seen, and by which word
    "open": lambda folder: (folder.parent / OUTSIDE / "spec.json").read_bytes(),
    "import": imports,
    "exec": lambda folder: exec("1"),
    "compile": lambda folder: ast.parse("1"),
    "os.system": lambda folder: os.system("true"),
    "subprocess.Popen": lambda folder: subprocess.run(["true"]),
    "pickle.find_class": lambda folder: pickle.loads(PICKLE),
    "rust": lambda folder: load_file(folder.parent / OUTSIDE / "model.safetensors"),
    "memory": lambda folder: bytearray(2 * ROOM),
}


class Watch:
    """What happens while a folder is read."""

    def __init__(self) -> None:
        self.folder, self.on, self.seen = "", False, []
        sys.addaudithook(self.heard)

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on or event in HARMLESS:
            return
        path = os.fsdecode(arguments[0]) if arguments and isinstance(arguments[0], (str, bytes)) else "/"
        own = os.path.realpath(path).startswith(f"{self.folder}/") or os.path.realpath(path) == self.folder
        if (event == "open" or event in WRITING) and own:
            return
        self.seen.append(f"{event} {str(arguments)[:300]}")


class Kernel:
    """Which files are opened, whoever opens them."""

    def __init__(self, places: list[Path]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        add = libc.inotify_add_watch
        self.places = {add(self.handle, os.fsencode(place), IN_OPEN): place for place in places}

    def opened(self) -> list[str]:
        try:
            data = os.read(self.handle, 1 << 20)
        except BlockingIOError:
            data = b""
        at, found = 0, []
        while at < len(data):
            watch, mask, _, size = struct.unpack_from("iIII", data, at)
            name = data[at + 16 : at + 16 + size].rstrip(b"\0").decode()
            if not mask & IN_ISDIR:
                found.append(str(self.places[watch] / name))
            at += 16 + size
        os.close(self.handle)
        return found


def read(way: Callable[[Path], object], folder: Path, outside: Path, watch: Watch) -> dict[str, Any]:
    """What came of one folder."""
    places = [Path(place) for place, _, _ in os.walk(folder)] + [Path(place) for place, _, _ in os.walk(outside)]
    kernel, refused, fault, began = Kernel(places), "", "", time.monotonic()
    signal.alarm(SECONDS)
    watch.folder, watch.seen, watch.on = str(folder), [], True
    try:
        way(folder)
    except Refusal as error:
        refused = str(error)
    except BaseException as error:
        fault = f"{type(error).__name__}: {str(error)[:300]}"
    watch.on = False
    signal.alarm(0)
    seconds = time.monotonic() - began
    opened = sorted({os.path.relpath(path, folder) for path in kernel.opened()})
    said = {"refused": refused, "fault": fault, "seen": watch.seen}
    return {**said, "opened": opened, "seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def main(place: Path) -> None:
    """Makes the folders, reads good ones so that all is imported that ever is, and then the bad ones."""
    for name in {"pairs", "sets", "series", "run", "begun", "gpt2"}:
        make(place / "good" / name, name)
    shutil.copytree(place / "good" / "pairs", place / OUTSIDE)
    shutil.copytree(place / "good" / "run", place / OUTSIDE, dirs_exist_ok=True)
    for at, bad in enumerate(TABLE.values()):
        shutil.copytree(place / "good" / bad.good, place / str(at))
        bad.spoil(place / str(at))
    for at, (way, good) in enumerate(WARM):
        shutil.copytree(place / "good" / good, place / "warm" / str(at))
        WAYS[way](place / "warm" / str(at))
    (place / "canary").mkdir()
    (place / "canary" / "json_of_evil.py").write_text("")
    os.chdir(place)
    watch = Watch()
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, resource.RLIM_INFINITY))
    with (place / "results.jsonl").open("w") as results:
        for at, (name, bad) in enumerate(TABLE.items()):
            print(name, flush=True)
            row = {"name": name, **read(WAYS[bad.way], place / str(at), place / OUTSIDE, watch)}
            results.write(json.dumps(row) + "\n")
            results.flush()
        os.chdir(place / "canary")
        for name, way in CANARIES.items():
            row = {"name": name, **read(way, place / "canary", place / OUTSIDE, watch)}
            results.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
