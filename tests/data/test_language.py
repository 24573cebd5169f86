"""The invented language: the same each time, no caption twice, one right translation, and links that tell the truth."""

import re
from collections import defaultdict

import pytest

from heedful.data.toys import invented_language
from heedful.data.toys.invented_language import LEMMAS, Phrase, root, sentences
from heedful.errors import Refusal

MANY = [phrase for seed in range(4) for phrase in sentences(1500, seed)]
ENDINGS = re.compile("(sho|fe|zu|vi)+$")


def partners(phrase: Phrase) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The words of a phrase that belong together: connected parts of the graph of its links."""
    source, target = phrase.source.lower().split(), phrase.target.split()
    groups: list[tuple[set[int], set[int]]] = []
    for s, t in phrase.links:
        joined = [group for group in groups if s in group[0] or t in group[1]]
        groups = [group for group in groups if group not in joined]
        groups.append((set().union({s}, *(a for a, _ in joined)), set().union({t}, *(b for _, b in joined))))
    return [(tuple(source[s] for s in sorted(a)), tuple(target[t] for t in sorted(b))) for a, b in groups]


def test_the_same_seed_gives_the_same_captions_on_every_machine() -> None:
    assert sentences(2, seed=1) == [
        Phrase(
            "The cat followed four wet boxes near two gardens quickly .",
            "pepofe gegesho dali rubu popisho mika leme nura limovi .",
            [(0, 0), (1, 0), (2, 8), (3, 6), (4, 5), (5, 4), (6, 3), (7, 2), (8, 1), (9, 7), (10, 9)],
        ),
        Phrase(
            "The small horses carried the old boys .",
            "dileshofe pipa tonoshofe dolo deluvi .",
            [(0, 0), (1, 1), (2, 0), (3, 4), (4, 2), (5, 3), (6, 2), (7, 5)],
        ),
    ]


def test_more_captions_begin_with_the_same_ones_and_other_seeds_give_others() -> None:
    assert sentences(50, seed=3) == sentences(200, seed=3)[:50]
    assert sentences(50, seed=3) != sentences(50, seed=4)


def test_no_caption_comes_twice() -> None:
    made = sentences(5000, seed=2)
    assert len({phrase.source for phrase in made}) == len(made) == 5000


def test_every_caption_has_one_right_translation() -> None:
    right: dict[str, Phrase] = {}
    assert all(right.setdefault(phrase.source, phrase) == phrase for phrase in MANY)
    assert len(right) < len(MANY)  # some did come twice


def test_captions_are_short_and_of_few_words() -> None:
    lengths = [len(phrase.source.split()) for phrase in MANY]
    assert (min(lengths), max(lengths)) == (4, 14)
    assert max(len(phrase.target.split()) for phrase in MANY) <= 16
    for side in ("source", "target"):
        assert 60 <= len({word for phrase in MANY for word in getattr(phrase, side).split()}) <= 120


def test_every_word_has_a_root_of_its_own_without_the_sounds_of_endings() -> None:
    roots = [root(lemma) for lemma in LEMMAS]
    assert len(set(roots)) == len(LEMMAS) == len(set(LEMMAS))
    assert all(re.fullmatch("([ptkbdgmnlr][aeiou]){2}", one) for one in roots)
    assert not any(ENDINGS.search(one) for one in roots)


def test_links_are_between_words_that_are_there_and_each_comes_once() -> None:
    for phrase in MANY:
        s, t = len(phrase.source.split()), len(phrase.target.split())
        assert all(0 <= a < s and 0 <= b < t for a, b in phrase.links)
        assert len(set(phrase.links)) == len(phrase.links)


def test_only_a_and_an_stand_alone() -> None:
    for phrase in MANY:
        source, linked = phrase.source.lower().split(), {s for s, _ in phrase.links}
        assert {word for at, word in enumerate(source) if at not in linked} <= {"a", "an"}
        assert not {word for at, word in enumerate(source) if at in linked} & {"a", "an"}
        assert {t for _, t in phrase.links} == set(range(len(phrase.target.split())))


def test_linked_words_are_always_translated_alike() -> None:
    meanings: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for phrase in MANY:
        for source, target in partners(phrase):
            meanings[source].add(target)
    assert all(len(targets) == 1 for targets in meanings.values())
    assert meanings["dog",] == {("bate",)}
    assert meanings["the", "dogs"] == {("bateshofe",)}
    assert meanings["next", "to"] == {("beto",)}
    assert meanings["the", "bicycle"] == {("koda", "dulafe")}
    assert meanings["run",] == meanings["runs",] == {("ribazu",)} and meanings["ran",] == {("ribavi",)}


def test_the_order_of_words_is_another() -> None:
    adjectives = {root(word) for word in invented_language.ADJECTIVES}
    for phrase in MANY:
        for clause in re.split(rf" (?:{root('and')}|\.) ?", phrase.target)[:-1]:
            words = clause.split()
            assert re.search("(zu|vi)$", words[-1]) and not any(re.search("(zu|vi)$", word) for word in words[:-1])
            assert words[0] not in adjectives


def test_more_captions_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        invented_language._Caption, "phrase", lambda _: Phrase("A dog runs .", "bate ribazu .", [(1, 0)])
    )
    assert len(sentences(1, seed=1)) == 1
    with pytest.raises(Refusal, match="only 1 different captions were found, not 2"):
        sentences(2, seed=1)
