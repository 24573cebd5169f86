"""Weights that lie about themselves, and files that are larger than they look or look larger than they are."""

import gzip
import io
import json
import struct
import zipfile
from pathlib import Path

import torch

from tests.formats.malice.good import Bad
from tests.formats.malice.tools import WEIGHTS, Spoil, header, holds, of_size, says, tensor, tensors

TABLE = "inputs.table.weight"
UNREAD = rf"{WEIGHTS} cannot be read: "
AWAY = rf"{UNREAD}tensor 'a' does not lie within the file; copy or train it again$"
GB = 1 << 30


def zip_bomb() -> bytes:
    """Ten gigabytes of nothing in ten megabytes would take long to make; a hundred megabytes in a hundred kB do."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("archive/data.pkl", bytes(100 << 20))
    return file.getvalue()


ZIP, GZIP = zip_bomb(), gzip.compress(bytes(50 << 20))


def huge(folder: Path) -> None:
    """Spec and weights agree on a vocabulary of ten thousand million words; a terabyte, none of it on the disk."""
    said, offset, (_, first) = {}, 0, divided(folder)
    for name, entry in first.items():
        shape = [10**10, *entry["shape"][1:]] if name == TABLE else entry["shape"]
        size = 4 * int(torch.tensor(shape, dtype=torch.float64).prod())
        said[name] = tensor(shape, [offset, offset + size])
        offset += size
    header(said, offset)(folder)
    says("spec.json", vocab=10**10)(folder)


def divided(folder: Path) -> tuple[bytes, dict[str, dict[str, list[int]]]]:
    data = (folder / WEIGHTS).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return data[8 + size :], {name: entry for name, entry in json.loads(data[8 : 8 + size]).items() if name[0] != "_"}


def told(**more: object) -> Spoil:
    """Good weights, of whose tensors the header says one thing more."""

    def spoil(folder: Path) -> None:
        numbers, entries = divided(folder)
        text = json.dumps({name: entry | more for name, entry in entries.items()}).encode()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + numbers)

    return spoil


def twice(folder: Path) -> None:
    """Good weights in whose header one name stands twice."""
    numbers, entries = divided(folder)
    text = json.dumps(entries)
    text = f"{text[:-1]}, {json.dumps(TABLE)}: {json.dumps(entries[TABLE])}}}"
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text.encode() + numbers)


def overlapping(folder: Path) -> None:
    """Good weights, two of which lie in the same place."""
    numbers, entries = divided(folder)
    one, other = [name for name, entry in entries.items() if entry["shape"] == [8, 8]][:2]
    entries[one] = entries[other]
    text = json.dumps(entries).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + numbers)


def one(shape: list[int], offsets: list[int], dtype: str = "F32", size: int = 8) -> Spoil:
    return header({"a": tensor(shape, offsets, dtype)}, size)


def named(name: str) -> Spoil:
    return tensors(lambda found: found.update({name: torch.zeros(2)}))


HEADERS = {
    "a header longer than the file": Bad(header({}, claims=10**6), rf"{UNREAD}its header is longer than the file;"),
    "a header of all numbers": Bad(header({}, claims=2**64 - 1), rf"{UNREAD}its header is longer than the file;"),
    "a header of a gigabyte": Bad(header("{", GB, GB), rf"{UNREAD}its header is larger than 16 MB;"),
    "metadata of many megabytes": Bad(
        header({"__metadata__": {"a": "x" * (17 << 20)}}), rf"{UNREAD}its header is larger than 16 MB;"
    ),
    "no header": Bad(header(b""), rf"{UNREAD}Expecting value"),
    "no length": Bad(holds(WEIGHTS, b"\1\0\0"), rf"{UNREAD}its header is longer"),
    "an empty file": Bad(holds(WEIGHTS, b""), rf"{UNREAD}"),
    "a header that is no JSON": Bad(header("<model/>"), rf"{UNREAD}Expecting value"),
    "a header that is a list": Bad(header([1, 2]), rf"{UNREAD}its header is no JSON object"),
    "a deep header": Bad(header("[" * 10**6), rf"{UNREAD}maximum recursion depth"),
    "a deep header of objects": Bad(header('{"a":' * 10**6), rf"{UNREAD}maximum recursion depth"),
    "a name in no coding": Bad(header(b'{"\xff\xfe": 1}'), rf"{UNREAD}'utf-8' codec can't decode"),
    "a name that stands there twice": Bad(twice, rf"{UNREAD}key '{TABLE}' stands there twice"),
    "a tensor that says how to make it": Bad(
        told(__reduce__="os.system"), rf"{UNREAD}tensor '.*' is not told by dtype"
    ),
    "a tensor that is a list": Bad(header({"a": [1, 2]}), rf"{UNREAD}tensor 'a' is not told by dtype"),
    "a tensor of objects": Bad(one([2], [0, 8], "O"), rf"{UNREAD}tensor 'a' is of kind 'O', not one of F64"),
    "a kind that is a list": Bad(header({"a": tensor([2], [0, 8]) | {"dtype": []}}, 8), rf"{UNREAD}.*of kind '\[\]'"),
    "a tensor of eight bits": Bad(told(dtype="F8_E4M3"), rf"{UNREAD}tensor '.*' is of kind 'F8_E4M3'"),
    "a complex tensor": Bad(told(dtype="C64"), rf"{UNREAD}tensor '.*' is of kind 'C64'"),
    "a negative shape": Bad(one([-2, -1], [0, 8]), rf"{UNREAD}tensor 'a' has an invalid shape or offset"),
    "half a shape": Bad(
        header('{"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,10]}}', 10), rf"{UNREAD}.*invalid shape or offset"
    ),
    "a shape of truths": Bad(header({"a": tensor([True], [0, 4])}, 4), rf"{UNREAD}.*invalid shape or offset"),
    "a shape of many axes": Bad(one([1] * 5000, [0, 4]), rf"{UNREAD}.*invalid shape or offset"),
    "an absurd shape": Bad(one([2**60], [0, 2**62]), AWAY),
    "an absurd shape in little room": Bad(one([2**60], [0, 8]), AWAY),
    "a shape that overflows": Bad(one([2**32, 2**32], [0, 0]), AWAY),
    "a shape of nothing that overflows": Bad(one([2**62, 2**62, 0], [0, 0]), AWAY),
    "a place beyond the file": Bad(one([2], [8, 16]), AWAY),
    "a place before the file": Bad(one([2], [-8, 0]), rf"{UNREAD}.*invalid shape or offset"),
    "a place that ends before it begins": Bad(one([2], [8, 0]), AWAY),
    "three places": Bad(one([2], [0, 4, 8]), rf"{UNREAD}.*invalid shape or offset"),
    "tensors that overlap": Bad(overlapping, rf"{UNREAD}.*invalid offset"),
    "a tensor that leads out": Bad(
        named("../../../etc/passwd"), rf"{WEIGHTS}: tensor '../../../etc/passwd' is unexpected"
    ),
    "a tensor with a name of a megabyte": Bad(named("!" * 10**6), rf"{WEIGHTS}: tensor '!!+ \.\.\. !+' is unexpected"),
    "a tensor that commands the terminal": Bad(named("\x1b[2J\x07\n"), rf"{WEIGHTS}: tensor '\\x1b\[2J\\x07\\n' is"),
    "a tensor too many": Bad(named("__class__"), rf"{WEIGHTS}: tensor '__class__' is unexpected"),
    "weights of whole numbers": Bad(
        tensors(lambda found: found.update({TABLE: found[TABLE].to(torch.int64)})),
        rf"{WEIGHTS}: tensor '{TABLE}' holds torch.int64, not torch.float32",
    ),
    "counts that are no whole numbers": Bad(
        tensors(
            lambda found: found.update({k: v.float() for k, v in found.items() if k.endswith("num_batches_tracked")})
        ),
        rf"{WEIGHTS}: tensor '.*num_batches_tracked' holds torch.float32, not torch.int64",
        good="sets",
    ),
}
SIZES = {
    "a terabyte that is not there": Bad(huge, r"the model would take .* bytes and there are"),
    "a terabyte of another spec": Bad(
        header({"a": tensor([1 << 38], [0, 1 << 40])}, 1 << 40), rf"{WEIGHTS}: tensor .* is (missing|unexpected)"
    ),
    "a zip bomb for weights": Bad(holds(WEIGHTS, ZIP), rf"{UNREAD}its header is longer than the file"),
    "a zip bomb for a tokenizer": Bad(holds("tokenizer.json", ZIP), r"is no tokenizer: it is neither", way="trained"),
    "a zip bomb for a task": Bad(holds("task.json", ZIP), r"task.json cannot be read as JSON", way="trained"),
    "a gzip bomb for a spec": Bad(holds("spec.json", GZIP), r"spec.json cannot be read as JSON"),
    "a gzip bomb for a tokenizer": Bad(holds("tokenizer.json", GZIP), r"is no tokenizer: it is neither", way="trained"),
    "a spec of gigabytes": Bad(of_size("spec.json", 8 * GB, b"{"), r"cannot be read as JSON: it is larger than 16 MB"),
    "a task of gigabytes": Bad(of_size("task.json", 8 * GB), r"JSON: it is larger than 16 MB", way="trained"),
    "a tokenizer of gigabytes": Bad(
        of_size("tokenizer.json", 8 * GB, b"{"), r"is no tokenizer: it is larger than 64 MB", way="trained"
    ),
    "pieces of gigabytes": Bad(of_size("tokenizer.model", 8 * GB), r"it is larger than 64 MB", way="tokenizer"),
    "pieces of many megabytes": Bad(of_size("tokenizer.model", 60 << 20), r"and larger than 16 MB$", way="tokenizer"),
    "a run's spec of gigabytes": Bad(of_size("run.yaml", 8 * GB), r"YAML: it is larger than 64 kB", "run", "begun"),
    "times of gigabytes": Bad(of_size("timing.jsonl", 8 * GB), r"it is larger than 256 MB; remove it", "run", "table"),
}
WEIGHTS_ = HEADERS | SIZES
