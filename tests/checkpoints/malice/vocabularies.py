"""Tokenizers that grow without end, in ids, in padding, in replacements, and pieces of absurd length."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.checkpoints.malice.good import Bad
from tests.checkpoints.malice.tools import Spoil, holds, says

NONE = r"tokenizer.json is no tokenizer: "
PIECES = r"tokenizer.model is no tokenizer: (it is neither .*: )?"
UNKNOWN = b"\x0a\x09\x0a\x05<unk>\x18\x02"  # a good piece, as one must be
REPEATED = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}
PADDING = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}


def pattern(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def model(change: Callable[[dict[str, Any]], object]) -> Spoil:
    """Another model in a tokenizer.json."""

    def spoil(folder: Path) -> None:
        parts = json.loads((folder / "tokenizer.json").read_text())
        change(parts)
        (folder / "tokenizer.json").write_text(json.dumps(parts))

    return spoil


def bad(said: str, **values: Any) -> Bad:
    return Bad(says("tokenizer.json", **values), said, way="tokenizer")


def changed(said: str, change: Callable[[dict[str, Any]], object]) -> Bad:
    return Bad(model(change), said, way="tokenizer")


def pieces(data: bytes, said: str = PIECES) -> Bad:
    return Bad(holds("tokenizer.model", data), said, way="tokenizer")


def bpe(**values: Any) -> dict[str, Any]:
    return {"type": "BPE", "unk_token": "<unknown>", "vocab": {"<unknown>": 0, "a": 1}, "merges": [], **values}


def added(**values: Any) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": 9, "content": "x", **flags, **values}


READ = {  # what is whole all the same: what it asks for is not done
    "absurd padding": bad("", padding={"strategy": {"Fixed": 10**12}, **PADDING}),
    "padding to a multiple": bad("", padding={"strategy": "BatchLongest", **PADDING, "pad_to_multiple_of": 10**12}),
    "absurd truncation": bad(
        "", truncation={"direction": "Right", "max_length": 2**60, "strategy": "LongestFirst", "stride": 2**50}
    ),
}
JSONS = {
    "keys that nobody knows": bad(NONE, auto_map={"AutoTokenizer": ["evil.Evil", None]}, __reduce__="os.system"),
    "ids beyond all": changed(
        rf"{NONE}an id is above 4194304", lambda parts: parts["model"]["vocab"].update(x=2**32 - 1)
    ),
    "ids that are negative": changed(NONE, lambda parts: parts["model"]["vocab"].update(x=-1)),
    "ids that are no numbers": changed(NONE, lambda parts: parts["model"]["vocab"].update(x=1e30)),
    "an added token beyond all": changed(
        rf"{NONE}an id is above", lambda parts: parts["added_tokens"].append(added(id=2**31, content="\u00fc"))
    ),
    "replacements that repeat": bad(
        rf"{NONE}its normalizer makes texts more than 1000 times as long",
        normalizer={"type": "Sequence", "normalizers": [REPEATED] * 9},
    ),
    "replacements within": bad(
        rf"{NONE}its normalizer makes texts",
        normalizer={"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": [REPEATED] * 4}] * 3},
    ),
    "replacements on the way back": bad(
        rf"{NONE}its decoder makes texts", decoder={"type": "Sequence", "decoders": [REPEATED] * 9}
    ),
    "a pattern without end": bad(r"a text cannot be encoded: .*retry-limit", pre_tokenizer=pattern("(a+)+$")),
    "a pattern without end on the way back": bad(
        r"a text cannot be decoded: .*retry-limit",
        decoder={
            "type": "Sequence",
            "decoders": [{"type": "Fuse"}, {"type": "Replace", "pattern": {"Regex": "(a+)+[bc]"}, "content": ""}],
        },
    ),
    "a pattern of brackets": bad(rf"{NONE}.*parse depth limit", pre_tokenizer=pattern("(" * 20_000 + ")" * 20_000)),
    "a pattern of repeats": bad(rf"{NONE}.*too big number", pre_tokenizer=pattern("a{100000}{100000}")),
    "merges of nothing": changed(NONE, lambda parts: parts.update(model=bpe(merges=[["a", "never"]] * 10_000))),
    "a prefix longer than its pieces": changed(
        NONE, lambda parts: parts.update(model=bpe(merges=[["a", "a"]], continuing_subword_prefix="long" * 100))
    ),
    "a map beyond its end": bad(
        rf"{NONE}its map of characters",
        normalizer={"type": "Precompiled", "precompiled_charsmap": base64.b64encode(b"\xff" * 4096).decode()},
    ),
    "another part twice": Bad(
        lambda folder: (folder / "tokenizer.json").write_text(
            (folder / "tokenizer.json").read_text().replace("{", '{"normalizer": null, ', 1)
        ),
        rf"{NONE}key 'normalizer' stands there twice",
        way="tokenizer",
    ),
    "code for a model": bad(NONE, model={"type": "Python", "code": "import os", "vocab": {}}),
    "code for a part": bad(NONE, pre_tokenizer={"type": "Custom", "module": "evil"}),
    "a deep tokenizer": Bad(holds("tokenizer.json", '{"a":' * 10**6), NONE, way="tokenizer"),
    "a tokenizer for another vocabulary": Bad(
        model(lambda parts: parts["model"]["vocab"].update(x=99)),
        r"the task says vocab=100 and the model",
        way="trained",
    ),
}
PROTOBUFS = {
    "a piece of absurd length": pieces(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", rf"{PIECES}it is cut short"),
    "a number without end of pieces": pieces(b"\xff" * 1000, rf"{PIECES}it is no protocol buffer"),
    "a million empty pieces": pieces(b"\x0a\x00" * 1_000_000, rf"{PIECES}a piece is empty"),
    "many equal pieces": pieces(b"\x0a\x03\x0a\x01a" * 100_000, rf"{PIECES}it has 0 unknown tokens"),
    "a piece of a megabyte": pieces(
        UNKNOWN + b"\x0a\x84\x89\x7a\x0a\x80\x89\x7a" + b"x" * 2_000_000, rf"{PIECES}a piece is far too long"
    ),
    "groups that never close": pieces(b"\x0b" * 100_000, rf"{PIECES}it is no protocol buffer"),
    "a map of pieces beyond its end": pieces(
        UNKNOWN + b"\x1a\x06\x12\x04\xff\xff\xff\x7f", rf"{PIECES}its map of characters"
    ),
    "a piece in no coding": pieces(b"\x0a\x03\x0a\x01\xff"),
}
VOCABULARIES = READ | JSONS | PROTOBUFS
