"""Public data sets by name: none comes with heedful, and each is fetched only when asked for, and checked."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from heedful.data.public.catalogue import PUBLIC, PublicFile, PublicSet
from heedful.errors import Failure, Refusal, unknown_word

PIECE = 1 << 16  # bytes read at a time
PATIENCE = 30.0  # seconds without a byte before a download is given up


def folder() -> Path | None:
    """The folder of public sets that HEEDFUL_DATA names, where it names one."""
    named = os.environ.get("HEEDFUL_DATA")
    if not named:
        return None
    path = Path(named).expanduser()
    if not path.is_dir():
        raise Refusal(f"HEEDFUL_DATA is {named!r}, which is not a folder; point it at one or unset it")
    return path


def find_set(name: str) -> PublicSet:
    """The set of that name, or a refusal that lists them."""
    if name not in PUBLIC:
        raise unknown_word("data set", name, PUBLIC)
    return PUBLIC[name]


def find(name: str) -> Path | None:
    """Where HEEDFUL_DATA holds a complete and unaltered copy of a set, if it does."""
    public, root = find_set(name), folder()
    if root is None:
        return None
    whole = all(any(_is(copy, file) for copy in _copies(root / name, file)) for file in public.files)
    return root / name if whole else None


def home(name: str) -> Path:
    """The folder of a set that is at hand: under HEEDFUL_DATA, or under `data/`, where `get` puts it."""
    find_set(name)
    places = [place / name for place in (folder(), Path("data")) if place is not None]
    for place in places:
        if place.is_dir():
            return place
    raise Refusal(f"data={name} is not here; fetch it with `heedful data get {name}`, or set HEEDFUL_DATA")


def there(path: Path) -> Path:
    """A file of a set, or its gzipped copy where that alone is there."""
    return path if path.is_file() else path.with_name(f"{path.name}.gz")


def get(
    name: str,
    into: Path,
    progress: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Path:
    """Bring a set into the folder `into`, from HEEDFUL_DATA where that has it and from its publisher where not.

    Files that are already there are checked and left alone. `progress` hears how many more bytes are done, up to the
    size of the set; `say` hears where each file came from.
    """
    public, home = find_set(name), into / name
    progress, say = progress or _unheard, say or _unheard
    try:
        missing = [file for file in public.files if not _holds(home, file, progress)]
        if not missing:
            say(f"{name} is already complete in {home}")
            return home
        into.mkdir(parents=True, exist_ok=True)
        # What is unfinished lies aside, so that it never bears a good name and goes away with any error.
        with TemporaryDirectory(prefix=".getting-", dir=into) as aside:
            for file in missing:
                part, target = Path(aside, "part"), home / file.path
                origin = _bring(name, file, part, progress)
                target.parent.mkdir(parents=True, exist_ok=True)
                part.replace(target)
                say(f"{target} from {origin}")
    except OSError as error:
        raise Refusal(f"{into} cannot take {name}: {error.strerror}; name another folder") from error
    return home


def _unheard(_: object) -> None:
    """Stand in for a listener that was not given."""


def _holds(home: Path, file: PublicFile, progress: Callable[[int], None]) -> bool:
    path = home / file.path
    if not path.exists():
        return False
    if not path.is_file():
        raise Refusal(f"{path} is no plain file; remove it to get it anew")
    _check(path, file, path, "remove it to get it anew")
    progress(file.bytes)
    return True


def _bring(name: str, file: PublicFile, part: Path, progress: Callable[[int], None]) -> Path | str:
    """Write one file into `part`, check it, and say where it came from."""
    origin = _origin(name, file)
    try:
        with _open(origin, file) as source, part.open("wb") as target:
            while piece := source.read(PIECE):
                target.write(piece)
                progress(len(piece))
    except (OSError, HTTPException) as error:
        raise Failure(f"{origin} could not be fetched: {_reason(error)}") from error
    _check(part, file, origin, "try again, or put a good copy into the folder that HEEDFUL_DATA names")
    return origin


def _origin(name: str, file: PublicFile) -> Path | str:
    root = folder()
    copies = _copies(root / name, file) if root else ()
    return next((copy for copy in copies if copy.is_file()), file.url)


def _copies(home: Path, file: PublicFile) -> tuple[Path, Path]:
    """Where a copy may lie: the file itself, or gzipped."""
    path = home / file.path
    return path, path.with_name(f"{path.name}.gz")


def _open(origin: Path | str, file: PublicFile) -> IO[bytes]:
    if isinstance(origin, Path):
        zipped = origin.suffix == ".gz" and not file.path.endswith(".gz")
        return cast(IO[bytes], gzip.open(origin)) if zipped else origin.open("rb")
    response: IO[bytes] = urlopen(origin, timeout=PATIENCE)
    return response


def _reason(error: Exception) -> str:
    bare = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    return str(bare) or type(error).__name__


def _content(path: Path, file: PublicFile) -> tuple[int, str]:
    """How many bytes a copy of a file holds, and their SHA-256."""
    size, digest = 0, hashlib.sha256()
    try:
        with _open(path, file) as stream:
            while piece := stream.read(PIECE):
                size += len(piece)
                digest.update(piece)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return size, "nothing whole"
    return size, digest.hexdigest()


def _is(path: Path, file: PublicFile) -> bool:
    return path.is_file() and _content(path, file) == (file.bytes, file.sha256)


def _check(path: Path, file: PublicFile, origin: Path | str, cure: str) -> None:
    size, digest = _content(path, file)
    if (size, digest) != (file.bytes, file.sha256):
        raise Refusal(
            f"{origin} is not the published file: expected {file.bytes} bytes with SHA-256 {file.sha256}, "
            f"got {size} with {digest}; {cure}"
        )
