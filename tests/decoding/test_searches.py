"""What holds for both searches: memory saves work and changes nothing, and no source minds the others in its batch."""

import pytest
import torch
from torch import Tensor

from heedful.attention import Across, FixedMemory, Memory, Sight
from heedful.decoding import Answer, Steps
from heedful.errors import Failure, Refusal
from heedful.models.text.transformer import BEGIN, END, PAD
from tests.decoding.toys import KINDS, Biased, beam, greedy, same, sources, taught, told, writer

NEW = 20  # more than a memory has room for at first, so that it grows on the way


def one_best(model, source, max_new_tokens=None, **words):
    return [answers[0] for answers in beam(model, source, beams=3, max_new_tokens=max_new_tokens, **words)]


SEARCHES = pytest.mark.parametrize("search", [greedy, one_best])


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_with_memory_is_greedy_without(kind, seed):
    model, source = writer(seed, **KINDS[kind]), sources()
    same(greedy(model, source, NEW), greedy(model, source, NEW, remember=False))


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_beam_with_memory_is_beam_without(kind, seed):
    model, source = writer(seed, **KINDS[kind]), sources()
    fast = beam(model, source, 4, 3, NEW, length_penalty=0.6)
    slow = beam(model, source, 4, 3, NEW, length_penalty=0.6, remember=False)
    for ours, theirs in zip(fast, slow, strict=True):
        same(ours, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_many_sources_are_answered_as_one_by_one(kind):
    model, source = writer(4, **KINDS[kind]), sources()
    alone = [row[row != PAD][None] for row in source]
    for max_new_tokens in (NEW, None):  # what is not given follows from each source's own length
        same(greedy(model, source, max_new_tokens), [greedy(model, one, max_new_tokens)[0] for one in alone])
    for ours, one in zip(beam(model, source, 4, 3, NEW, 0.6), alone, strict=True):
        same(ours, beam(model, one, 4, 3, NEW, 0.6)[0])


def test_the_toys_answer_at_unequal_length_and_not_all_alike():
    answers = [a for seed in (0, 4) for kind in KINDS.values() for a in greedy(writer(seed, **kind), sources(), NEW)]
    assert len({len(a.tokens) for a in answers}) > 10
    assert len({a.tokens for a in answers}) > 60
    assert {a.finished for a in answers} == {True, False}


@SEARCHES
def test_a_score_is_the_sum_that_teacher_forcing_gives(search):
    model, source = writer(4), sources()
    for row, answer in zip(source, search(model, source, NEW), strict=True):
        assert answer.score == pytest.approx(taught(model, row, answer), abs=1e-10)


@SEARCHES
def test_a_model_that_never_ends_is_cut_and_says_so(search):
    for answer in search(Biased(writer(), {END: -torch.inf}), sources(), 6):
        assert len(answer.tokens) == 6
        assert not answer.finished


@SEARCHES
def test_a_model_that_ends_at_once_says_nothing_and_is_finished(search):
    model = Biased(writer(), {END: 1e3})
    assert search(model, sources()) == [Answer((), 0.0, True)] * 7
    assert model.rows == [7]


@SEARCHES
def test_padding_and_begin_are_never_written_however_likely(search):
    model = Biased(writer(), {PAD: 5.0, BEGIN: 5.0})
    answers = search(model, sources(), NEW)
    assert any(answer.tokens for answer in answers)
    for answer in answers:
        assert {PAD, BEGIN, END}.isdisjoint(answer.tokens)


@SEARCHES
def test_an_answer_is_at_most_fifty_tokens_longer_than_its_own_source(search):
    lengths = (7, 3, 0)
    answers = search(Biased(writer(), {END: -torch.inf}), sources(lengths))
    assert [len(answer.tokens) for answer in answers] == [length + 50 for length in lengths]


@SEARCHES
def test_nobody_writes_beyond_the_positions_a_model_has_learned(search):
    model = Biased(writer(position="learned", length=20), {END: -torch.inf})
    assert {len(answer.tokens) for answer in search(model, sources())} == {20}
    assert {len(answer.tokens) for answer in search(model, sources(), 20, remember=False)} == {20}
    with pytest.raises(Refusal, match="at most 20"):
        search(model, sources(), 21)


@SEARCHES
def test_an_empty_source_and_an_empty_batch_are_answered(search):
    [answer] = search(writer(0), torch.zeros(1, 0, dtype=torch.long), NEW)
    same([answer], search(writer(0), torch.full((1, 4), PAD), NEW))
    assert answer.score == answer.score
    assert search(writer(0), torch.zeros(0, 4, dtype=torch.long), NEW) == []


@SEARCHES
def test_of_equally_likely_tokens_the_first_is_taken(search):
    model = Biased(writer(), dict.fromkeys(range(12), 0.0))
    assert [answer.tokens for answer in search(model, sources(), 6)] == [()] * 7


@SEARCHES
def test_every_part_is_in_its_own_mode_again_afterwards(search):
    model = writer(4).train()
    model.encoder.eval()
    modes = [part.training for part in model.modules()]
    same(search(model, sources(), NEW), search(writer(4), sources(), NEW))  # no dropout meanwhile
    assert [part.training for part in model.modules()] == modes
    with pytest.raises(IndexError):
        search(model, torch.full((1, 3), 99), NEW)
    assert [part.training for part in model.modules()] == modes


def test_what_is_finished_leaves_the_batch_of_greedy():
    model = Biased(writer(4))
    answers = greedy(model, sources(), NEW)
    assert sum(model.rows) == sum(len(answer.tokens) + answer.finished for answer in answers)
    assert model.rows == sorted(model.rows, reverse=True)
    assert len(set(model.rows)) > 2


@SEARCHES
def test_a_source_is_encoded_and_projected_once(search, monkeypatch):
    model, made, answers = Biased(writer(4)), [], Across.answers

    def counted(project: Across, states: Tensor, sight: Sight) -> tuple[Tensor, Tensor]:
        made.append((project, states.shape[0]))
        return answers(project, states, sight)

    monkeypatch.setattr(Across, "answers", counted)
    search(model, sources(), NEW)
    assert model.encoded == 1
    projects = [part for part in model.modules() if isinstance(part, Across)]
    assert made == [(project, 7) for project in projects]  # not once a beam


def started(model, source, memory):
    return Steps(model, model.begin(told(model, source)), memory)


@pytest.mark.parametrize("remember", [True, False])
def test_targets_that_change_places_go_on_with_their_own_sources(remember):
    model, source = writer(4), sources()
    with torch.no_grad():
        steps = started(model, source, Memory() if remember else None)
        first = steps.chances().flip(0)
        steps.take(torch.arange(7).flip(0))
        steps.write(first.argmax(-1))
        expected = model(source.flip(0), steps.written)[:, -1].log_softmax(-1)
        torch.testing.assert_close(steps.chances()[:, END:], expected[:, END:], atol=1e-10, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_of_fixed_shapes_says_the_same(kind):
    model, source = writer(4, **KINDS[kind]), sources()
    with torch.no_grad():
        steps, fixed = started(model, source, Memory()), started(model, source, FixedMemory(8))
        for index in ([4, 1, 1, 0, 6], [1, 2, 0], [2, 1, 0], [0, 1]):
            torch.testing.assert_close(fixed.chances(), steps.chances(), atol=1e-10, rtol=0)
            for one in (steps, fixed):
                one.write(torch.arange(len(one)) + 3)
                one.take(torch.tensor(index))
    assert fixed.sources.tolist() == steps.sources.tolist() == [4, 1]


@pytest.mark.parametrize(("dtype", "exact"), [(torch.bfloat16, torch.float32), (torch.float64, torch.float64)])
def test_log_probabilities_are_made_in_single_precision_or_better(dtype, exact):
    steps = started(writer().to(dtype), sources(), Memory())
    chances = steps.chances()
    assert chances.dtype == exact
    assert chances[:, [PAD, BEGIN]].eq(-torch.inf).all()


@SEARCHES
@pytest.mark.parametrize("score", [torch.nan, torch.inf])
def test_scores_that_are_no_numbers_are_a_failure(search, score):
    with pytest.raises(Failure, match="not numbers"):
        search(Biased(writer(), {5: score}), sources(), NEW)


@SEARCHES
def test_nothing_to_write_is_refused(search):
    with pytest.raises(Refusal, match="1 or more"):
        search(writer(), sources(), 0)
