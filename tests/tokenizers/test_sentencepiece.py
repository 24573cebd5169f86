"""SentencePiece models give the ids that SentencePiece gives, whatever the text; pieces trained here are its own."""

import io
import json
import struct
import unicodedata
from collections import Counter
from functools import cache

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.errors import Refusal
from heedful.tokenizers import Tokenizer, train
from heedful.tokenizers.from_sentencepiece import convert
from heedful.tokenizers.sentencepiece.charsmap import sound, varint
from heedful.tokenizers.sentencepiece.proto import Type, parse
from heedful.tokenizers.training.unigram import rows
from tests.tokenizers.corpus import SEEN, TEXTS, anything

MODELS = {
    "unigram": ("unigram", {}),
    "bpe": ("bpe", {}),
    "unigram with bytes": ("unigram", {"byte_fallback": True}),
    "bpe with bytes": ("bpe", {"byte_fallback": True}),
    "unigram, text as it is": ("unigram", {"normalization_rule_name": "identity", "byte_fallback": True}),
    "bpe, blanks as they are": ("bpe", {"remove_extra_whitespaces": False, "byte_fallback": True}),
    "unigram without a blank before": ("unigram", {"add_dummy_prefix": False}),
    "unigram, small letters": ("unigram", {"normalization_rule_name": "nmt_nfkc_cf"}),
    "unigram with symbols": ("unigram", {"user_defined_symbols": "<User:>,@-@"}),
    "bpe with symbols": ("bpe", {"user_defined_symbols": "<User:>,@-@"}),
    "bpe across words": ("bpe", {"split_by_whitespace": False}),
    "unigram of blanks": ("unigram", {"allow_whitespace_only_pieces": True, "remove_extra_whitespaces": False}),
    "characters": ("char", {}),
}
marked = st.lists(
    st.sampled_from([*"aeoAﬁÅ½ ", *"\u0301\u0302\u0323\u0308\u0327", "ｶ", "ﾞ", "\u1100", "\u1161", "\r\n"])
).map("".join)
literal = st.lists(st.sampled_from(["<s>", "</s>", "<unk>", "<0x41>", "<User:>", "@-@", "▁", *SEEN[:40], " "])).map(
    "".join
)


@cache
def model(name: str) -> bytes:
    """A model, trained by SentencePiece itself."""
    kind, how = MODELS[name]
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS[-300:]),
        model_writer=made,
        model_type=kind,
        vocab_size=600,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **how,
    )
    return made.getvalue()


