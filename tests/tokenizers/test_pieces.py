"""What people see of tokens: pieces, the words they belong to, and how they arose."""

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import models

from heedful.tokenizers import Broken, Tokenizer, train
from tests.tokenizers.corpus import SPLIT, TEXTS, WHOLE, anything, every, tokenised, tokenizer
from tests.tokenizers.foreign import FOREIGN


@settings(max_examples=150, deadline=None)
@given(text=tokenised)
def test_pieces_join_to_the_text_with_its_blanks(text):
    for kind in SPLIT:
        made = tokenizer(kind)
        pieces = made.pieces(made.encode(text))
        if kind in WHOLE and not text.isascii():
            continue  # a character may be in several pieces
        assert "".join(piece.removeprefix("##") for piece in pieces) == f" {text}"


def test_bytes_that_are_no_whole_character_are_named():
    made = train(["ab"] * 9, "bpe", 300)
    assert made.pieces(made.encode("bé\n")) == [" ", "b", "<0xC3>", "<0xA9>", "\n"]
    both = train(["ab"] * 9, "bpe_characters", 300)
    assert both.pieces(both.encode("béZ")) == [" ", "b", "<0xC3>", "<0xA9>", "Z"]
    half = train(["日本 日本 日月"] * 9, "bpe", 400)
    assert half.pieces(half.encode("日木 ÿ")) == [" 日<0xE6><0x9C>", "<0xA8>", " ", "<0xC3>", "<0xBF>"]


def brute_words(made: Tokenizer, ids: list[int]) -> list[int]:
    """The word of each id by what it adds to the text: the word that is going on, or else the next."""
    silent, last = set(made.special.values()), len(made.decode(ids).split()) - 1
    places = []
    for at, one in enumerate(ids):
        before, after = made.decode(ids[:at]), made.decode(ids[: at + 1])
        goes_on = before[-1:].strip() and not after[len(before) :][:1].isspace()
        places.append(-1 if one in silent else min(len(before.split()) - bool(goes_on), last))
    return places


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet="abn 1.,\t", max_size=40))
@example("  a  b ")
@example(" ")
def test_every_token_belongs_to_the_word_it_adds_to(text):
    for made in every():
        ids = [1, *made.encode(text), 2]
        words, places = made.words(ids)
        assert words == made.decode(ids).split()
        assert places == brute_words(made, ids), made.kind


@settings(max_examples=100, deadline=None)
@given(text=anything)
def test_words_are_those_of_the_text_and_places_never_go_back(text):
    for made in (*every(), *FOREIGN.values()):
        ids = made.encode(text)
        words, places = made.words(ids)
        assert words == made.decode(ids).split()
        heard = [place for place, at in zip(places, ids, strict=True) if at not in made.special.values()]
        assert heard == sorted(heard)
        assert all(-1 <= place < len(words) for place in places)
        if made.kind != "words" and words and "�" not in made.decode(ids):
            assert set(heard) == set(range(len(words)))


def test_a_blank_belongs_to_the_word_behind_it_and_a_special_token_to_none():
    made = tokenizer("characters")
    assert made.words([1, *made.encode("a bc"), 2]) == (["a", "bc"], [-1, 0, 1, 1, 1, -1])
    assert made.words([]) == ([], [])
    assert made.words([0, 1]) == ([], [-1, -1])
    single = train(["in 1984"] * 9, "bpe", 300, digits="single")
    assert single.words(single.encode("in 19")) == (["in", "19"], [0, 1, 1, 1])


@settings(max_examples=100, deadline=None)
@given(text=anything)
def test_an_explanation_ends_in_what_the_engine_gives(text):
    for made in (*every(), *FOREIGN.values()):
        told = made.explain(text)
        assert told.ids == made.encode(text)
        assert told.pieces == made.pieces(told.ids)
        if "bpe" not in made.kind:
            assert told.words == []
            continue
        last = [piece for word in told.words for piece in (word.merges[-1].pieces if word.merges else word.letters)]
        assert last == told.pieces
        for word in told.words:
            before = list(word.letters)
            for merge in word.merges:  # each step is one merge of two neighbours
                after = list(merge.pieces)
                at = next(
                    at for at in range(len(before)) if [*before[:at], *after[at : at + 1], *before[at + 2 :]] == after
                )
                assert before[at : at + 2] == [merge.left, merge.right]
                before = after


def whole_words() -> Tokenizer:
    """A tokenizer that finds words whole which no merges lead to."""
    vocab = {sign: at for at, sign in enumerate(["a", "b", "c", "ab", "abc"])}
    return Tokenizer(tokenizers.Tokenizer(models.BPE(vocab, [("a", "b")], ignore_merges=True)))


def test_a_word_that_is_found_whole_has_no_merges():
    [word] = whole_words().explain("abc").words
    assert (word.letters, word.merges) == (("abc",), ())
    assert Broken(whole_words(), ["abc"], 0.9, seed=1).at(0, 0) == [4]


def test_an_explanation_begins_with_letters():
    made = tokenizer("bpe_characters")
    for text in TEXTS[:50]:
        assert [letter for word in made.explain(text).words for letter in word.letters] == list(f" {text}")
    for name, mark in (("gpt", ""), ("marked", "@@")):
        told = FOREIGN[name].explain("kosten")
        assert [letter.strip() for letter in told.words[0].letters] == ["k", *(mark + sign for sign in "osten")]
        assert told.words[0].merges


def test_an_explanation_gives_every_merge_that_was_learnt_by_its_rank():
    made = tokenizer("bpe_characters")
    merges = made.layout.model["merges"]
    seen = set()
    for text in TEXTS[:50]:
        for word in made.explain(text).words:
            assert len(word.letters) == len(word.merges) + len(word.merges[-1].pieces if word.merges else word.letters)
            for merge in word.merges:
                assert merges[merge.rank] == [merge.left, merge.right]
                seen.add(merge.rank)
    assert len(seen) > 100


def test_an_explanation_reads_well():
    made = train(["low lower lowest"] * 9, "bpe", 263)
    assert "\n".join(made.explain("lower").lines()) == LOWER


LOWER = """\
     262  ␣low
     105  e
     118  r

          ␣|l|o|w|e|r
       1  ␣l|o|w|e|r    ␣ + l
       2  ␣l|ow|e|r    o + w
       3  ␣low|e|r    ␣l + ow"""


@pytest.mark.parametrize("kind", WHOLE)
def test_a_byte_or_a_special_token_is_not_taken_apart(kind):
    told = tokenizer(kind).explain("a <User:> é")
    assert [word.letters for word in told.words].count(("<User:>",)) == 1
