"""ListOps: expressions are what Long Range Arena says they are, and their values are right."""

import statistics
from itertools import pairwise

import numpy as np
import pytest

from heedful.data.readers.word_sequences import ListOps
from heedful.data.toys import listops
from heedful.errors import Refusal

REDUCE = {"[MIN": min, "[MAX": max, "[MED": lambda all: int(statistics.median(all)), "[SM": lambda all: sum(all) % 10}


def value(words: list[str]) -> tuple[int, int]:
    """The value of an expression and how deep it is, by a stack; brackets that do not match raise."""
    stack: list[tuple[str, list[int]]] = [("", [])]
    deepest = 1
    for word in words:
        if word in REDUCE:
            stack.append((word, []))
            deepest = max(deepest, len(stack))
        elif word == "]":
            operation, inner = stack.pop()
            assert 2 <= len(inner) <= 10
            stack[-1][1].append(REDUCE[operation](inner))
        else:
            stack[-1][1].append(int(word))
    [(_, [made])] = stack
    return made, deepest


@pytest.fixture(scope="module")
def drawn() -> list[tuple[list[str], int]]:
    found = listops.draw_expressions(np.random.default_rng(3), 501, 1999)
    return [([listops.WORDS[at] for at in signs], made) for signs, made in found]


def test_values_are_those_of_the_expressions(drawn):
    assert len(drawn) > 1000
    for words, made in drawn[:300]:
        assert value(words)[0] == made and value(words)[1] <= listops.DEEPEST


def test_lengths_count_every_sign_and_stay_between_500_and_2000(drawn):
    lengths = [len(words) for words, _ in drawn]
    assert min(lengths) > 500 and max(lengths) < 2000 and max(lengths) > 1900


def test_operations_and_digits_come_alike_and_a_quarter_of_what_could_be_lists_are(drawn):
    counts = {word: sum(words.count(word) for words, _ in drawn[:400]) for word in listops.WORDS}
    digits, operations = list(counts.values())[:10], list(counts.values())[10:14]
    assert max(digits) < 1.1 * min(digits) and max(operations) < 1.1 * min(operations)
    assert counts["]"] == sum(operations)
    short = listops.draw_expressions(np.random.default_rng(3), 1, 10**9)  # nothing is thrown away
    assert abs(sum(len(signs) > 1 for signs, _ in short) / len(short) - 0.25) < 0.01


def test_no_expression_is_twice_among_the_splits_and_the_seed_makes_them():
    data = ListOps(name="listops", samples=300, held_out=40, shortest=4, longest=9)
    one, two = listops.listops(data, 1), listops.listops(data, 2)
    every = [line.places.tobytes() for line in (*one.train, *one.valid, *one.test)]
    assert len(set(every)) == len(every) == 350 and (len(one.valid), len(one.test)) == (10, 40)
    listops.make_lines.cache_clear()
    again = listops.listops(data, 1)
    assert all(a.places.tobytes() == b.places.tobytes() for a, b in zip(one.train, again.train, strict=True))
    assert any(a.places.tobytes() != b.places.tobytes() for a, b in zip(one.train, two.train, strict=True))
    assert all(len(a) and 4 <= len(a) <= 9 for a in every)


def test_more_expressions_than_there_are_is_refused(monkeypatch):
    monkeypatch.setattr(listops, "TRIES", 2)
    with pytest.raises(Refusal, match=r"only [\d,]+ expressions of 4 to 4 signs were found, not 50,050; widen"):
        listops.listops(ListOps(name="listops", samples=50_000, held_out=40, shortest=4, longest=4), 1)


def test_arguments_of_a_list_stand_in_their_places():
    """[MAX 1 [SM 9 9 ] 2 ], laid out by hand."""
    level = listops.Level
    levels = [
        level(np.array([0]), np.array([3]), np.array([11])),
        level(np.array([0, 0, 0]), np.array([0, 2, 0]), np.array([1, 13, 2])),
        level(np.array([0, 0]), np.array([0, 0]), np.array([9, 9])),
    ]
    sizes, values = listops.sizes_and_values(levels)
    assert [listops.WORDS[at] for at in listops.laid_out(levels, sizes)] == [
        "[MAX",
        "1",
        "[SM",
        "9",
        "9",
        "]",
        "2",
        "]",
    ]
    assert values.tolist() == [8]
    assert all(a.tree.max() == b.tree.max() for a, b in pairwise(levels))
