"""Word alignments: sub-words to words by the definition, links, guides, and the error rate of Och and Ney."""

import json
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from heedful.data.parallel_sample import Links
from heedful.errors import Failure
from heedful.looking.alignment import (
    Agreement,
    Alignment,
    agreement,
    guide,
    links,
    words_map,
    write_json,
)

PLACES = st.lists(st.integers(-1, 3), min_size=1, max_size=7).filter(lambda places: max(places) >= 0)
SENTENCE = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


def random_weights(*shape: int) -> Tensor:
    scores = torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)
    return scores.softmax(-1)


# ---------------------------------------------------------------------- sub-words to words


@given(PLACES, PLACES)
def test_a_word_sums_its_columns_and_averages_its_rows(rows: list[int], columns: list[int]) -> None:
    weights = random_weights(2, len(rows), len(columns))
    made = words_map(weights, rows, columns)
    assert made.shape == (2, max(rows) + 1, max(columns) + 1)
    for h in range(2):
        for t in range(made.shape[1]):
            for s in range(made.shape[2]):
                its = [row for row, word in enumerate(rows) if word == t]
                total = sum(weights[h, row, at].item() for row in its for at, word in enumerate(columns) if word == s)
                assert made[h, t, s].item() == pytest.approx(total / max(1, len(its)), abs=1e-12)


def test_a_word_for_each_sub_word_changes_nothing() -> None:
    weights = random_weights(3, 4, 5)
    assert torch.equal(words_map(weights, range(4), range(5)), weights)
    assert torch.equal(words_map(weights[0], range(4), range(5)), weights[0])


def test_what_is_given_to_no_word_is_missing_from_the_row() -> None:
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    assert torch.allclose(words_map(weights, [0, -1], [0, 0, -1]), torch.tensor([[0.3]]))


def test_the_words_of_a_map_carry_gradient_and_keep_their_dtype() -> None:
    weights = random_weights(2, 3).requires_grad_()
    made = words_map(weights, [0, 0], [0, 1, 1])
    made[0, 1].backward()
    assert made.dtype == torch.float64
    assert torch.equal(weights.grad, torch.tensor([[0, 0.5, 0.5]] * 2, dtype=torch.float64))


def test_weights_that_do_not_fit_the_words_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\), for 3 rows and 2 columns"):
        words_map(torch.zeros(2, 3), [0, 1, 2], [0, 1])


# ---------------------------------------------------------------------- links


def test_each_target_word_is_linked_to_the_source_word_that_it_looks_at_most() -> None:
    matrix = torch.tensor([[0.1, 0.6, 0.2], [0.0, 0.1, 0.8], [0.05, 0.45, 0.1]])
    assert links(matrix) == [(1, 0), (1, 2), (2, 1)]


def test_a_word_that_looks_mostly_elsewhere_stays_without_a_link_where_that_is_asked_for() -> None:
    matrix = torch.tensor([[0.5, 0.1], [0.3, 0.1], [0.0, 0.0]])  # the second gave 0.6 to the end, the third all
    assert links(matrix) == [(0, 0), (0, 1)]
    assert links(matrix, least=0.5) == [(0, 0)]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_where_there_are_no_words_there_are_no_links(shape: tuple[int, int]) -> None:
    assert links(torch.zeros(shape)) == []


