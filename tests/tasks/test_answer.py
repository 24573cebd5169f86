"""Answers that stand in a text: read as SQuAD has them, scored as its program does, and found where they stand."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.formats.squad import Question, read_questions
from heedful.errors import Refusal
from heedful.metrics.exact_answers import judge_answer
from heedful.tasks.text.question_answering import TASK
from heedful.training.prepare import prepare
from heedful.training.spec import recipes
from tests.tasks.encoders import folder

CPU = torch.device("cpu")
words = st.lists(st.sampled_from(["The", "cat", "sat.", "a", "mat", "an", "CAT", "on-it", ""]), max_size=5).map(
    " ".join
)


@pytest.mark.parametrize(
    ("said", "known", "exact", "f1"),
    [
        ("The Cat.", "cat", 1.0, 1.0),  # case, articles and punctuation are left out
        ("on-it", "onit", 1.0, 1.0),
        ("a red cat", "the cat", 0.0, 2 / 3),  # one of two words, and the only one
        ("cat cat sat", "cat sat sat", 0.0, 2 / 3),  # words count as often as both have them
        ("", "cat", 0.0, 0.0),
        ("dog", "cat", 0.0, 0.0),
    ],
)
def test_answers_are_judged_as_the_program_of_squad_does(said: str, known: str, exact: float, f1: float) -> None:
    assert judge_answer(Question("?", known, ((known, 0),)), said) == (exact, pytest.approx(f1))


@given(words, words)
def test_f1_by_words_is_even_handed_and_one_for_what_is_exact(one: str, two: str) -> None:
    there, back = (judge_answer(Question("?", text, ((text, 0),)), said) for text, said in ((one, two), (two, one)))
    assert there == back and 0 <= there[0] <= there[1] <= 1


def test_of_several_answers_the_nearest_counts() -> None:
    assert judge_answer(Question("?", "", (("the red cat", 0), ("cat", 0))), "Cat!") == (1.0, 1.0)
    assert judge_answer(Question("?", "", ()), "") == (1.0, 1.0) and judge_answer(Question("?", "", ()), "cat") == (
        0.0,
        0.0,
    )


ONE = {"question": "who sat ?", "answers": [{"text": "cat", "answer_start": 4}]}
LISTS = {"question": "who sat ?", "context": "the cat sat", "answers": {"text": ["cat"], "answer_start": [4]}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps({"data": [{"paragraphs": [{"context": "the cat sat", "qas": [ONE]}]}]})),
        ("a.jsonl", json.dumps(ONE | {"context": "the cat sat"})),
        ("a.jsonl", json.dumps(LISTS)),
        ("a.jsonl", json.dumps(LISTS | {"answers": {"text": ["cat"]}})),
        ("a.jsonl", json.dumps({"question": "who sat ?", "context": "the cat sat", "answer": "cat"})),
    ],
)
def test_every_layout_gives_the_same_question(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_questions(str(tmp_path / name)) == [
        Question("who sat ?", "the cat sat", (("cat", 4),), str(tmp_path / name), 1)
    ]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"context": "a cat", "answers": []}, "question 1: 'question' is missing or not as it should be; write"),
        ({"question": "who ?"}, "question 1: 'context' is missing"),
        ({"question": "who ?", "context": " ", "answers": []}, "is empty"),
        (
            {"question": "who ?", "context": "a cat"},
            "question 1: 'answers' is missing",
        ),  # none is said by an empty list
        (LISTS | {"answers": {"text": ["cat"], "answer_start": []}}, "as many answer_start as answers are needed"),
        ({"question": "who ?", "context": "a cat", "answer": "dog"}, "'dog' does not stand in the text"),
        (
            {"question": "who ?", "context": "a cat", "answers": [{"text": "cat", "answer_start": 1}]},
            "mend answer_start",
        ),
    ],
)
def test_what_is_wrong_with_a_question_is_said(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    with pytest.raises(Refusal) as refused:
        read_questions(str(tmp_path / "a.jsonl"))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("[]", "'data' is"),
        ('{"data": 3}', "'data' is"),
        ('{"data": [{"title": "cats"}]}', "'paragraphs' is"),
        ('{"data": [{"paragraphs": ["a cat"]}]}', "'paragraphs' is"),
        ('{"data": [{"paragraphs": [{"context": "a cat"}]}]}', "'qas' is"),
    ],
)
def test_what_a_file_lacks_that_squads_have_is_said(tmp_path: Path, text: str, lacking: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(Refusal, match=rf"not as SQuAD's files are: {lacking} missing or no list of objects, as in"):
        read_questions(str(tmp_path / "a.json"))


def ready(tmp_path: Path, *rows: dict[str, Any]) -> Any:
    start = folder(tmp_path / "bert", "states")
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    named = [f"data.{split}={tmp_path / split}.jsonl" for split in ("train", "valid", "test")]
    return prepare(recipes.resolve("answer", [*named, f"start={start}", "training.dtype=float64"]), CPU)


def test_an_answer_is_where_its_words_stand_and_none_is_the_first_token(tmp_path: Path) -> None:
    context = "the mats sat on a cat"  # "mats" is two pieces
    asked = {"question": "where ?", "context": context}
    made = ready(tmp_path, asked | {"answer": "mats sat"}, asked | {"answers": []})
    one, two = made.splits.train  # [CLS] where ? [SEP] the mat ##s sat on a cat [SEP]
    assert (one.answer, two.answer) == ((5, 7), (0, 0)) and not made.task.learned.always
    assert made.task.describe_data(made.splits) == "questions 50.0 % without an answer"
    batch = made.task.batch([one, two])
    loss, count = made.task.loss(made.model.eval(), batch)
    given = made.model(batch["tokens"], segments=batch["segments"]).log_softmax(1)
    wanted = -(given[0, 5, 0] + given[0, 7, 1] + given[1, 0, 0] + given[1, 0, 1])
    torch.testing.assert_close(loss, wanted)
    assert int(count) == 4
    wider = {name: torch.nn.functional.pad(one, (*(0, 3) * (one.dim() - 1), 0, 2)) for name, one in batch.items()}
    torch.testing.assert_close(made.task.loss(made.model, wider)[0], loss)


def test_questions_none_of_which_has_an_answer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="no question to learn from has an answer, so that there is nothing to find"):
        ready(tmp_path, {"question": "who ?", "context": "the cat sat", "answers": []})


def test_where_every_question_has_an_answer_one_is_always_given(tmp_path: Path) -> None:
    made = ready(tmp_path, {"question": "where ?", "context": "on the mat", "answer": "mat"})
    always = made.task.learned
    assert always.always
    scores = torch.zeros(7, 2)
    scores[0] = 9.0
    scores[6], scores[5, 0], scores[5, 1] = -1.0, 1.0, 1.0
    (one,) = made.splits.train
    given = torch.cat((scores, scores[6:]))[: len(one.joined.ids)]
    assert TASK.pipeline.answer(one.joined, given, always).text
    assert not TASK.pipeline.answer(one.joined, given, replace(always, always=False)).text
