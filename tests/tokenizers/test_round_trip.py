"""Text goes in and comes back: all of it for the byte-level kinds, all that is known for the others."""

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.errors import Refusal
from heedful.tokenizers import KINDS, SPECIAL, Tokenizer, train
from tests.tokenizers.corpus import SIGNS, SPLIT, TEXTS, WHOLE, anything, every, tokenised, tokenizer

UNKNOWN = SPECIAL.index("<unknown>")


@settings(max_examples=300, deadline=None)
@given(text=anything)
@example("<pad><begin><end><unknown>")
@example(" leading, trailing ")
@example("▁ # ##a <0x41> \x00 \ufeff \u2028\r\n")
@example("x" * 350)
def test_any_text_comes_back_unchanged_from_byte_level_kinds(text):
    for kind in WHOLE:
        made = tokenizer(kind)
        ids = made.encode(text)
        assert made.decode(ids) == text
        assert min(ids, default=9) > UNKNOWN


@settings(max_examples=100, deadline=None)
@given(text=anything)
def test_every_way_to_split_gives_the_text_back(text):
    for digits in ("joined", "apart", "single"):
        made = tokenizer("bpe", digits=digits, punctuation={"joined": "single"}.get(digits, "joined"))
        assert made.decode(made.encode(text)) == text


@settings(max_examples=200, deadline=None)
@given(text=tokenised)
@example(SIGNS[0])
@example(SIGNS[3])
@example("##")
@example("a ##b")
def test_tokenised_text_of_seen_characters_comes_back_unchanged(text):
    for kind in SPLIT:
        made = tokenizer(kind)
        assert made.decode(made.encode(text)) == text, kind
        assert UNKNOWN not in made.encode(text)


def test_signs_that_look_like_those_of_pieces_come_back_unchanged():
    made = train(["a##b c##d ##"] * 50, "wordpiece", 100)
    for text in ("a##b", "##b", "a ##", "# ## ### a####"):
        assert made.decode(made.encode(text)) == text


@settings(max_examples=200, deadline=None)
@given(text=anything)
def test_text_never_becomes_a_control_token(text):
    for made in every():
        assert all(at >= UNKNOWN for at in made.encode(text)), made.kind


def test_what_was_not_seen_becomes_the_unknown_token():
    for kind in ("characters", "words", "wordpiece", "unigram"):
        made = tokenizer(kind)
        assert made.encode("日").count(UNKNOWN) == 1
        assert "日" not in made.decode(made.encode("a 日 a"))


@pytest.mark.parametrize("kind", KINDS)
def test_many_texts_are_encoded_as_each_alone_and_as_the_engine_does(kind, tmp_path):
    made, texts = tokenizer(kind), [*TEXTS[:200], "", " ", "日本 <User:> x"]
    made.write(tmp_path / "tokenizer.json")
    alone = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert made.encode_all(texts) == [made.encode(text) for text in texts]
    assert made.encode_all(texts) == [one.ids for one in alone.encode_batch(texts)]
    assert made.decode_all(made.encode_all(texts)) == alone.decode_batch(made.encode_all(texts))


@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_any_size_give_the_same(kind, monkeypatch):
    whole = tokenizer(kind).encode_all(TEXTS[:50])
    monkeypatch.setattr("heedful.tokenizers.batches.AT_ONCE", 100)
    assert tokenizer(kind).encode_all(TEXTS[:50]) == whole


def test_texts_are_cut_at_the_longest():
    made = tokenizer("bpe")
    ids = made.encode(TEXTS[0])
    assert made.encode(TEXTS[0], longest=5) == ids[:5]
    assert made.encode_all([TEXTS[0], ""], longest=5) == [ids[:5], []]


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_stand_for_themselves_and_are_left_out_of_text(kind):
    made = tokenizer(kind)
    assert [made.special[name] for name in ("<User:>", "<Assistant:>")] == [4, 5]
    ids = made.encode("<User:> a <Assistant:>a")
    assert ids.count(4) == 1 and ids[0] == 4 and ids.count(5) == 1
    assert made.pieces([4, 5]) == ["<User:>", "<Assistant:>"]
    assert set(made.decode(ids)) <= {"a", " "}


@settings(max_examples=200, deadline=None)
@given(text=anything, start=st.integers(0, 20), end=st.integers(1, 40))
@example("日本日", 0, 8)
def test_a_stream_joins_to_the_whole_in_whole_characters(text, start, end):
    for made in every():
        ids = made.encode(text)[start:end]  # so that it may begin and end within a character
        said = list(made.stream(iter(ids)))
        assert "".join(said) == made.decode(ids)
        assert all(said)


def test_ids_that_are_none_are_refused():
    made = tokenizer("bpe")
    for wrong in (-1, len(made)):
        for ask in (made.decode, made.pieces, made.words, lambda ids: made.decode_all([ids])):
            with pytest.raises(Refusal, match=f"^{wrong} is no id of this tokenizer, which has {len(made)}"):
                ask([5, wrong])


def test_half_characters_are_refused():
    for ask in (
        tokenizer("bpe").encode,
        tokenizer("bpe").explain,
        lambda text: tokenizer("unigram").encode_all(["a", text]),
    ):
        with pytest.raises(Refusal, match="half characters"):
            ask("a\ud800")


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_is_the_same_when_written_and_read(kind, tmp_path):
    made = tokenizer(kind)
    made.write(tmp_path / "a.json")
    again = Tokenizer.read(tmp_path / "a.json")
    again.write(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert (again.kind, len(again), again.special) == (kind, len(made), made.special)
    assert again.encode_all(TEXTS) == made.encode_all(TEXTS)
