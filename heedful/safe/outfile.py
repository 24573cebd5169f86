"""A file that a user asks for by `--out`: written whole and moved into place, or poured into the stream that it names.

Nothing but a plain file is ever replaced: no device, pipe, socket or link.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from heedful.errors import Refusal
from heedful.terminal import clean, say

NAMED = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
NUMBERED = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,6})")  # as a shell names the pipe of >(command)


def check(path: str | Path, option: str = "--out") -> None:
    """Refuses, before the work begins, a path at which no file can be made, or where another thing would be lost."""
    path = Path(path)
    if (number := stream(path)) is not None:
        with suppress(OSError):
            os.fstat(number)
            return
        raise Refusal(f"{option} {path} is no open stream; choose another")
    if is_null(path):
        return
    if not path.absolute().parent.is_dir():
        raise Refusal(f"{path} cannot be written: there is no folder {path.parent}; make it or choose another")
    if path.is_symlink():
        raise Refusal(f"{option} {path} is a link; name the file that it leads to, or remove it")
    if path.is_dir():
        raise Refusal(f"{option} {path} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise Refusal(f"{option} {path} is no plain file but a device, a pipe or a socket; choose another")


def write(path: str | Path, data: str | bytes) -> None:
    """Writes a file in one step, so that it is there whole, as it was, or not at all; a stream is written into."""
    path, raw = Path(path), data.encode() if isinstance(data, str) else data
    check(path)
    number = stream(path)
    try:
        if number is not None or is_null(path):
            say(end="", flush=True)  # what was said before comes before
            pour(raw, os.dup(number) if number is not None else os.open(path, os.O_WRONLY))
        else:
            replace(path, raw)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def stream(path: Path) -> int | None:
    """The number of the open stream that a path stands for, as /dev/stdout does; none where it names a file."""
    numbered = NUMBERED.fullmatch(str(path))
    return int(numbered[1]) if numbered else NAMED.get(str(path))


def is_null(path: Path) -> bool:
    """Whether a path leads to the device that forgets all it is given."""
    if not path.exists():
        return False
    there, null = path.stat(), os.stat(os.devnull)
    return stat.S_ISCHR(there.st_mode) and there.st_rdev == null.st_rdev


def pour(raw: bytes, handle: int) -> None:
    """Writes bytes into an open stream, and closes it."""
    with os.fdopen(handle, "wb") as file:
        file.write(clean(raw.decode("utf-8", "replace")).encode() if file.isatty() else raw)


def replace(path: Path, raw: bytes) -> None:
    """Writes a plain file aside and moves it into place; who may read the old one may read the new one."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.aside")
    try:
        aside.unlink(missing_ok=True)
        with aside.open("xb") as file:  # and never through a link that somebody left there
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            aside.chmod(stat.S_IMODE(path.stat().st_mode))
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
