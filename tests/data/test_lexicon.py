"""The lexicon: equal to expectation and maximisation by hand, and right about a language whose links are known."""

import math
import time
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data import ibm_model1 as lexicon_module
from heedful.data.ibm_model1 import lexicon
from heedful.data.toys.invented_language import sentences
from heedful.errors import Refusal

Pairs = list[tuple[list[str], list[str]]]

TINY: Pairs = [
    (source.split(), target.split())
    for source, target in (
        ("the house is small", "klein ist das haus"),
        ("the house is big", "das haus ist ja groß"),
        ("the book is small", "das buch ist ja klein"),
        ("the house", "das haus"),
        ("the book", "das buch"),
        ("a book", "ein buch"),
    )
]
WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5)


def prior(diagonal: float, i: int, j: int, s: int, t: int) -> float:
    """Of source word i (1 to s; 0 is nothing) for target word j (1 to t), as fast_align's paper has it."""
    if not diagonal:
        return 1 / (s + 1)
    near = [math.exp(-diagonal * abs(k / s - j / t)) for k in range(1, s + 1)]
    return 0.92 * near[i - 1] / sum(near) if i else 0.08


def by_hand(pairs: Pairs, rounds: int, diagonal: float) -> dict[tuple[str | None, str], float]:
    """The textbook's loops, word by word."""
    chances: dict[tuple[str | None, str], float] = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts: Counter[tuple[str | None, str]] = Counter()
        for source, target in pairs:
            for j, word in enumerate(target, 1):
                sizes = len(source), len(target)
                parts = [
                    (cause, chances[cause, word] * prior(diagonal, i, j, *sizes))
                    for i, cause in enumerate((None, *source))
                ]
                for cause, part in parts:
                    counts[cause, word] += part / sum(part for _, part in parts)
        totals: Counter[str | None] = Counter()
        for (cause, _), count in counts.items():
            totals[cause] += count
        chances = defaultdict(float, {couple: count / totals[couple[0]] for couple, count in counts.items()})
    return chances


@pytest.mark.parametrize("diagonal", [0.0, 4.0])
@settings(max_examples=30, deadline=None)
@given(pairs=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6), rounds=st.integers(1, 6))
def test_chances_equal_those_by_hand_in_both_directions(pairs: Pairs, rounds: int, diagonal: float) -> None:
    made = lexicon(pairs, rounds, diagonal)
    turned = [(target, source) for source, target in pairs]
    for direction, side in ((made.forward, pairs), (made.backward, turned)):
        for (cause, word), chance in by_hand(side, rounds, diagonal).items():
            assert direction.chance(cause, word) == pytest.approx(chance, abs=1e-10)


def test_chances_are_the_ones_that_nltk_shows_for_its_own_model_1() -> None:
    forward = lexicon(TINY, 5, 0.0).forward
    shown = {("book", "buch"): 0.889, ("book", "das"): 0.062, (None, "buch"): 0.113, (None, "ja"): 0.073}
    assert {couple: round(forward.chance(*couple), 3) for couple in shown} == shown


def test_chances_of_every_word_sum_to_one() -> None:
    forward = lexicon(TINY).forward
    targets = {word for _, target in TINY for word in target}
    for cause in (None, "the", "house", "a"):
        assert sum(forward.chance(cause, word) for word in targets) == pytest.approx(1.0)


def test_what_was_never_seen_has_no_chance_and_no_link() -> None:
    made = lexicon(TINY)
    sources, targets = ({word for pair in TINY for word in pair[side]} for side in range(2))
    assert all(made.forward.chance("dog", word) == 0.0 for word in (*targets, "hund"))
    assert all(made.forward.chance(word, "hund") == 0.0 for word in (None, *sources))
    assert made.forward.chance("a", "haus") == 0.0  # both seen, but never in one pair
    assert made.forward.links(["the", "dog"], ["das", "tier"]) == [(0, 0)]
    assert made.silver([(["the", "dog"], ["das", "tier"]), ([], ["das"]), (["the"], [])]) == [[(0, 0)], [], []]


