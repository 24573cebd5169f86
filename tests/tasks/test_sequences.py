"""Sequences of words with a class: files, unknown words, shapes of batches, and where the first token looks."""

from pathlib import Path

import numpy as np
import pytest
import torch

import heedful
from heedful.data.formats.labelled_line import Line
from heedful.data.images.gallery import Gallery, Picture
from heedful.data.readers import labelled_sequences, word_sequences
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.models.specs import BEGIN, PAD, UNKNOWN
from heedful.tasks.text.sequence_classification import SHOWN, TASK, SequenceLearned, tokens_of
from heedful.tasks.work import Work
from tests.answered import plain

WORDS = ("a", "b", "c")


def task(longest: int = 100) -> Work:
    return Work(TASK, SequenceLearned(("no", "yes"), WORDS, longest))


def line(text: str, label: str = "yes") -> Line:
    return Line(labelled_sequences.word_numbers(text.split(), {word: at for at, word in enumerate(WORDS)}), label)


def model(length: int = 300, **more: object) -> torch.nn.Module:
    numbers = task().facts()
    return heedful.build("predictor", width=8, depth=1, heads=2, length=length, pool="first", **numbers, **more)


def test_a_file_of_words_and_labels_is_read_and_divided(tmp_path: Path):
    path = tmp_path / "lines.tsv"
    path.write_text("".join(f"a b {'c ' * n}\t{'odd' if n % 2 else 'even'}\n" for n in range(60)))
    made, splits = TASK.open(TASK.reader("files")(name=str(path)), 1)
    assert made.learned.words == WORDS and made.learned.labels == ("even", "odd")
    assert len(splits.train) + len(splits.valid) + len(splits.test) == 60
    assert made.length(max((*splits.train, *splits.valid, *splits.test), key=made.length)) == made.learned.longest == 62
    assert made.source_of(splits.train[0]).startswith(f"{path}, line ")


def test_words_of_other_data_are_told_by_the_places_that_were_learned(tmp_path: Path):
    path = tmp_path / "other.tsv"
    path.write_text("c z a\tyes\nb\tno\n")
    splits = task().reopen(TASK.reader("files")(test=str(path)), 1)
    assert [line.places.tolist() for line in splits.test] == [[2, -1, 0], [1]]
    assert task().as_input(splits.test[0]) == "c ? a"
    assert tokens_of(splits.test[:1], task().learned)[0, :5].tolist() == [BEGIN, 6, UNKNOWN, 4, PAD]
    path.write_text("a\tmaybe\n")
    with pytest.raises(Refusal, match=r"other.tsv, line 1: label 'maybe' is not one that is trained on \(no, yes\)"):
        task().reopen(TASK.reader("files")(test=str(path)), 1)


def test_batches_have_few_shapes_and_padding_changes_nothing():
    shapes = {task().batch([line("a " * n)])["tokens"].shape[1] for n in range(1, 99)}
    assert shapes == {16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 100}
    net, alone = model().double().eval(), line("a b c a")
    one = net(task(5).batch([alone])["tokens"])
    many = net(task().batch([alone, line("c " * 70)])["tokens"])
    torch.testing.assert_close(one[0], many[0], rtol=0, atol=1e-12)


def test_an_unknown_word_is_doubted_and_an_empty_input_refused():
    assert task().warning("a q") == "'q' is a word that was never seen in training" and task().warning("a b") is None
    with pytest.raises(Refusal, match="the input is empty; give words with blanks"):
        next(task().predict(model(), ["  "]))
    assert plain(task().predict(model(), ["a b", "q"])) in (["no"] * 2, ["yes"] * 2, ["no", "yes"], ["yes", "no"])


@pytest.mark.parametrize(("count", "rows"), [(6, 7), (SHOWN, 1)])
def test_of_a_long_sequence_the_first_token_alone_is_looked_at(count: int, rows: int):
    example = task(300).look(model(), "a " * count)
    (shown,) = example.maps
    assert shown.weights.shape == (2, rows, count + 1) and shown.columns[0] == "<s>"
    torch.testing.assert_close(shown.weights.sum(-1), torch.ones(2, rows))


def test_an_answer_for_each_word_is_refused():
    with pytest.raises(Refusal, match=r"model\.pool=each gives an answer a word"):
        task().suited(heedful.build("predictor", width=8, depth=1, heads=2, pool="each", **task().facts()).spec)


def test_pixels_are_the_brightness_of_a_picture_row_by_row(monkeypatch: pytest.MonkeyPatch):
    pixels = np.zeros((1, 3, 2, 2), dtype=np.uint8)
    pixels[0, :, 0, 1] = 255, 255, 255
    pixels[0, :, 1, 0] = 100, 0, 0
    one = [Picture(Gallery(pixels), 0, "cat", "here")]
    monkeypatch.setattr(word_sequences.PublicImages, "read", lambda reader, seed: Splits(one, one, one))
    splits = TASK.reader(labelled_sequences.PIXELS)(name=labelled_sequences.PIXELS).read(1)
    assert (
        len(splits.words) == 256 and splits.test[0].places.tolist() == [0, 255, 30, 0] and splits.test[0].label == "cat"
    )
