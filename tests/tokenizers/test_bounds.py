"""What a foreign tokenizer.json can do is bounded: how long it makes a text, and what it raises when it is damaged."""

import copy
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, normalizers, pre_tokenizers, processors

from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import Stream
from heedful.errors import Refusal
from heedful.tokenizers import Broken, Tokenizer, chunks, length_bounds, train
from heedful.tokenizers.from_sentencepiece import convert
from heedful.tokenizers.read_tokenizer import is_panic
from heedful.tokenizers.sentencepiece.proto import parse
from tests.tokenizers.corpus import tokenizer
from tests.tokenizers.foreign import ENGINES
from tests.tokenizers.test_symbols import learned

ROOT = Path(__file__).parents[2]
BLANK = {"prepend_scheme": "always", "split": True}
CUT = {"behavior": "Isolated", "invert": False}
BYTES = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
PARTS: dict[str, list[dict[str, Any]]] = {
    "normalizer": [
        {"type": "NFKC"},
        {"type": "Lowercase"},
        {"type": "ByteLevel"},
        {"type": "Prepend", "prepend": "xé"},
        {"type": "Strip", "strip_left": True, "strip_right": True},
        *({"type": "Replace", "pattern": {"String": text}, "content": "b\u00e9"} for text in ("", "a", "aab")),
        *({"type": "Replace", "pattern": {"Regex": text}, "content": "a\u4e2d"} for text in ("", "a|", "a+", "(?=b)")),
        {"type": "Replace", "pattern": {"Regex": r"[^a]|\b"}, "content": "\ufdfa"},
        {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True},
    ],
    "pre_tokenizer": [
        BYTES | {"add_prefix_space": True},
        BYTES | {"add_prefix_space": False},
        {"type": "Metaspace", "replacement": "\u2581", **BLANK},
        {"type": "Metaspace", "replacement": "_", **BLANK},
        {"type": "Split", "pattern": {"Regex": "."}, **CUT},
        {"type": "Split", "pattern": {"String": ""}, **CUT},
        {"type": "Punctuation", "behavior": "Isolated"},
        {"type": "FixedLength", "length": 0},
        {"type": "UnicodeScripts"},
    ],
    "post_processor": [
        {"type": "BertProcessing", "sep": ["a", 900_000], "cls": ["b", 2]},
        {"type": "RobertaProcessing", "sep": ["a", 1], "cls": ["b", 2], "trim_offsets": True, "add_prefix_space": True},
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}}], "pair": [],
         "special_tokens": {"x": {"id": "x", "ids": [], "tokens": []}}},
    ],
    "decoder": [
        BYTES | {"add_prefix_space": True},
        {"type": "BPEDecoder", "suffix": ""},
        {"type": "CTC", "pad_token": "a", "word_delimiter_token": "", "cleanup": True},
        {"type": "WordPiece", "prefix": "##", "cleanup": True},
        {"type": "Strip", "content": "a", "start": 3, "stop": 3},
        {"type": "Replace", "pattern": {"Regex": ""}, "content": "b"},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}  # fmt: skip
INNER = dict(zip(PARTS, length_bounds.INNER, strict=True))


def in_row(name: str, parts: list[Any]) -> dict[str, Any]:
    return {"type": "Sequence", INNER[name]: parts}


def engine(**parts: Any) -> tokenizers.Tokenizer:
    model = {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1}, "unk_token": "<unk>"}
    return tokenizers.Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": model, **parts}))


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    """A panic tells where it was, which takes half a second."""
    monkeypatch.setenv("RUST_BACKTRACE", "0")


def made_by(part: Callable[[Any], Any], given: Any) -> Any:
    """What a part makes of something; None where it panics, as it does at some odd rows."""
    try:
        return part(given)
    except BaseException as error:
        if is_panic(error):
            return None
        raise


def test_every_part_that_the_library_has_is_known():
    kinds = [(normalizers, {"Normalizer", "NORMALIZERS"}), (pre_tokenizers, {"PreTokenizer"})]
    kinds += [(decoders, {"Decoder", "DecodeStream"})]
    for module, no_part in kinds:
        found = {name for name in vars(module) if name[0].isupper() and name.isidentifier()}
        named = {name for name in found if isinstance(getattr(module, name), type)} - no_part - {"Sequence"}
        assert named <= length_bounds.TIMES.keys(), named - length_bounds.TIMES.keys()
    assert {name for name, value in vars(processors).items() if isinstance(value, type)} == {
        "PostProcessor", "BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing"
    }  # fmt: skip