@given(st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_a_guide_spreads_every_linked_sub_word_evenly_over_its_words_and_says_nothing_of_others(
    some: frozenset,
) -> None:
    rows, columns = [0, 0, 1, 2, 3, 3, 3, -1], [0, 1, 1, 2, 3, -1]
    made = guide(some, rows, columns)
    for t, row in enumerate(rows):
        wanted = [s for s, column in enumerate(columns) if (column, row) in some]
        expected = [1 / len(wanted) if s in wanted else 0.0 for s in range(len(columns))]
        assert made[t].tolist() == pytest.approx(expected)


def test_the_words_of_a_guide_are_its_links() -> None:
    some = [(0, 1), (2, 0), (1, 2)]
    rows, columns = [0, 0, 1, 2, -1], [0, 1, 1, 2, -1]
    assert links(words_map(guide(some, rows, columns), rows, columns)) == sorted(some)


# ---------------------------------------------------------------------- agreement


@given(st.lists(st.tuples(SENTENCE, SENTENCE, SENTENCE), max_size=4))
def test_agreement_is_the_papers_formula_over_all_sentences(
    corpus: list[tuple[frozenset, frozenset, frozenset]],
) -> None:
    found, sure, other = ([{(n, *link) for link in row[k]} for n, row in enumerate(corpus)] for k in range(3))
    a, s = set().union(*found), set().union(*sure)
    p = set().union(*other) | s
    made = agreement(*([[link[1:] for link in row] for row in side] for side in (found, sure, other)))
    if a:
        assert made.precision == float(Fraction(len(a & p), len(a)))
    if s:
        assert made.recall == float(Fraction(len(a & s), len(s)))
    if a or s:
        assert made.error_rate == pytest.approx(float(1 - Fraction(len(a & s) + len(a & p), len(a) + len(s))))


def test_the_example_that_nltk_gives_comes_out_alike() -> None:
    assert agreement([[(0, 0), (1, 2), (2, 1)]], [[(0, 0), (1, 1), (2, 2)]]).error_rate == pytest.approx(
        0.6666666666666667
    )


def test_all_sure_links_and_some_possible_ones_are_no_error() -> None:
    assert agreement([[(0, 0), (1, 1)]], [[(0, 0)]], [[(1, 1), (2, 2)]]).error_rate == 0.0
    assert agreement([[(0, 0), (1, 1)]], [[(0, 0)]]).error_rate == pytest.approx(1 / 3)


def test_nothing_found_is_all_wrong_and_nothing_to_find_is_nothing_wrong() -> None:
    assert agreement([[]], [[(0, 0)]]) == Agreement(1.0, 0.0, 1.0)
    assert agreement([[]], [[]]) == Agreement(1.0, 1.0, 0.0)


def test_a_link_said_twice_counts_once() -> None:
    assert agreement([[(0, 0), (0, 0)]], [[(0, 0)]]).error_rate == 0.0


def test_sentences_must_be_as_many_on_every_side() -> None:
    with pytest.raises(ValueError, match="zip"):
        agreement([[]], [[], []])


# ---------------------------------------------------------------------- an alignment


def one(gold: Links | None = None) -> Alignment:
    matrix = torch.tensor([[0.1, 1 / 3, 0.2], [1e-30, 0.5, 0.25]])
    return Alignment(("a", "</script>", "."), ("日本語", " "), matrix, ((1, 0), (1, 1)), gold)


@pytest.mark.parametrize(
    "gold", [None, Links(frozenset(), frozenset()), Links(frozenset({(0, 0)}), frozenset({(0, 0), (2, 1)}))]
)
def test_an_alignment_comes_back_from_json_exactly(gold: Links | None) -> None:
    first = one(gold)
    second = Alignment.from_json(json.loads(json.dumps(first.to_json())))
    assert torch.equal(first.matrix, second.matrix)
    assert (first.source, first.target, first.links) == (second.source, second.target, second.links)
    assert first.gold == second.gold


def test_an_answer_without_words_is_an_alignment_too() -> None:
    empty = Alignment(("a",), (), torch.zeros(0, 1), ())
    assert Alignment.from_json(empty.to_json()).matrix.shape == (0, 1)


def test_a_file_of_alignments_is_a_line_each(tmp_path) -> None:
    write_json([one(), one()], tmp_path / "all.json")
    text = (tmp_path / "all.json").read_text(encoding="utf-8")
    assert len(text.splitlines()) == 4
    assert json.loads(text)["alignments"] == [one().to_json()] * 2


def test_target_words_look_and_source_words_are_looked_at() -> None:
    assert (one().map.rows, one().map.columns) == (one().target, one().source)
    assert torch.equal(one().map.weights[0], one().matrix)


@pytest.mark.parametrize(
    ("matrix", "links", "fault"),
    [
        (torch.zeros(3, 2), (), r"\(2, 3\), target by source words"),
        (torch.zeros(2, 3, dtype=torch.float64), (), "float64"),
        (torch.zeros(2, 3), ((0, 2),), "no word of 3 source and 2 target"),
        (torch.zeros(2, 3), ((3, 0),), "no word of 3 source and 2 target"),
        (torch.zeros(2, 3), ((-1, 0),), "no word of 3 source and 2 target"),
        (torch.full((2, 3), float("nan")), (), "not finite"),
    ],
)
def test_what_does_not_fit_is_refused(matrix: Tensor, links: tuple, fault: str) -> None:
    with pytest.raises((ValueError, Failure), match=fault):
        Alignment(("a", "b", "c"), ("x", "y"), matrix, links)
