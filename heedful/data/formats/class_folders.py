"""Folders of samples: one for each class, these perhaps in folders to learn from, to choose by and to test on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from warnings import warn

from heedful.data.splits import SAVED
from heedful.errors import Refusal

HALVES = (("train",), ("valid", "val", "dev", "validation"), ("test",))  # folders of a set that is divided already


def sides_of(folder: Path) -> list[Path | None]:
    """The folders to learn from, to choose by and to test on, in a folder that holds the first and one of the others.

    A set that `datasets` saved is none. Capitals are as good as small letters. What else is there would be a class, or
    forgotten: it is refused.
    """
    if (folder / SAVED).is_file():
        return []
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
    """Whether a path is a folder that is not hidden, nor a link back to what holds it."""
    return path.is_dir() and not path.name.startswith(".") and not leads_back(path)


def leads_back(path: Path) -> bool:
    """Whether a path is a link to a folder that it lies in: one to `/` would be all that the machine has."""
    return path.is_symlink() and path.parent.resolve().is_relative_to(path.resolve())


@dataclass(frozen=True)
class Classes:
    """What lies below a folder with a folder for each class: files of the kind that is asked for, and all others."""

    folder: Path
    kind: str  # as people call it: images, texts
    found: list[tuple[Path, str]]  # each with its class, the folder of the first level that it is in
    loose: list[Path]  # of the kind, in no folder of a class
    hidden: list[Path]  # of the kind
    others: list[Path]  # of other kinds

    @classmethod
    def of(cls, folder: Path, kind: str, is_one: Callable[[Path], bool]) -> Classes:
        """All that lies below a folder."""
        parts = {path: path.relative_to(folder).parts for path in below(folder, is_one)}
        unseen = {path for path, names in parts.items() if any(name.startswith(".") for name in names)}
        ones = [path for path in parts if is_one(path)]
        hidden, seen = ([path for path in ones if (path in unseen) is out] for out in (True, False))
        found = [(path, parts[path][0]) for path in seen if len(parts[path]) > 1]
        loose = [path for path in seen if len(parts[path]) == 1]
        return cls(folder, kind, found, loose, hidden, sorted(parts.keys() - ones - unseen))

    def tell(self) -> None:
        """Warns of all that is passed over."""
        passed = {
            "files of other kinds": self.others,
            f"{self.kind} in no folder of a class": self.loose,
            f"hidden {self.kind}": self.hidden,
            "links to folders that they lie in": [path for path in sorted(self.folder.iterdir()) if leads_back(path)],
        }
        for what, paths in passed.items():
            if paths:
                warn(f"{self.folder}: {what} are passed over: {len(paths):,}, first {paths[0]}", stacklevel=2)
        homes = {path.name for path in self.folder.iterdir() if is_home(path)}
        if bare := sorted(homes - {label for _, label in self.found}):
            warn(f"{self.folder}: folders without {self.kind} make no class: {', '.join(bare)}", stacklevel=2)


def below(folder: Path, is_one: Callable[[Path], bool], above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Every file below a folder, by name, also where links lead, but not back to where they came from."""
    here = folder.resolve()
    if here in above:
        return
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise Refusal(f"{folder} cannot be read: {error.strerror}; let it be read, or move it away") from None
    for path in paths:
        if path.is_dir() and not is_one(path):
            yield from below(path, is_one, (*above, here)) if not leads_back(path) else ()
        else:
            yield path
