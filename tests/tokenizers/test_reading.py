"""Tokenizers of others are read and used as their engine uses them; what is none is refused in one line."""

import json
import random
import re

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import Refusal
from heedful.tokenizers import KINDS, Tokenizer
from tests.tokenizers.corpus import TEXTS, anything, tokenizer
from tests.tokenizers.foreign import ENGINES, FOREIGN

OF_KIND = {
    "gpt2": "bpe",
    "llama3": "bpe",
    "gpt": "bpe_characters",
    "marked": "bpe_characters",
    "bert": "wordpiece",
    "t5": "unigram",
    "level": "words",
}


def whole(name: str) -> tokenizers.Tokenizer:
    """The engine itself, with nothing cut off or filled up."""
    engine = tokenizers.Tokenizer.from_str(ENGINES[name].to_str())
    engine.no_truncation()
    engine.no_padding()
    return engine


@pytest.mark.parametrize("name", ENGINES)
def test_a_foreign_tokenizer_gives_what_its_engine_gives(name, tmp_path):
    ENGINES[name].save(str(tmp_path / "tokenizer.json"))
    made, engine = Tokenizer.read(tmp_path / "tokenizer.json"), whole(name)
    texts = [*TEXTS[:300], "", "<|endoftext|> a </s> [CLS] @-@ 日本", "A\nb"]
    assert made.encode_all(texts) == [one.ids for one in engine.encode_batch(texts)]
    assert made.decode_all(made.encode_all(texts)) == engine.decode_batch(made.encode_all(texts))
    assert made.kind == OF_KIND[name]
    assert len(made) == engine.get_vocab_size()
    made.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "tokenizer.json").read_bytes()


@settings(max_examples=100, deadline=None)
@given(text=anything, longest=st.integers(2, 12))
def test_a_foreign_tokenizer_keeps_what_it_adds_when_a_text_is_cut(text, longest):
    for name, made in FOREIGN.items():
        engine = whole(name)
        engine.enable_truncation(longest)
        assert made.encode(text, longest) == engine.encode(text).ids
        assert made.encode(text) == whole(name).encode(text).ids


def test_a_text_cannot_be_shorter_than_what_is_added():
    with pytest.raises(Refusal, match="longest=1 is less than the 2 tokens that this tokenizer adds to a text"):
        FOREIGN["bert"].encode("a", longest=1)


def test_special_tokens_of_others_are_left_out_of_text():
    made = FOREIGN["bert"]
    assert made.special == {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
    assert made.decode(made.encode("a e")) == "a e"
    assert made.words(made.encode("a e"))[1] == [-1, 0, 1, -1]
    assert made.pieces(made.encode("a e")) == ["[CLS]", "a", "e", "[SEP]"]
    assert FOREIGN["t5"].pieces(FOREIGN["t5"].encode("a @-@")) == [" a", " ", "@-@", "</s>"]
    assert FOREIGN["gpt"].pieces(FOREIGN["gpt"].encode("a")) == ["a "]


def test_merges_are_not_left_out_by_chance_where_a_file_says_so(tmp_path):
    parts = json.loads(tokenizer("bpe").layout.text)
    parts["model"]["dropout"] = 0.9
    (tmp_path / "a.json").write_text(json.dumps(parts))
    assert Tokenizer.read(tmp_path / "a.json").encode_all(TEXTS) == tokenizer("bpe").encode_all(TEXTS)


def test_tokenizers_without_special_tokens_in_the_list_of_added_ones_know_their_four(tmp_path):
    parts = json.loads(tokenizer("characters").layout.text)
    parts["added_tokens"] = []
    (tmp_path / "a.json").write_text(json.dumps(parts))
    made = Tokenizer.read(tmp_path / "a.json")
    assert made.decode([1, *made.encode("a"), 2, 0]) == "a"


WHOLE = tokenizer("bpe").layout.text
BAD = {
    "empty": b"",
    "blank": b" \n",
    "braces": b"{}",
    "a list": b"[]",
    "a number": b"1",
    "text": b"hello",
    "cut short": WHOLE[: len(WHOLE) // 2].encode(),
    "cut at the end": WHOLE[:-2].encode(),
    "deep": b"[" * 100_000,
    "deep braces": b'{"a":' * 100_000,
    "latin": '{"a": "ü"}'.encode("latin-1"),
    "half a character": b'{"version": "1.0", "model": {"type": "WordLevel", "vocab": {"\\ud800": 0}}}',
    "no model": json.dumps(json.loads(WHOLE) | {"model": None}).encode(),
    "another model": json.dumps(json.loads(WHOLE) | {"model": {"type": "Neural"}}).encode(),
    "a merge of nothing": WHOLE.replace('"merges": [', '"merges": [["never", "seen"],', 1).encode(),
    "no unknown": b'{"version":"1.0","added_tokens":[],"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"b"}}',
    "a broken map": b'{"version":"1.0","normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"},"model":{}}',
    "a map of numbers": b'{"version":"1.0","normalizer":{"type":"Precompiled","precompiled_charsmap":7},"model":{}}',
}


@pytest.mark.parametrize("wrong", BAD)
def test_a_file_that_is_no_tokenizer_is_refused_in_one_line(wrong, tmp_path, capfd):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(BAD[wrong])
    with pytest.raises(Refusal, match=rf"^{re.escape(str(path))} is no tokenizer: \S") as refused:
        Tokenizer.read(path)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_not_there_a_folder_and_one_too_large_are_refused(tmp_path, monkeypatch):
    with pytest.raises(Refusal, match=r"none is no tokenizer: No such file or directory$"):
        Tokenizer.read(tmp_path / "none")
    with pytest.raises(Refusal, match=r"is a folder; name the tokenizer.json in it$"):
        Tokenizer.read(tmp_path)
    monkeypatch.setattr("heedful.tokenizers.read_tokenizer.LARGEST", 1 << 20)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing
    with pytest.raises(Refusal, match=r"large is no tokenizer: it is larger than 1 MB$"):
        Tokenizer.read(tmp_path / "large")


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_read_or_refused(kind, tmp_path):
    dice, text = random.Random(0), tokenizer(kind).layout.text.encode()
    for _ in range(40):
        data = bytearray(text)
        for _ in range(3):
            data[dice.randrange(len(data))] = dice.randrange(32, 127)
        (tmp_path / "a.json").write_bytes(data)
        try:
            made = Tokenizer.read(tmp_path / "a.json")
        except Refusal:
            continue
        made.words(made.encode("a man é 日本"))
        made.explain("a man")
