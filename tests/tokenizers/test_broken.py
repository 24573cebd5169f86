"""Words broken at random: the text stays the same, and chance is that of BPE-dropout."""

import random
from collections import Counter
from itertools import chain, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import Refusal
from heedful.tokenizers import Broken, Tokenizer, bpe_dropout
from heedful.tokenizers.merges import Merges
from tests.tokenizers.corpus import TEXTS, WHOLE, anything, tokenizer
from tests.tokenizers.foreign import FOREIGN

SOME = [*TEXTS[-60:], "", " ", "日本 <User:> é", "<pad> \t a  b"]


@pytest.mark.parametrize("kind", WHOLE)
def test_nothing_is_broken_where_no_merge_is_left_out(kind):
    made = tokenizer(kind)
    whole = Broken(made, TEXTS, 0.0, seed=1)
    assert [whole.at(index, 0) for index in range(len(whole))] == made.encode_all(TEXTS)


def test_nothing_is_broken_that_is_no_sum_of_merges():
    made = FOREIGN["llama3"]
    assert [Broken(made, SOME, 0.0, 1).at(index, 0) for index in range(len(SOME))] == made.encode_all(SOME)
    torn = Broken(made, SOME, 0.3, 1)
    assert [made.decode(torn.at(index, 0)) for index in range(len(SOME))] == made.decode_all(made.encode_all(SOME))


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_broken_texts_say_the_same(kind, share):
    made = tokenizer(kind)
    torn = Broken(made, SOME, share, seed=1)
    for epoch in range(3):
        ids = [torn.at(index, epoch) for index in range(len(SOME))]
        assert made.decode_all(ids) == made.decode_all(made.encode_all(SOME))
        assert sum(map(len, ids)) > sum(map(len, made.encode_all(SOME)))


def test_with_every_merge_left_out_only_letters_remain():
    made = tokenizer("bpe_characters")
    torn = Broken(made, TEXTS[:20], 1.0, seed=1)
    for index, text in enumerate(TEXTS[:20]):
        assert made.pieces(torn.at(index, 0)) == list(f" {text}")


def test_a_text_is_the_same_by_seed_epoch_and_index_and_another_by_others():
    made = tokenizer("bpe")
    one, same, other = (Broken(made, TEXTS[-99:], 0.2, seed) for seed in (1, 1, 2))
    order = random.Random(0).sample(range(99), 50)
    first = {(index, epoch): one.at(index, epoch) for index in order for epoch in (0, 1)}
    again = {(index, epoch): same.at(index, epoch) for epoch in (1, 0) for index in reversed(order)}
    assert first == again
    assert sum(first[index, 0] == first[index, 1] for index in order) < 5
    assert sum(first[index, 0] == other.at(index, 0) for index in order) < 5


def test_equal_texts_are_broken_apart_from_each_other():
    torn = Broken(tokenizer("bpe"), ["Straßenfest people kosten"] * 40, 0.3, seed=1)
    assert len({tuple(torn.at(index, 0)) for index in range(40)}) > 10


def drawn_once(letters: tuple[int, ...], into: dict, share: float, dice: random.Random) -> tuple[int, ...]:
    """A word by the paper's own words: at each step each merge that can be done is left out with some probability."""
    ids = list(letters)
    while True:
        pairs = [(into[pair][0], at) for at, pair in enumerate(pairwise(ids)) if pair in into]
        pairs = [pair for pair in pairs if dice.random() >= share]
        if not pairs:
            return tuple(ids)
        _, at = min(pairs)
        ids[at : at + 2] = [into[ids[at], ids[at + 1]][1]]


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_chance_is_that_of_the_paper(share, monkeypatch):
    monkeypatch.setattr(bpe_dropout, "WAYS", 3000)
    made, dice = tokenizer("bpe"), random.Random(1)
    merges = Merges(made.layout)
    words = [word for (word,) in made.by_words(["people", "Straßenfest", "kosten", "quoted"])]
    for word, ways in zip(words, bpe_dropout.ways(bpe_dropout.Table(merges), words, share, 1), strict=True):
        letters = tuple(chain.from_iterable(map(merges.letters, word)))
        theirs = Counter(drawn_once(letters, merges.into, share, dice) for _ in range(3000))
        ours = Counter(ways)
        assert len(ours) > 3
        for ids in ours | theirs:
            assert ours[ids] == pytest.approx(theirs[ids], rel=0.1, abs=100), made.pieces(ids)


def test_every_way_is_drawn_alike():
    made = tokenizer("bpe")
    torn = Broken(made, ["Straßenfest"], 0.5, seed=3)
    [[word]] = made.by_words(["Straßenfest"])
    [ways] = bpe_dropout.ways(bpe_dropout.Table(Merges(made.layout)), [word], 0.5, 3)
    drawn = Counter(tuple(torn.at(0, epoch)) for epoch in range(4000))
    assert drawn.keys() == set(ways)
    for ids, count in Counter(ways).items():
        assert drawn[ids] == pytest.approx(4000 * count / 32, rel=0.4)


def test_many_texts_and_their_lengths_are_those_of_each_alone():
    torn = Broken(tokenizer("bpe"), SOME, 0.3, seed=1)
    for epoch in (0, 5):
        alone = [torn.at(index, epoch) for index in range(len(SOME))]
        assert [ids.tolist() for ids in torn.many(range(len(SOME)), epoch)] == alone
        assert [ids.tolist() for ids in torn.many([7, 0, 7], epoch)] == [alone[7], alone[0], alone[7]]
        assert torn.lengths(epoch).tolist() == [len(ids) for ids in alone]


@settings(max_examples=60, deadline=None)
@given(text=anything, share=st.floats(0, 1))
def test_any_text_can_be_broken(text, share):
    made = tokenizer("bpe")
    assert made.decode(Broken(made, [text], share, seed=0).at(0, 7)) == made.decode(made.encode(text))


@settings(max_examples=60, deadline=None)
@given(text=anything)
def test_many_words_are_merged_as_each_alone(text):
    made = tokenizer("bpe_characters")
    table = bpe_dropout.Table(Merges(made.layout))
    words = list(next(made.by_words([text])))
    for places, letters in bpe_dropout.alike(table, words):
        rows = dict(bpe_dropout.merge_rows(table, letters, 0.0, None))
        assert [rows[at] for at in range(len(places))] == [words[place] for place in places]


def test_what_cannot_be_broken_is_refused():
    for kind in ("characters", "words", "wordpiece", "unigram"):
        with pytest.raises(Refusal, match=f"a tokenizer of {kind} has no merges to leave out; use one of bpe"):
            Broken(tokenizer(kind), ["a"], 0.1, seed=1)
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(Refusal, match="cannot be left out; give a number from 0 to 1"):
            Broken(tokenizer("bpe"), ["a"], share, seed=1)


def test_a_written_tokenizer_breaks_alike(tmp_path):
    tokenizer("bpe").write(tmp_path / "a.json")
    one, two = (Broken(made, SOME, 0.3, 5) for made in (tokenizer("bpe"), Tokenizer.read(tmp_path / "a.json")))
    assert [one.at(index, 2) for index in range(len(SOME))] == [two.at(index, 2) for index in range(len(SOME))]