def test_silver_is_what_both_directions_say_and_hardly_ever_wrong() -> None:
    phrases = sentences(1000, seed=8)
    pairs = [(phrase.source.split(), phrase.target.split()) for phrase in phrases]
    made = lexicon(pairs)
    right = found = 0
    for (source, target), links, phrase in zip(pairs, made.silver(pairs), phrases, strict=True):
        back = {(at, place) for place, at in made.backward.links(target, source)}
        assert set(links) == set(made.forward.links(source, target)) & back
        right, found = right + len(set(links) & set(phrase.links)), found + len(links)
    assert right / found > 0.97


def test_more_rounds_explain_the_pairs_better() -> None:
    fits = [lexicon(TINY, rounds, 0.0).fit for rounds in range(1, 8)]
    assert all(later > earlier for earlier, later in pairwise(fits))


def error_rate(found: list[list[tuple[int, int]]], gold: list[list[tuple[int, int]]]) -> float:
    both = sum(len(set(a) & set(b)) for a, b in zip(found, gold, strict=True))
    return 1 - 2 * both / (sum(map(len, found)) + sum(map(len, gold)))


@pytest.mark.parametrize("diagonal", [None, 0.0, 4.0])
def test_the_links_of_the_invented_language_are_found_again(diagonal: float | None) -> None:
    phrases = sentences(2000, seed=5)
    pairs = [(phrase.source.split(), phrase.target.split()) for phrase in phrases]
    found = lexicon(pairs[500:], diagonal=diagonal).silver(pairs[:500])  # of pairs that it did not learn from
    assert error_rate(found, [phrase.links for phrase in phrases[:500]]) < 0.1


def test_the_diagonal_is_left_alone_where_the_order_is_another() -> None:
    phrases = sentences(1500, seed=6)
    pairs = [(phrase.source.split(), phrase.target.split()[::-1]) for phrase in phrases]
    last = [len(target) - 1 for _, target in pairs]
    gold = [[(s, end - t) for s, t in phrase.links] for phrase, end in zip(phrases, last, strict=True)]
    assert error_rate(lexicon(pairs).silver(pairs), gold) < 0.1
    assert error_rate(lexicon(pairs, diagonal=4.0).silver(pairs), gold) > 0.2


def test_of_the_same_word_twice_the_nearer_is_taken() -> None:
    made = lexicon(TINY, 5, 0.0)
    pair = [*TINY[2][0], *TINY[4][0]], ["das", "buch", "ist", "klein", "das", "buch"]
    found = made.silver([pair])[0]
    assert {(0, 0), (1, 1), (4, 4), (5, 5)} <= set(found)


def test_a_full_stop_that_every_pair_has_is_linked_and_not_left_to_nothing() -> None:
    pairs = [([*source, "."], [*target, "."]) for source, target in TINY]
    assert all(
        (len(s) - 1, len(t) - 1) in found for (s, t), found in zip(pairs, lexicon(pairs).silver(pairs), strict=True)
    )


def test_no_pair_at_all_is_refused() -> None:
    with pytest.raises(Refusal, match="no pair has words on both sides"):
        lexicon([([], ["a"]), (["a"], [])])


def test_of_many_pairs_only_as_many_are_used_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon_module, "PAIRS", 5)
    assert list(lexicon_module._first(TINY)) == TINY[:5]
    monkeypatch.setattr(lexicon_module, "COUPLES", 40)
    long = (["the"] * 9, ["das"] * 9)
    assert list(lexicon_module._first([long, *TINY])) == [TINY[0], TINY[3]]  # 25 and 9; 30 more do not fit


def test_a_large_set_takes_seconds() -> None:
    pairs = [(p.source.split(), p.target.split()) for p in sentences(10_000, seed=7)]
    start = time.process_time()
    lexicon(pairs)
    assert time.process_time() - start < 8  # 1.0 s when measured
