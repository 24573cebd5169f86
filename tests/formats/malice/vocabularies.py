"""Tokenizers that grow without end, in ids, in padding, in replacements, and pieces of absurd length."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.formats.malice.good import Bad
from tests.formats.malice.tools import Spoil, holds, says

NONE = r"tokenizer.json is no tokenizer: "
PIECES = r"tokenizer.model is no tokenizer: (it is neither .*: )?"
UNKNOWN = b"\x0a\x09\x0a\x05<unk>\x18\x02"  # a good piece, as one must be
NORMALIZER = rf"{NONE}its normalizer or pre_tokenizer makes texts more than 128 times as long"
AROUND = rf"{NONE}its post_processor "
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
TEXT = {"Sequence": {"id": "A", "type_id": 0}}
REPEATED = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}
PADDING = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}


def pattern(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def in_row(part: str, *parts: dict[str, Any]) -> dict[str, Any]:
    """A sequence of normalizers, decoders or the like."""
    names = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}
    return {part: {"type": "Sequence", names.get(part, "processors"): list(parts)}}


def replacing(content: str, **pattern: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def template(*pieces: dict[str, Any], ids: int = 1) -> dict[str, Any]:
    """A template with a token of many ids, whose pair is the usual one."""
    named = {"<end>": {"id": "<end>", "ids": [2] * ids, "tokens": ["<end>"] * ids}}
    pair = [TEXT, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": list(pieces), "pair": pair, "special_tokens": named}


def longer(charsmap: list[int], text: bytes) -> str:
    """A map of characters that makes a text of `a`: its trie has the root, the node of a and its leaf."""
    units = [0] * 256
    for at, unit in charsmap:
        units[at] = unit
    data = b"".join(unit.to_bytes(4, "little") for unit in units)
    return base64.b64encode(len(data).to_bytes(4, "little") + data + text + b"\0").decode()


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
        NORMALIZER,
        normalizer={"type": "Sequence", "normalizers": [REPEATED] * 9},
    ),
    "replacements within": bad(
        NORMALIZER,
        normalizer={"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": [REPEATED] * 4}] * 3},
    ),
    "replacements on the way back": bad(
        rf"{NONE}its decoder makes texts", decoder={"type": "Sequence", "decoders": [REPEATED] * 9}
    ),
    "bytes of bytes": bad(NORMALIZER, **in_row("normalizer", *[{"type": "ByteLevel"}] * 40)),
    "bytes of words": bad(NORMALIZER, **in_row("pre_tokenizer", *[BYTES] * 30)),
    "bytes within bytes": bad(
        NORMALIZER, normalizer={"normalizers": [in_row("normalizer", *[{"type": "ByteLevel"}] * 20)["normalizer"]] * 2}
    ),
    "signs before every letter": bad(
        NORMALIZER,
        **in_row(
            "pre_tokenizer",
            *[{"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "split": True}, pattern(".")] * 30,
        ),
    ),
    "words put before a text": bad(
        rf"{NONE}its normalizer or pre_tokenizer puts more than 256 bytes before a text",
        **in_row("normalizer", *[{"type": "Prepend", "prepend": "x" * 4000}] * 90),
    ),
    "a word of a megabyte before a text": bad(
        rf"{NONE}a word in it has more than 4096 characters", normalizer={"type": "Prepend", "prepend": "x" * 10**6}
    ),
    "nothing, replaced": bad(NORMALIZER, **in_row("normalizer", *[replacing("x", String="")] * 20)),
    "nothing, replaced by a pattern": bad(NORMALIZER, **in_row("normalizer", *[replacing("x", Regex="")] * 20)),
    "a look ahead, replaced": bad(NORMALIZER, **in_row("normalizer", *[replacing("x", Regex="(?=.)")] * 20)),
    "the end of a word, replaced": bad(NORMALIZER, **in_row("normalizer", *[replacing("x", Regex=r"\b")] * 20)),
    "one sign that stands for eighteen": bad(
        NORMALIZER, **in_row("normalizer", *[replacing("\ufdfa" * 4, String="a"), {"type": "NFKC"}] * 2)
    ),
    "a map that repeats": bad(
        NORMALIZER,
        normalizer={
            "type": "Precompiled",
            "precompiled_charsmap": longer([(0, 1 << 10), (96, 97 | 1 << 8 | 1 << 10), (97, 1 << 31)], b"a" * 2000),
        },
    ),
    "blanks between letters on the way back": bad(
        rf"{NONE}its decoder makes texts more than 16 times",
        **in_row("decoder", *[{"type": "BPEDecoder", "suffix": ""}] * 30),
    ),
    "words between letters on the way back": bad(
        rf"{NONE}its decoder makes texts more than 16 times",
        **in_row("decoder", *[{"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": True}] * 30),
    ),
    "parts without end": bad(rf"{NONE}it has more than 100 parts", **in_row("normalizer", *[{"type": "NFC"}] * 1000)),
    "a template that repeats ids": bad(
        rf"{AROUND}puts more than 32 tokens",
        post_processor=template(*[{"SpecialToken": {"id": "<end>", "type_id": 0}}] * 999, TEXT, ids=999),
    ),
    "templates in a row": bad(
        rf"{AROUND}puts more than 32 tokens",
        **in_row("post_processor", *[template(TEXT, {"SpecialToken": {"id": "<end>", "type_id": 0}}, ids=9)] * 9),
    ),
    "a template that repeats a text": bad(rf"{AROUND}repeats a text", post_processor=template(*[TEXT] * 999)),
    "a template with ids that no token has": bad(
        rf"{AROUND}puts the id 900, which no token has",
        post_processor={"type": "BertProcessing", "sep": ["<end>", 900], "cls": ["<begin>", 1]},
    ),
    "an unknown token of a megabyte": changed(
        rf"{NONE}a word in it has more than 4096 characters",
        lambda parts: parts["model"]["vocab"].update({"x" * 10**6: len(parts["model"]["vocab"])}),
    ),
    "ids twice": changed(
        rf"{NONE}an id of its vocabulary is no number or stands there twice",
        lambda parts: parts["model"]["vocab"].update(x=1),
    ),
    "an added token with the id of another": changed(
        rf"{NONE}the added token 'new' cannot have the id 1",
        lambda parts: parts["added_tokens"].append(added(id=1, content="new")),
    ),
    "classes of letters without end": bad(
        rf"{NONE}its patterns have more than", pre_tokenizer=pattern(r"[\p{L}]" * 20_000)
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