def test_no_text_becomes_longer_than_it_is_said_to():
    dice = random.Random(0)
    for _ in range(400):
        first = dice.choices(PARTS["normalizer"], k=dice.randrange(4))
        then = [part for part in dice.choices(PARTS["pre_tokenizer"], k=dice.randrange(4)) if "length" not in part]
        text = "".join(dice.choices("aab ., B1", k=dice.randrange(1, 12)))
        row = in_row("normalizer", first), in_row("pre_tokenizer", then)
        made = engine(normalizer=row[0], pre_tokenizer=row[1])
        ready = made_by(made.normalizer.normalize_str, text) or ""
        cut = made_by(made.pre_tokenizer.pre_tokenize_str, ready) or []
        longest = max(len(ready.encode()), sum(len(piece.encode()) for piece, _ in cut))
        assert longest <= length_bounds.bound_of(*row).size(text), (first, then, text)


def test_nothing_decoded_becomes_longer_than_it_is_said_to():
    dice = random.Random(0)
    for _ in range(300):
        row = in_row("decoder", dice.choices(PARTS["decoder"], k=dice.randrange(4)))
        tokens = ["".join(dice.choices("ab# Ġé", k=dice.randrange(1, 6))) for _ in range(5)]
        made = made_by(engine(decoder=row).decoder.decode, tokens) or ""
        assert len(made.encode()) <= sum(map(length_bounds.bound_of(row).size, tokens)), (row, tokens)


def spelling(kind: str, **how: Any) -> tokenizers.Tokenizer:
    """An engine of a model that knows few letters, and all bytes."""
    vocab = {name: at for at, name in enumerate(["<unk>", "a", "##a", "b", *(f"<0x{at:02X}>" for at in range(256))])}
    rows = [[name, -1.0] for name in vocab] if kind == "Unigram" else vocab
    model = {"type": kind, "vocab": rows} | ({"unk_id": 0} if kind == "Unigram" else {"unk_token": "<unk>"})
    pieces = {"max_input_chars_per_word": 9, "continuing_subword_prefix": "##"}
    model |= {"BPE": {"merges": []}, "WordPiece": pieces}.get(kind, {})
    return tokenizers.Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": model | how}))


def test_no_model_makes_more_tokens_than_a_text_is_said_to_have_bytes():
    dice = random.Random(0)
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("WordPiece", {}),
        ("WordLevel", {}),
        ("Unigram", {"byte_fallback": True}),
    ]
    for before, behind, fallback in itertools.product((None, "##", "x" * 32), (None, "</w>", "日" * 9), (True, False)):
        how = {"continuing_subword_prefix": before, "end_of_word_suffix": behind, "byte_fallback": fallback}
        kinds.append(("BPE", how))
    for kind, how in kinds:
        made = spelling(kind, **how)
        for _ in range(20):
            text = "".join(dice.choices("ab xé日\N{GRINNING FACE}", k=dice.randrange(1, 9)))
            assert len(made.encode(text).ids) <= length_bounds.Bound().spelt(made.model).size(text), (how, text)


PUT = [("BPE", name) for name in length_bounds.AFFIXES] + [("WordPiece", length_bounds.AFFIXES[0])]
PUT += [(kind, "unk_token") for kind in ("BPE", "WordPiece", "WordLevel")]


@pytest.mark.parametrize(("kind", "name"), PUT)
def test_what_a_model_puts_to_every_piece_of_a_text_is_short(kind, name, tmp_path):
    made = json.loads(spelling(kind).to_str())
    assert name in made["model"]
    made["model"]["vocab"]["é" * 17] = len(made["model"]["vocab"])
    made["model"][name] = "é" * 17
    (tmp_path / "tokenizer.json").write_text(json.dumps(made))
    with pytest.raises(Refusal, match="its model puts more than 32 bytes to every piece of a text"):
        Tokenizer.read(tmp_path / "tokenizer.json")


def test_a_text_that_could_become_longer_than_memory_is_refused_before_it_is_read(monkeypatch):
    made = Tokenizer(ENGINES["gpt2"])
    monkeypatch.setattr(length_bounds, "LARGEST_TEXT", 100)
    assert made.encode("a" * 49)
    for ask in (made.encode, made.explain, made.cut, made.placed, lambda text: made.join([(text,)])):
        with pytest.raises(
            Refusal, match=r"^a text of 51 characters can become 104 bytes in this tokenizer, .*; cut it"
        ):
            ask("a" * 51)


