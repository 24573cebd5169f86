"""Parquet and Arrow files, and folders that Hugging Face's `datasets` saved on disk, read by pyarrow as plain values.

Only schema and values are read: no loading script is looked for, and an old pyarrow that unpickles types is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.data.splits import SAVED
from heedful.errors import Refusal
from heedful.safe.json_and_tensors import read_json
from heedful.safe.opening import inside, size_of

PARQUET = ("parquet", "pq")
STATE, INFO = "state.json", "dataset_info.json"  # of a folder of `save_to_disk`
SPLITS = {"train": ("train",), "valid": ("validation", "valid", "val", "dev"), "test": ("test",)}  # as sets call them
SAFE = 15  # versions of pyarrow from which a schema cannot make it unpickle


def saved_splits(folder: Path) -> dict[str, str]:
    """The folders of the splits of a set that `datasets` saved with several: by what each is for."""
    names = read_json(inside(folder / SAVED)).get("splits")
    names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    found = {side: name for side, known in SPLITS.items() for name in known if name in names}
    if "train" not in found:
        raise Refusal(f"{folder} has no split called train, but {', '.join(names) or 'none'}; give data.train=FOLDER")
    return {side: str(inside(folder / name)) for side, name in found.items()}


def arrow_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of such a file or folder as plain values, counted from 1; classes are told by their names."""
    names = class_names(path) if path.is_dir() else {}
    number = 0
    for file in files_of(path):
        try:
            for row in rows_of_file(file):
                number += 1
                yield number, {key: name_of(value, names.get(key)) for key, value in row.items()}
        except (OSError, ValueError, TypeError, KeyError, ArithmeticError) as error:
            if isinstance(error, Refusal):
                raise
            raise Refusal(f"{file} cannot be read: {str(error).splitlines()[0][:200]}; write it again") from None


def files_of(path: Path) -> list[Path]:
    """The file itself, or the files that the state of a saved set names, all of them in its folder."""
    if not path.is_dir():
        return [path]
    listed = read_json(inside(path / STATE)).get("_data_files")
    listed = [one.get("filename") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    names = [name for name in listed if isinstance(name, str) and Path(name).name == name]
    if not names or len(names) < len(listed):
        raise Refusal(f"{path / STATE} names no files of this folder; save the set again")
    return [inside(path / name) for name in names]


def rows_of_file(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of one file: Parquet, or Arrow's file or stream."""
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError:
        raise Refusal(f"{path} is read by pyarrow; pip install 'heedful[arrow]', or write CSV or JSON lines") from None
    if int(pyarrow.__version__.partition(".")[0]) < SAFE:
        raise Refusal(f"pyarrow {pyarrow.__version__} can be made to run code by a file; pip install -U pyarrow")
    try:
        size_of(path)
    except FileNotFoundError:
        raise Refusal(f"{path} does not exist; check the path") from None
    with pyarrow.memory_map(str(path)) as source:
        if path.suffix.lower().removeprefix(".") in PARQUET:
            batches: Any = parquet.ParquetFile(source).iter_batches()
        elif source.read(6) == b"ARROW1":
            reader = ipc.open_file(source)
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            source.seek(0)
            batches = ipc.open_stream(source)
        for batch in batches:
            yield from batch.to_pylist()


def class_names(folder: Path) -> dict[str, list[str]]:
    """The names of the classes of each column that holds their numbers, as the set says."""
    features = read_json(inside(folder / INFO)).get("features") if (folder / INFO).is_file() else None
    named = {key: one.get("names") for key, one in (features or {}).items() if isinstance(one, dict)}
    return {key: list(map(str, names)) for key, names in named.items() if isinstance(names, list)}


def name_of(value: Any, names: list[str] | None) -> Any:
    """A class by its name, where a number is one; all else as it is."""
    known = names is not None and isinstance(value, int) and 0 <= value < len(names)
    return names[value] if known and names is not None else value
