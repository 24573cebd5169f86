"""Texts with gaps: what is read and written join to the text, whatever the dice say."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.data.span_corruption import Corruption, SpanCorruption
from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import Stream
from heedful.errors import Refusal
from heedful.models import build
from heedful.models.specs import BEGIN, END, PAD
from heedful.tasks.task import Task
from heedful.tasks.text.cropping import crops
from heedful.tasks.text.denoising import INFILLING, SPANS, GapsLearned, InfillingLearned, SpansLearned
from heedful.tasks.work import Work
from heedful.tokenizers import train
from tests.answered import plain

LETTERS = "abcdefghijklmnop"
KINDS: tuple[type[GapsLearned], ...] = (InfillingLearned, SpansLearned)
USUAL = {InfillingLearned: 0.3, SpansLearned: 0.15}
TOKENIZERS = {kind: train([LETTERS], "characters", special=kind.marks) for kind in KINDS}


def learned(kind: type[GapsLearned], longest: int = 40, noise: float | None = None) -> GapsLearned:
    return kind(TOKENIZERS[kind], longest=longest, noise=USUAL[kind] if noise is None else noise)


def corrupted(kept: GapsLearned, length: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    first, own = kept.tokenizer.encode("a")[0], kept.corruption
    ids = np.random.default_rng(0).integers(first, first + len(LETTERS), length)
    return ids, *own.made_of(ids, own.gaps(length, np.random.default_rng(seed)))


@given(st.integers(2, 150), st.integers(0, 20), st.integers(0, 10_000), st.floats(0.05, 0.9))
@settings(max_examples=80, deadline=None)
def test_what_is_written_fills_the_gaps_of_what_is_read(length: int, spare: int, seed: int, noise: float) -> None:
    kept = learned(SpansLearned, length + spare + 1, noise)
    ids, read, write, hidden = corrupted(kept, length, seed)
    own = kept.corruption
    assert isinstance(own, SpanCorruption)
    assert kept.whole(read, write.tolist()) == kept.tokenizer.decode(ids.tolist())
    assert len(read) + 1 <= own.room[0] and len(write) + 1 <= own.room[1]
    assert spare or len(write) + 1 == own.room[1]
    marks = tuple(int(at) for at in read if at in own.marks)
    assert marks == own.marks[: len(marks)] and len(marks) >= 1
    assert own.marks == tuple(kept.tokenizer.special[f"<gap_{at}>"] for at in range(100))
    assert int(hidden.sum()) == len(ids) - (len(read) - len(marks)) == own.counts(length)[0]


@given(st.integers(1, 150), st.integers(0, 2), st.integers(0, 10_000), st.floats(0.05, 0.9))
@example(length=1, spare=0, seed=184, noise=0.75)  # a gap of no token in a text that leaves no room for its mark
@settings(max_examples=80, deadline=None)
def test_a_text_is_written_anew_and_all_that_is_not_hidden_is_read(
    length: int, spare: int, seed: int, noise: float
) -> None:
    kept = learned(InfillingLearned, length + spare + 1, noise)
    ids, read, write, hidden = corrupted(kept, length, seed)
    mask = kept.tokenizer.special["<mask>"]
    assert write is ids and ids[~hidden].tolist() == [at for at in read if at != mask]
    assert len(read) + 1 <= kept.corruption.room[0] and int(hidden.sum()) <= round(noise * length)
    assert not ((read[1:] == mask) & (read[:-1] == mask)).any()


def test_gaps_have_the_share_and_the_length_that_their_papers_say() -> None:
    for kind, share in USUAL.items():
        own: Corruption = learned(kind).corruption
        sizes, hidden = list[int](), 0
        for seed in range(200):
            found = own.gaps(200, np.random.default_rng(seed))
            sizes += [end - start for start, end in found]
            hidden += sum(end - start for start, end in found)
        assert share - 0.03 < hidden / 200 / 200 < share + 0.01, kind
        assert 2.4 < np.mean(sizes) < 3.4


@pytest.mark.parametrize("kind", [INFILLING, SPANS], ids=lambda kind: kind.name)
def test_batches_have_one_shape_and_follow_from_seed_epoch_and_crop(kind: Task) -> None:
    assert issubclass(kind.learned, GapsLearned)
    kept = learned(kind.learned)
    own, room = Work(kind, kept), kept.corruption.room
    stream = Stream.of([Text(LETTERS * 9, "here"), Text("abc", "there")], kept.tokenizer, 100)
    found = crops(stream, kept.window, kept.window)
    batch = own.batch(own.augmented(found, 1))
    assert [tensor.shape[1] for tensor in batch.values()] == [room[0], *[room[1]] * 3]
    again = own.batch(own.augmented(found[2:3], 1))
    assert all((batch[name][2:3] == again[name]).all() for name in batch)
    assert (own.batch(own.augmented(found, 2))["source"] != batch["source"]).any()
    assert (batch["target"][:, 0] == BEGIN).all() and (batch["answer"] == END).sum(1).eq(1).all()
    assert (
        batch["target"][:, 1:][batch["answer"][:, :-1] > END] == batch["answer"][:, :-1][batch["answer"][:, :-1] > END]
    ).all()
    assert ((batch["source"] == END).sum(1) == 1).all() and (batch["source"][:, 0] != PAD).all()


def test_an_input_without_a_gap_and_more_gaps_than_marks_are_refused() -> None:
    with pytest.raises(Refusal, match="the input has no gap; put <mask>"):
        INFILLING.pipeline.accepts("abc", learned(InfillingLearned))
    with pytest.raises(Refusal, match="has <gap_7> and no <gap_1>; count gaps from <gap_0> up"):
        SPANS.pipeline.accepts("a<gap_0>b<gap_7>c", learned(SpansLearned))
    SPANS.pipeline.accepts("a<gap_1>b<gap_0>c", learned(SpansLearned))
    with pytest.raises(Refusal, match="more than the 100 marks"):
        learned(SpansLearned, 2000, 0.3).corruption.room  # noqa: B018


@pytest.mark.parametrize("kind", [INFILLING, SPANS], ids=lambda kind: kind.name)
def test_a_crop_is_made_whole_as_its_beginning_is_when_it_is_asked(kind: Task) -> None:
    assert issubclass(kind.learned, GapsLearned)
    kept = learned(kind.learned)
    torch.manual_seed(0)
    model = build("bart", vocab=len(kept.tokenizer), width=16, depth=1, heads=2, length=64).eval()
    own = Work(kind, kept).suited(model.spec)
    stream = Stream.of([Text(LETTERS * 9, "here")], kept.tokenizer, 100)
    samples = crops(stream, kept.window, kept.window)[:2]
    table = own.show(model, samples)
    assert plain(own.predict(model, map(own.as_input, samples))) == [row[2].replace("∅", "") for row in table.rows]
    assert all(row[1] in LETTERS * 9 for row in table.rows)
