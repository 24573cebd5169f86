"""Vectors of words: what is learned of neighbours and of counts, and what is found of them."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid

from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import Crop, Stream
from heedful.errors import Failure, Refusal
from heedful.models import build
from heedful.models.text.word_vectors import WordVectors
from heedful.objectives.word_vector_losses import neighbours
from heedful.tasks.task import Task
from heedful.tasks.text import glove, word2vec
from heedful.tasks.text.cropping import crops
from heedful.tasks.text.glove import Pairs, chunks
from heedful.tasks.work import Work
from heedful.tokenizers import train
from tests.answered import plain

TEXT = "a b c a b d e f a c b e d f"
WORDS = train([TEXT], "words", size=20)
KINDS = [word2vec.TASK, glove.TASK]


def task(kind: Task, **asked: Any) -> Any:
    told = {"near": 2, "negatives": 1, "frequent": 0.0, "noise": 0.5, "counts": torch.ones(len(WORDS))} | asked
    return Work(kind, kind.learned(WORDS, longest=8, **told))  # type: ignore[call-arg]


def vectors(biased: bool) -> WordVectors:
    torch.manual_seed(0)
    made = build("word_vectors", vocab=len(WORDS), width=5, biased=biased).double()
    assert isinstance(made, WordVectors)
    for weight in made.parameters():
        torch.nn.init.normal_(weight)
    made.counts.copy_(torch.ones(len(WORDS)))
    return made


@torch.no_grad()
def test_skip_grams_are_told_from_words_by_chance_as_the_paper_says() -> None:
    own, model = task(word2vec.TASK, near=1), vectors(False)
    stream = Stream.of([Text("a b c", "x"), Text("d e", "y")], WORDS, 20)
    batch = own.batch(crops(stream, 8, 8))
    loss, count = own.loss(model, batch)
    a, b, c, d, e = (WORDS.encode(letter)[0] for letter in "abcde")
    pairs = [(a, b), (b, a), (b, c), (c, b), (d, e), (e, d)]
    near = -sum(float(logsigmoid(model(torch.tensor(one), torch.tensor(two)))) for one, two in pairs)
    assert int(count) == len(pairs) and float(loss) > near
    assert sum(int(both.sum()) for _, _, both in neighbours(batch, 1)) == len(pairs)  # is known without the model
    model.near.weight.zero_()  # all scores are 0: each pair and each word by chance is a coin
    assert float(own.loss(model, batch)[0]) == pytest.approx(len(pairs) * 2 * math.log(2))
    assert own.score(model, crops(stream, 8, 8))["skill"] == pytest.approx(0.0, abs=1e-9)


@torch.no_grad()
def test_words_by_chance_are_drawn_by_their_counts_to_the_three_quarters() -> None:
    model = vectors(False)
    ids = [WORDS.encode(letter)[0] for letter in "ab"]
    model.counts.zero_()
    model.counts[ids] = torch.tensor([16.0, 1.0]).double()
    own = task(word2vec.TASK, near=1, counts=model.counts)
    model.table.weight.fill_(1.0)
    model.near.weight.zero_()
    model.near.weight[ids[0]] = 30.0 / 5  # a score of 30 for the first word, so that its share is the loss
    stream = Stream.of([Text("b " * 4000, "x")], WORDS, 20)
    lost = own.loss(model, own.batch(crops(stream, 8, 8)))
    share = (float(lost[0] / lost[1]) - 2 * math.log(2)) / (30 - math.log(2))
    assert share == pytest.approx(8 / 9, abs=0.02)


@torch.no_grad()
def test_frequent_words_are_left_out_now_and_then() -> None:
    model, stream = vectors(False), Stream.of([Text("a b " * 2000, "x")], WORDS, 20)
    model.counts.zero_()
    model.counts[[WORDS.encode(letter)[0] for letter in "ab"]] = 1.0
    every, some = (task(word2vec.TASK, near=1, frequent=share, counts=model.counts) for share in (0.0, 0.125))
    found = crops(stream, 8, 8)
    ratio = float(some.loss(model, some.batch(found))[1]) / float(every.loss(model, every.batch(found))[1])
    assert ratio == pytest.approx(0.25, abs=0.04)  # each of the two stays in half of all cases


def test_counts_of_pairs_are_those_of_a_plain_loop() -> None:
    stream = Stream.of([Text(TEXT, "x"), Text("c d e", "y")], WORDS, 5)
    found = Pairs.of(stream, 3, len(WORDS))
    wanted: dict[tuple[int, int], float] = {}
    for text in (TEXT, "c d e"):
        ids = WORDS.encode(text)
        for at, one in enumerate(ids):
            for to in range(max(0, at - 3), min(len(ids), at + 4)):
                if to != at:
                    wanted[one, ids[to]] = wanted.get((one, ids[to]), 0.0) + 1 / abs(at - to)
    told = zip(found.words.tolist(), found.others.tolist(), found.counts.tolist(), strict=True)
    assert {(one, two): pytest.approx(count, rel=1e-5) for one, two, count in told} == wanted


@torch.no_grad()
def test_vectors_whose_products_are_the_logarithms_lose_nothing() -> None:
    own, model = task(glove.TASK), vectors(True)
    stream = Stream.of([Text(TEXT, "x")], WORDS, 5)
    found = chunks(stream, own.learned)
    assert model.bias is not None
    batch = own.batch(found)
    again = own.batch([own.augmented(found, 1)[0]])
    assert not np.array_equal(batch["counts"], again["counts"])
    assert batch["counts"].sum() == pytest.approx(float(again["counts"].sum()))
    model.table.weight.zero_()
    model.bias.zero_()
    weights = (batch["counts"] / 100).clamp(max=1) ** 0.75
    there = batch["counts"] > 0
    plain = (weights[there] * batch["counts"][there].log().square()).sum()
    assert float(own.loss(model, batch)[0]) == pytest.approx(float(plain), rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_and_analogies_are_found(kind: Task) -> None:
    own, model = task(kind), vectors(kind is glove.TASK)
    a, b, c, d, *_ = (WORDS.encode(letter)[0] for letter in "abcdef")
    model.table.weight.data.normal_(std=0.01)
    model.near.weight.data.zero_()
    base = torch.zeros(4, 5, dtype=torch.double)
    base[:, 0], base[2:, 1], base[[1, 3], 2] = 1.0, 1.0, 1.0  # a to b as c to d
    model.table.weight.data[[a, b, c, d]] = base
    assert plain(own.predict(model, ["a b c"]))[0].startswith("d ")
    assert plain(own.predict(model, ["d"]))[0].startswith(("b ", "c "))
    assert len(plain(own.predict(model, ["a"]))[0].split(", ")) == 5 and "a " not in plain(own.predict(model, ["a"]))[0]
    assert own.look(model, "a").maps[0].rows[0] == "a"


@pytest.mark.parametrize("far", [1e30, 3e38])
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_of_no_finite_length_have_no_neighbours(kind: Task, far: float) -> None:
    own, model = task(kind), vectors(kind is glove.TASK).float()
    torch.nn.init.constant_(model.table.weight, far)
    for asked in (own.predict, lambda model, texts: [own.look(model, *texts)]):
        with pytest.raises(Failure, match="not numbers"):
            list(asked(model, ["a"]))


def test_a_word_is_shown_once_where_there_are_others() -> None:
    own, model = task(word2vec.TASK), vectors(False)
    found = [Crop(Stream.of([Text(words, "")], WORDS, 8), 0, 2) for words in ("a b", "a b", "a c", "c")]
    assert [word for word, _ in own.show(model, found).rows] == ["a", "b", "c", "c"]


@pytest.mark.parametrize(
    ("text", "fault"), [("a b", "has 2 words"), ("zz", "'zz' is no word that was learned"), ("", "has 0 words")]
)
def test_what_is_no_word_or_three_is_refused(text: str, fault: str) -> None:
    with pytest.raises(Refusal, match=fault):
        next(task(word2vec.TASK).predict(vectors(False), [text]))


def test_parts_of_words_have_no_vectors_here() -> None:
    with pytest.raises(Refusal, match=r"data\.tokenizer=bpe\(size=300\) makes parts of words; use words"):
        word2vec.TASK.open(
            word2vec.TASK.reader("captions")(name="captions", samples=30, held_out=8, tokenizer="bpe(size=300)"), 1
        )