LIMITED = r"""
import resource, sys
from heedful.errors import Refusal
from heedful.tokenizers import Tokenizer
made = Tokenizer.read(sys.argv[1])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (5 << 29),) * 2)
print(len(made.encode("\N{GRINNING FACE}" * made.room)))
try:
    made.encode("é" * 400_000)
except Refusal:
    print("refused")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is Linux's")
def test_a_foreign_tokenizer_makes_of_no_text_more_than_memory_holds(tmp_path):
    split = {"type": "Split", "pattern": {"Regex": "."}, **CUT}
    parts = {"normalizer": in_row("normalizer", [{"type": "ByteLevel"}] * 7), "pre_tokenizer": split}
    path = tmp_path / "tokenizer.json"
    path.write_text(engine(**parts).to_str())
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == [str(4 * 2**6 * Tokenizer.read(path).room), "refused"], done.stderr[-500:]


def test_long_texts_to_learn_from_are_given_to_a_tokenizer_in_parts_that_it_takes(monkeypatch):
    tokenizer = train(["The cat sat on the mat. "], "bpe", size=280)
    texts = [Text("The cat sat on the mat.\n" * count, "here") for count in (3, 40, 2)]
    whole = [Stream.of([one], tokenizer, 5).ids.tolist() for one in texts]
    monkeypatch.setattr(length_bounds, "LARGEST_TEXT", 1000)
    monkeypatch.setattr(chunks, "NEAR", 20)
    with pytest.raises(Refusal, match="cut it into parts"):
        tokenizer.encode(str(texts[1].text))
    assert [Stream.of([one], tokenizer, 5).ids.tolist() for one in texts] == whole
    assert len(Stream.of(texts, tokenizer, 5).ids) > len(whole[1])


JUNK = [None, -1, 0, 1, 3, 2**31, 2**70, 1.5, 1e308, "", "a", "▁", "\0", "<pad>", "[UNK]", [], {}, [[]], [0], ["a"]]
JUNK += [True, False, {"type": "Fuse"}, "(", "a*", "x" * 5000, "日"]
LINES = ["", "a man é 日本 ﬁ\n\t<pad> [CLS] ", "aaaa  b"]


def places(value: Any, dice: random.Random) -> list[tuple[Any, Any]]:
    """All places in a JSON value, and some of those in its vocabulary."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    found = []
    for key in keys if len(keys) < 40 else dice.sample(keys, 12):
        found += [(value, key), *places(value[key], dice)]
    return found


def damaged(parts: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """A tokenizer.json in which some things are gone, others, moved, doubled, or in a row with a part that is known."""
    for _ in range(dice.choice([1, 1, 2, 3])):
        found = places(parts, dice)
        (value, key), (other, place) = dice.choices(found, k=2)
        way = dice.randrange(6)
        if way == 0:
            del value[key]
        elif way < 3:
            value[key] = copy.deepcopy(dice.choice([*JUNK, other[place]]))
        elif way == 3 and isinstance(value, list):
            value.append(copy.deepcopy(value[key]))
        else:
            name = dice.choice(list(PARTS))
            one = copy.deepcopy(dice.choice(PARTS[name]))
            parts[name] = one if way == 4 else in_row(name, [part for part in (parts.get(name), one) if part])
    return parts


def use(made: Tokenizer) -> None:
    """Everything that is asked of a tokenizer."""
    rows = [*made.encode_all(LINES), list(range(min(len(made), 30)))]
    assert all(0 <= at < len(made) for row in rows for at in row)  # or a model would look up rows that it has not
    assert len({*made.layout.known.values()}) == len(made.layout.known)
    if made.kind in ("bpe", "bpe_characters"):
        Broken(made, LINES, 0.3, seed=1).at(1, 0)
    made.encode("a b c d e", longest=5)
    for row in rows:
        made.decode(row), made.pieces(row), made.words(row), list(made.stream(row))
    for text in LINES:
        made.explain(text), made.cut(text), made.placed(text)
    list(made.by_words(LINES)), made.join([("a b",), ("c",)]), made.join([("a b", "c d")], 9)
    made.kind, made.special, made.layout.unknown, made.with_special(["<x>"])


def test_a_damaged_tokenizer_is_read_or_refused_and_nothing_else(tmp_path):
    good = [json.loads(engine.to_str()) for engine in ENGINES.values()]
    good += [json.loads(tokenizer(kind).layout.text) for kind in ("characters", "words", "unigram")]
    good += [json.loads(Tokenizer(convert(parse(learned("bpe", ["\n", "ab"])))).layout.text)]
    read = 0
    for number in range(60):
        dice = random.Random(number)
        parts = damaged(copy.deepcopy(dice.choice(good)), dice)
        (tmp_path / "tokenizer.json").write_text(json.dumps(parts))
        try:
            made = Tokenizer.read(tmp_path / "tokenizer.json")
            read += 1
            use(made)
        except Refusal:
            continue
    assert 5 < read < 55
