"""Fault injection: a process that kills itself.

`python -m heedful.cli.fault_injection STEP OPERATION FOLDER train ...` is `heedful train ...`.
It does so when it comes to a step, or, where OPERATION is not 0, at that file operation in the run's folder after it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

OPERATIONS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree")  # as Python audits


def die() -> None:
    """Ends the process as `kill -9` does: nothing is tidied up."""
    os.kill(os.getpid(), signal.SIGKILL)


class Killer:
    """Counts the file operations in a folder once it is armed, and kills at the last it was given."""

    def __init__(self, folder: Path, operation: int) -> None:
        self.folder, self.left, self.armed = os.fspath(folder.absolute()), operation, False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.armed or event not in OPERATIONS or not arguments:
            return
        path = arguments[0]
        if isinstance(path, str | os.PathLike) and os.path.abspath(path).startswith(self.folder):
            self.left -= 1
            if self.left <= 0:
                die()


def main(words: list[str]) -> None:
    """Runs the command line with a killer in it."""
    step, operation, folder, *command = words
    from heedful.cli import main
    from heedful.training.loop import Loop

    killer, own = Killer(Path(folder), int(operation)), Loop.step

    def watched(loop: Loop, *given: Any) -> Any:
        if loop.progress.step >= int(step) - 1:
            if not killer.left:
                die()
            killer.armed = True
        return own(loop, *given)

    Loop.step = watched  # type: ignore[assignment, method-assign]
    sys.addaudithook(killer)
    main(command)


if __name__ == "__main__":
    main(sys.argv[1:])
