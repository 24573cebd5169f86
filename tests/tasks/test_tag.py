"""Tags of words: files are as CoNLL has them, spans are scored as its program does, and rows of tags make sense."""

from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.formats.conll import read_tagged, spans
from heedful.data.readers.tagged_words import TaggedWords
from heedful.errors import Refusal
from heedful.metrics.class_figures import precision_recall_f1
from heedful.metrics.span_f1 import SpanF1
from heedful.pipelines.pipeline import Search
from heedful.pipelines.token_classification import best_rows
from heedful.pipelines.viterbi_tags import follows
from heedful.training.prepare import prepare
from heedful.training.spec import recipes
from tests.answered import plain
from tests.tasks.encoders import folder

CPU = torch.device("cpu")
LABELS = ["O", "B-a", "I-a", "B-b", "I-b"]
tags = st.lists(st.sampled_from(["O", "B-a", "I-a", "E-a", "S-a", "B-b", "I-b", "E-b", "S-b"]), max_size=9)


def chunks(row: list[str]) -> list[tuple[str, int, int]]:
    """Spans by the two tables of conlleval (Tjong Kim Sang and Buchholz, 2000): where one starts and where one ends."""
    made, begun = [], 0
    before, kind = "O", ""
    for at, tag in enumerate([*row, "O"]):
        how, _, new = tag.partition("-")
        other = how != "O" and before != "O" and kind != new
        ends = (before, how) in {("B", "B"), ("B", "O"), ("B", "S"), ("I", "B"), ("I", "O"), ("I", "S")}
        if before != "O" and (ends or before in "ES" or other):
            made.append((kind, begun, at))
        goes_on = {("E", "E"), ("E", "I"), ("S", "E"), ("S", "I"), ("O", "E"), ("O", "I")}
        if how != "O" and (how in "BS" or (before, how) in goes_on or other):
            begun = at
        before, kind = how, new
    return made


@given(tags)
def test_spans_are_those_of_the_program_of_conll(row: list[str]) -> None:
    assert spans(row) == chunks(row)


def test_only_spans_that_are_right_to_the_word_count() -> None:
    truth = [spans(["B-a", "I-a", "O", "B-b"]), spans(["B-a", "B-a", "O"])]
    said = [spans(["B-a", "O", "O", "B-b"]), spans(["B-a", "I-a", "B-b"])]
    made = SpanF1()
    made.count(truth, said)
    assert (dict(made.hit), dict(made.wrong), dict(made.missed)) == ({"b": 1}, {"a": 2, "b": 1}, {"a": 3})
    assert precision_recall_f1(1, 3, 3) == (0.25, 0.25, 0.25) and precision_recall_f1(0, 0, 0) == (0.0, 0.0, 0.0)


@given(st.lists(st.lists(st.floats(-9, 0), min_size=5, max_size=5), min_size=1, max_size=4), st.integers(1, 4))
def test_rows_of_tags_are_the_likeliest_of_those_that_make_sense(chances: list[list[float]], count: int) -> None:
    def fits(row: tuple[int, ...]) -> bool:
        before = [LABELS[0], *(LABELS[at] for at in row)]
        return all(two[0] != "I" or one[1:] == two[1:] for one, two in pairwise(before))

    def score(row: Sequence[int]) -> float:
        return sum(chances[at][tag] for at, tag in enumerate(row))

    rows = [row for row in product(range(5), repeat=len(chances)) if fits(row)]
    made = best_rows(np.array(chances), follows(LABELS), count)
    assert len({*map(tuple, made)}) == len(made) == min(count, len(rows)) and all(fits(tuple(row)) for row in made)
    assert [*map(score, made)] == pytest.approx(sorted(map(score, rows), reverse=True)[:count])


def test_files_without_a_beginning_of_spans_are_taken_as_they_are() -> None:
    assert follows(["O", "I-a"]).all()


