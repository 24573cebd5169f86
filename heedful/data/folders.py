"""Folders of samples that are divided already: one to learn from, and others to choose by and to test on."""

from __future__ import annotations

from pathlib import Path

from heedful.errors import Refusal

HALVES = (("train",), ("valid", "val", "dev", "validation"), ("test",))  # folders of a set that is divided already


def sides_of(folder: Path) -> list[Path | None]:
    """The folders to learn from, to choose by and to test on, in a folder that holds the first and one of the others.

    Capitals are as good as small letters. What else is there would be a class, or forgotten: it is refused.
    """
    homes = sorted(path for path in folder.iterdir() if is_home(path)) if folder.is_dir() else []
    found = [next((path for path in homes if path.name.lower() in names), None) for names in HALVES]
    train, others = found[0], [path for path in found[1:] if path]
    if train is None or not others:
        return []
    more = ", ".join(path.name for path in homes if path not in (train, *others))
    if more:
        said = f"{folder} is divided into {' and '.join(path.name for path in (train, *others))}"
        cure = "move it away, or give data.train, data.valid and data.test"
        raise Refusal(f"{said}, and {more} is there too; {cure}")
    return found


def is_home(path: Path) -> bool:
    """Whether a path is a folder that is not hidden."""
    return path.is_dir() and not path.name.startswith(".")