@pytest.fixture(scope="module", params=list(MODELS))
def pair(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "a.model"
    path.write_bytes(model(request.param))
    return sentencepiece.SentencePieceProcessor(model_proto=model(request.param)), Tokenizer.read(path)


def test_text_of_the_language_becomes_the_same_ids(pair):
    theirs, ours = pair
    assert ours.encode_all(TEXTS) == theirs.encode(TEXTS)
    assert len(ours) == len(theirs)


@settings(max_examples=150, deadline=None)
@given(text=anything | marked | literal)
@example("")
@example("   ")
@example("ﬁ\u0301 e\u0323\u0302 a\r\nb ▁ \u3000x")
@example("<s>a</s><unk><0x41>")
def test_any_text_becomes_the_same_ids(pair, text):
    theirs, ours = pair
    expected, made = theirs.encode(text), ours.encode(text)
    if made != expected and ours.kind == "unigram":  # two ways of the same score: there it heeds its rounding
        assert sorted(made) == sorted(expected)
        assert theirs.decode(made) == theirs.decode(expected)
    else:
        assert made == expected


def test_decomposed_text_becomes_the_same_ids(pair):
    theirs, ours = pair
    for text in ("Việt Nam là một nước", "Ἐν ἀρχῇ ἦν ὁ λόγος", "한국어는", "ガギグ パピプ", "Äpfel Öl"):
        assert ours.encode(unicodedata.normalize("NFD", text)) == theirs.encode(unicodedata.normalize("NFD", text))


def test_known_text_is_decoded_alike(pair):
    theirs, ours = pair
    ids = [row for row in theirs.encode(TEXTS[:300]) if theirs.unk_id() not in row]
    assert len(ids) > 100
    assert ours.decode_all(ids) == theirs.decode(ids)


def test_a_converted_model_is_the_same_when_written_and_read(pair, tmp_path):
    theirs, ours = pair
    ours.write(tmp_path / "a.json")
    again = Tokenizer.read(tmp_path / "a.json")
    again.write(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    texts = [*TEXTS[:100], "<s>ﬁ\u0301</s>", "日本 <unk> <User:>"]
    assert again.encode_all(texts) == theirs.encode(texts)
    assert (again.kind, again.special) == (ours.kind, ours.special)


def test_the_engine_reads_the_very_scores_that_are_written():
    for made in (opened("unigram"), train(TEXTS, "unigram", 500)):
        written, read = (json.loads(text)["model"]["vocab"] for text in (made.layout.text, made.engine.to_str()))
        assert [score for _, score in written] == [score for _, score in read]


def test_control_tokens_are_no_text():
    ours, theirs = opened("unigram"), sentencepiece.SentencePieceProcessor(model_proto=model("unigram"))
    assert ours.special == {"<unk>": 0, "<s>": 1, "</s>": 2}
    ids = theirs.encode("a e")
    assert ours.decode([1, *ids, 2]) == "a e"
    assert ours.pieces([1, *ids]) == ["<s>", *(piece.replace("▁", " ") for piece in theirs.id_to_piece(ids))]


def opened(name):
    return Tokenizer(convert(parse(model(name))))


def test_a_file_says_what_sentencepiece_says_of_it():
    for name in MODELS:
        data = model(name)
        theirs, ours = sentencepiece.SentencePieceProcessor(model_proto=data), parse(data)
        assert [piece.text for piece in ours.pieces] == [theirs.id_to_piece(at) for at in range(len(theirs))], name
        assert [piece.score for piece in ours.pieces] == [theirs.get_score(at) for at in range(len(theirs))]
        for kind, ask in (
            (Type.CONTROL, theirs.is_control),
            (Type.BYTE, theirs.is_byte),
            (Type.UNKNOWN, theirs.is_unknown),
        ):
            assert [piece.type == kind for piece in ours.pieces] == [ask(at) for at in range(len(theirs))]


def test_unigram_pieces_are_those_that_sentencepiece_learns_from_the_same_words():
    made = io.BytesIO()
    words = Counter(word for text in TEXTS for word in text.split(" "))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(rows(dict(sorted(words.items(), key=lambda item: (-item[1], f" {item[0]}"))), 1.0)),
        model_writer=made,
        vocab_size=800,
        character_coverage=1.0,
        normalization_rule_name="identity",
        split_by_unicode_script=False,
        split_by_number=False,
        pad_id=3,
        num_threads=4,
        minloglevel=2,
    )
    theirs = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    ours = train(TEXTS, "unigram", 800, digits="joined", punctuation="joined")
    assert ours.pieces(range(4, 800)) == [theirs.id_to_piece(at).replace("▁", " ") for at in range(4, 800)]
    for text in TEXTS:
        pieces = theirs.encode(text, out_type=str)
        assert sorted(ours.pieces(ours.encode(text))) == sorted(piece.replace("▁", " ") for piece in pieces)


def rebuilt(*pieces: tuple[str, float, int], trainer: bytes = b"", rules: bytes = b"") -> bytes:
    """A model as a protocol buffer, of pieces, scores and types."""

    def field(number: int, data: bytes) -> bytes:
        return varint(number << 3 | 2) + varint(len(data)) + data

    rows = [
        field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18" + varint(kind)
        for text, score, kind in pieces
    ]
    return b"".join(field(1, row) for row in rows) + field(2, trainer) + field(3, rules)


UNK = ("<unk>", 0.0, 2)


def test_scores_decide_which_pieces_merge_first_wherever_they_stand():
    letters = [(sign, -9.0, 1) for sign in "▁abc"]
    data = rebuilt(UNK, *letters, ("ab", -2.0, 1), ("bc", -1.0, 1), trainer=b"\x18\x02")
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = Tokenizer(convert(parse(data)))
    assert theirs.encode("abc", out_type=str) == ["▁", "a", "bc"]
    assert ours.encode("abc") == theirs.encode("abc")


def test_pieces_that_are_not_used_are_never_given():
    rows_of = [UNK, *((sign, -3.0, 1) for sign in "▁ab"), ("ab", -1.0, 5), ("▁a", -2.0, 1)]
    theirs = sentencepiece.SentencePieceProcessor(model_proto=rebuilt(*rows_of))
    ours = Tokenizer(convert(parse(rebuilt(*rows_of))))
    assert ours.encode("ab ab") == theirs.encode("ab ab")
    assert 4 not in ours.encode("ab ab")


BAD = {
    "empty": b"",
    "no pieces": rebuilt(),
    "no unknown": rebuilt(("a", 0.0, 1)),
    "two unknown": rebuilt(UNK, ("<unk2>", 0.0, 2)),
    "twice": rebuilt(UNK, ("a", 0.0, 1), ("a", 0.0, 1)),
    "nothing": rebuilt(UNK, ("", 0.0, 1)),
    "not a number": rebuilt(UNK, ("a", float("nan"), 1)),
    "endless": rebuilt(UNK, ("a" * 5000, 0.0, 1)),
    "whole words": rebuilt(UNK, ("a", 0.0, 1), trainer=b"\x18\x03"),
    "blanks behind": rebuilt(UNK, ("a", 0.0, 1), trainer=b"\xc0\x01\x01"),
    "bytes, and none there": rebuilt(UNK, ("a", 0.0, 1), trainer=b"\x98\x02\x01"),
    "a map cut short": rebuilt(UNK, ("a", 0.0, 1), rules=b"\x12\x05\x00\x04\x00\x00\x00"),
    "latin": b"\xff\xfe\xfd",
    "text": b"hello world",
    "cut short": rebuilt(UNK, ("abcdefgh", 0.0, 1))[:-9],
    "cut within a number": b"\x0a",
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_model_is_refused_in_one_line(name, tmp_path, capfd):
    (tmp_path / "a.model").write_bytes(BAD[name])
    with pytest.raises(Refusal, match=r"a.model is no tokenizer: \S") as refused:
        Tokenizer.read(tmp_path / "a.model")
    assert "\n" not in str(refused.value)
    assert capfd.readouterr() == ("", "")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_model_is_read_or_refused(data, tmp_path_factory):
    whole = bytearray(model("unigram with bytes"))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.model"
    path.write_bytes(whole[: data.draw(st.sampled_from([len(whole), len(whole) // 2]))])
    try:
        ours = Tokenizer.read(path)
    except Refusal:
        return
    ours.decode(ours.encode("A man é ﬁ ½ 日本 <s>"))


def test_a_map_whose_trie_leads_out_of_it_is_refused():
    whole = parse(model("unigram")).charsmap
    assert sound(whole) == whole
    for unit in (0x7FFFFC00, 0xFFFFFFFF):  # a step far away, a text beyond the end
        with pytest.raises(ValueError, match="damaged"):
            sound(whole[:4] + struct.pack("<I", unit) + whole[8:])
