"""The folder of a run: whether one was begun or finished there, and whether what is asked for now is what was begun.

One process trains in it: a lock tells who comes second who holds it, and a process that dies lets go.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from heedful.errors import Refusal
from heedful.safe.opening import check_all
from heedful.safe.sealed_folders import making, replace_file
from heedful.training.distributed.sharding import still
from heedful.training.spec.run_spec import LIKE, RunSpec

SPEC = "run.yaml"  # written first
RESULT = "result.json"  # written last: a run that has it is finished
LOCK, HOLDER = ".lock", ".holder.json"

# Of a spec: what may be another each time that a run goes on.
HOW = ("training.parallel", "training.recompute", "training.loggers")
UNTOLD = ("about", "expected", "model.size", *HOW)  # what a run does not depend on, or keeps by other names


def is_finished(out: Path, resume: bool) -> bool:
    """Whether a folder holds a finished run; without --resume it is refused, so that nothing is overwritten."""
    done = (out / RESULT).exists()
    if done and not resume:
        raise Refusal(f"{out} holds a finished run; choose another --out, or remove the folder to train again")
    return done


def is_begun(out: Path, resume: bool) -> bool:
    """Whether a folder holds a run to go on with; anything else that is in it is refused, so that nothing is lost."""
    if out.exists() and not out.is_dir():
        raise Refusal(f"{out} is a file; choose another --out")
    home = next(place for place in (out.absolute(), *out.absolute().parents) if place.exists())
    if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        raise Refusal(f"{out} cannot be written, for {home} is no place for files; choose another --out")
    if home != out.absolute() or not any(out.iterdir()):
        return False
    if not (out / SPEC).exists():
        raise Refusal(f"{out} holds other things and no run; choose another --out")
    if not resume and is_held(out):
        raise Refusal(busy(out))
    if not resume:
        raise Refusal(f"{out} holds an unfinished run; go on with --resume, or choose another --out")
    check_all(out)  # whoever left it there: all that is in it is read, and written anew
    return True


def make_folder(out: Path, run: RunSpec) -> None:
    """Makes a run's folder, with its spec; where that cannot be, no part of it is left behind."""
    try:
        with making(out):
            if not (out / SPEC).exists():
                replace_file(out / SPEC, run.text())
    except OSError as error:
        raise Refusal(f"{out} cannot be written: {error.strerror}; choose another --out") from None


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """The folder for this process alone."""
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise Refusal(busy(folder)) from None
    try:
        (folder / HOLDER).write_text(json.dumps({"process": os.getpid(), "host": socket.gethostname()}) + "\n")
        yield
    finally:
        with suppress(OSError):
            (folder / HOLDER).unlink()
            (folder / LOCK).unlink()  # while it is held: who waits for it sees that it has lost its name
        lock.release()


def clear(folder: Path) -> None:
    """Removes the lock that a killed process left in a folder; that of a living one stays."""
    if (folder / LOCK).exists():
        with suppress(Refusal, OSError), holding(folder):
            pass


def busy(folder: Path) -> str:
    """Who else trains in a folder, and what can be done about it."""
    return f"{folder} is held by {holder(folder)}, which trains in it; wait for it, stop it, or choose another --out"


def is_held(folder: Path) -> bool:
    """Whether a living process trains in a folder."""
    if not (folder / LOCK).exists():
        return False
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def holder(folder: Path) -> str:
    """Who holds a folder, in words."""
    try:
        told = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return f"process {int(told['process'])} on {str(told['host'])[:80]}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def same(asked: RunSpec, begun: RunSpec, out: Path, keys: Collection[str] | None) -> RunSpec:
    """The run that was begun; what is asked for now must not contradict it."""
    if keys is not None and asked.about != begun.about:
        raise Refusal(f"{out} was begun by another recipe, {begun.about!r}; choose another --out")
    now, then = flat(asked.model_dump(mode="json")), flat(begun.model_dump(mode="json"))
    for key, value in now.items():
        told = keys is None or any(f"{key}.".startswith(f"{one}.") for one in keys)
        told = told and key not in found_before(begun)
        if told and value not in (None, LIKE) and then.get(key) != value and not key.startswith(UNTOLD):
            cure = f"leave {key} out" if then.get(key) in (None, "") else f"give {key}={then[key]}"
            raise Refusal(f"{out} was begun with {key}={then.get(key)}, not {value}; {cure}, or choose another --out")
    anew = [key for key in HOW if keys is None or key in keys]
    how = {"parallel": still(begun.training.parallel)} | {key.removeprefix("training."): now[key] for key in anew}
    return begun.model_copy(update={"training": begun.training.model_copy(update=how)})


def found_before(begun: RunSpec) -> set[str]:
    """The keys whose values were found by trial before the first step, and not asked for."""
    timed = ("steps", "warmup", "evaluate_every") if begun.training.minutes is not None else ()
    return {f"training.{key}" for key in (*begun.training.tried, *timed)}


def flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Nested values by dotted key."""
    made: dict[str, Any] = {}
    for key, value in values.items():
        made |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {above + key: value}
    return made