def test_words_and_tags_are_read_from_columns(tmp_path: Path) -> None:
    lines = ["-DOCSTART- -X- O", "", "# sent 1", "the DT O", "cat NN B-animal", "", "\t", "a\u00a0mat\tB-thing", "#\tO"]
    (tmp_path / "a.conll").write_text("\n".join(lines))
    one, two = read_tagged(str(tmp_path / "a.conll"))
    assert (one.words, one.tags, one.line) == (("the", "cat"), ("O", "B-animal"), 4)
    assert (two.words, two.tags, two.line) == (("a_mat", "#"), ("B-thing", "O"), 8)


def test_a_sign_that_begins_remarks_is_a_word_within_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("# sent 1\nrun O\n# B-sign\n1 I-sign\n")
    (one,) = read_tagged(str(tmp_path / "a.conll"))
    assert (one.words, one.tags, one.line) == (("run", "#", "1"), ("O", "B-sign", "I-sign"), 2)


def test_a_rare_tag_of_one_file_is_learned_wherever_its_sentence_would_have_been(tmp_path: Path) -> None:
    rows = [f"word{at}\tO\n" for at in range(200)]
    sides = set()
    for at in range(12):
        rare = f"odd{at}\tB-rare\nmore\tI-rare\n"
        (tmp_path / "a.conll").write_text("\n".join([*rows, rare]))
        splits = TaggedWords(name=str(tmp_path / "a.conll")).read(0)
        sides.add(len(splits.train))
        assert any("B-rare" in one.tags for one in splits.train) and splits.valid and splits.test
        assert sum(map(len, (splits.train, splits.valid, splits.test))) == 201
    assert len(sides) == 1


LINES = [
    ("cat", "'cat' has no tag; write"),
    ("cat NN", "'NN' is no tag; write O"),
    ("cat NN O", "3 columns and not 2; give each as many"),
]


@pytest.mark.parametrize(("line", "said"), LINES)
def test_a_word_without_a_tag_is_refused(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "a.conll").write_text(f"the\tO\n{line}\n")
    with pytest.raises(Refusal) as refused:
        read_tagged(str(tmp_path / "a.conll"))
    assert f"a.conll, line 2: {said}" in str(refused.value)


def test_only_the_first_token_of_a_word_is_judged_and_a_word_of_no_token_is_outside(tmp_path: Path) -> None:
    start = folder(tmp_path / "bert", "states")
    rows = "the\tO\ncats\tB-a\n\u200d\tO\nsat\tI-a\n\n"  # "cats" is a word here, "mats" two pieces, a joiner none
    for split in ("train", "valid", "test"):
        (tmp_path / split).write_text(rows + "mats\tB-a\n")
    named = [f"data.{split}={tmp_path / split}" for split in ("train", "valid", "test")]
    ready = prepare(recipes.resolve("tag", [*named, f"start={start}"]), CPU)
    one, two = ready.splits.train
    assert one.answer == [0, 1, 2, 3, 0] and two.answer == [0, 2, 0, 0]
    said = plain(ready.task.predict(ready.model, [ready.task.as_input(one)]))[0].split()
    assert len(said) == 4 and said[2] == "O"
    text = ready.task.as_input(one)
    [found] = ready.task.ask(ready.model, [text], Search(best=3))
    assert found[0].tags == tuple(said) and len({row.tags for row in found}) == 3
    assert sorted((row.chance for row in found), reverse=True) == [row.chance for row in found]
    spans_of = [(entity.kind, text[entity.start : entity.end]) for row in found for entity in row.spans]
    assert spans_of == [(entity.kind, entity.text) for row in found for entity in row.spans] and spans_of
    alone = [row for row in found if len(row.spans) == 1 and row.spans[0].text in row.words]
    assert all(row.chance <= row.spans[0].chance <= 1 for row in alone)
    assert ready.task.describe_data(ready.splits) == "spans     a 3, among 5 words"
