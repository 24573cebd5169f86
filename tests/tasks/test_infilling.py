"""Texts with gaps: what is read and written join to the text, whatever the dice say."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.data.crops import Stream
from heedful.data.data_spec import DataSpec
from heedful.data.formats.documents import Text
from heedful.errors import Refusal
from heedful.models.specs import BEGIN, END, PAD
from heedful.tasks.infilling import MARKS, MASK, Corruption, Infilling, Spans
from heedful.tokenizers import train

LETTERS = "abcdefghijklmnop"
TOKENIZERS = {kind: train([LETTERS], "characters", special=kind.special_tokens) for kind in (Infilling, Spans)}


def task(kind: type[Corruption], longest: int = 40, noise: float | None = None) -> Corruption:
    made = kind.made(TOKENIZERS[kind], longest)
    made.noise = kind.usual if noise is None else noise
    return made


def corrupted(own: Corruption, length: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    first = own.tokenizer.encode("a")[0]
    ids = np.random.default_rng(0).integers(first, first + len(LETTERS), length)
    return ids, *own.made_of(ids, own.gaps(length, np.random.default_rng(seed)))


@given(st.integers(2, 150), st.integers(0, 20), st.integers(0, 10_000), st.floats(0.05, 0.9))
@settings(max_examples=80, deadline=None)
def test_what_is_written_fills_the_gaps_of_what_is_read(length: int, spare: int, seed: int, noise: float) -> None:
    own = task(Spans, length + spare + 1, noise)
    ids, read, write, hidden = corrupted(own, length, seed)
    assert own.said(read, write.tolist()) == own.tokenizer.decode(ids.tolist())
    assert len(read) + 1 <= own.room[0] and len(write) + 1 <= own.room[1]
    assert spare or len(write) + 1 == own.room[1]
    marks = [int(at) for at in read if at in [own.tokenizer.special[mark] for mark in MARKS]]
    assert marks == [own.tokenizer.special[mark] for mark in MARKS[: len(marks)]] and len(marks) >= 1
    assert int(hidden.sum()) == len(ids) - (len(read) - len(marks)) == own.counts(length)[0]  # type: ignore[attr-defined]


@given(st.integers(1, 150), st.integers(0, 2), st.integers(0, 10_000), st.floats(0.05, 0.9))
@example(length=1, spare=0, seed=184, noise=0.75)  # a gap of no token in a text that leaves no room for its mark
@settings(max_examples=80, deadline=None)
def test_a_text_is_written_anew_and_all_that_is_not_hidden_is_read(
    length: int, spare: int, seed: int, noise: float
) -> None:
    own = task(Infilling, length + spare + 1, noise)
    ids, read, write, hidden = corrupted(own, length, seed)
    mask = own.tokenizer.special[MASK]
    assert write is ids and ids[~hidden].tolist() == [at for at in read if at != mask]
    assert len(read) + 1 <= own.room[0] and int(hidden.sum()) <= round(noise * length)
    assert not ((read[1:] == mask) & (read[:-1] == mask)).any()


def test_gaps_have_the_share_and_the_length_that_their_papers_say() -> None:
    for kind, share in ((Spans, 0.15), (Infilling, 0.3)):
        own, sizes, hidden = task(kind), [], 0
        for seed in range(200):
            found = own.gaps(200, np.random.default_rng(seed))
            sizes += [end - start for start, end in found]
            hidden += sum(end - start for start, end in found)
        assert share - 0.03 < hidden / 200 / 200 < share + 0.01, kind
        assert 2.4 < np.mean(sizes) < 3.4


@pytest.mark.parametrize("kind", [Infilling, Spans])
def test_batches_have_one_shape_and_follow_from_seed_epoch_and_crop(kind: type[Corruption]) -> None:
    own = task(kind)
    stream = Stream.of([Text(LETTERS * 9, "here"), Text("abc", "there")], own.tokenizer, 100)
    crops = own.crops(stream, own.window)
    batch = own.batch(own.fresh(crops, 1))
    assert [tensor.shape[1] for tensor in batch.values()] == [own.room[0], *[own.room[1]] * 3]
    again = own.batch(own.fresh(crops[2:3], 1))
    assert all((batch[name][2:3] == again[name]).all() for name in batch)
    assert (own.batch(own.fresh(crops, 2))["source"] != batch["source"]).any()
    assert (batch["target"][:, 0] == BEGIN).all() and (batch["answer"] == END).sum(1).eq(1).all()
    assert (
        batch["target"][:, 1:][batch["answer"][:, :-1] > END] == batch["answer"][:, :-1][batch["answer"][:, :-1] > END]
    ).all()
    assert ((batch["source"] == END).sum(1) == 1).all() and (batch["source"][:, 0] != PAD).all()


def test_an_input_without_a_gap_and_more_gaps_than_marks_are_refused() -> None:
    with pytest.raises(Refusal, match="the input has no gap; put <mask>"):
        task(Infilling).known("abc")
    with pytest.raises(Refusal, match="has <gap_7> and no <gap_1>; count gaps from <gap_0> up"):
        task(Spans).known("a<gap_0>b<gap_7>c")
    task(Spans).known("a<gap_1>b<gap_0>c")
    with pytest.raises(Refusal, match="more than the 100 marks"):
        Spans.open(DataSpec(name="captions", samples=400, held_out=40, longest=2000, noise=0.3), 1)[0].room  # noqa: B018
