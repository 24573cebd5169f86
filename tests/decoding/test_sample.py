"""Sampling: what is drawn follows from the seed and the source alone, and is as frequent as the model says."""

import itertools
import math
import random
from collections import Counter

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from heedful.decoding import Answer
from heedful.decoding.dice import AHEAD, Dice
from heedful.decoding.sample import draw
from heedful.decoding.truncation import Cuts
from heedful.errors import Failure, Refusal
from heedful.models.text.transformer import BEGIN, END, PAD
from tests.decoding.toys import KINDS, Biased, greedy, same, sample, sources, taught, writer

NEW = 40  # more than a memory has room for at first and than dice are thrown ahead


def ones(found: list[list[Answer]]) -> list[Answer]:
    """All answers in a row."""
    return [answer for answers in found for answer in answers]


def unlikely(counted: Counter[int], chances: list[float]) -> float:
    """How many deviations counts are from what the chances let expect, by Pearson's chi-square over enough classes."""
    total = counted.total()
    assert all(chances[at] > 0 for at in counted)
    seen = [(counted[at], total * chance) for at, chance in enumerate(chances) if total * chance >= 5]
    rest = total - sum(count for count, _ in seen), total - sum(wanted for _, wanted in seen)
    seen += [rest] if rest[1] >= 5 else []
    freedom = len(seen) - 1
    return (sum((count - wanted) ** 2 / wanted for count, wanted in seen) - freedom) / math.sqrt(2 * freedom)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(7)), st.integers(1, 7), st.integers(0, 2**70), st.integers(1, 3))
def test_a_source_is_answered_alike_in_every_batch_and_order(order: list[int], size: int, seed: int, best: int) -> None:
    model, source, places = writer(4), sources(), order[:size]
    whole = sample(model, source, 0.9, top_p=0.95, max_new_tokens=NEW, seed=seed, best=best)
    part = sample(model, source[places], 0.9, 0, 0.95, 0.0, NEW, seed, best, numbers=places)
    same(ones(part), ones([whole[at] for at in places]))


def test_padding_changes_nothing() -> None:
    model, source = writer(4), sources()
    for at, row in enumerate(source):
        alone = sample(model, row[row != PAD][None], seed=3, best=2, numbers=[at])
        same(alone[0], sample(model, source, seed=3, best=2)[at])


@pytest.mark.parametrize("kind", KINDS)
def test_sampling_with_memory_is_sampling_without(kind: str) -> None:
    model, source = writer(4, **KINDS[kind]), sources()
    fast = sample(model, source, 1.5, max_new_tokens=NEW, seed=1, best=2)
    same(ones(fast), ones(sample(model, source, 1.5, max_new_tokens=NEW, seed=1, best=2, remember=False)))


def test_one_draw_is_the_first_of_many() -> None:
    model, source = writer(4), sources()
    many = sample(model, source, max_new_tokens=NEW, best=5)
    assert [len(answers) for answers in many] == [5] * 7
    same([answers[0] for answers in many], ones(sample(model, source, max_new_tokens=NEW)))


def test_draws_seeds_and_numbers_all_make_other_answers() -> None:
    model, source = writer(4), sources((7,)).expand(20, -1)  # the same source all over
    hot = {"temperature": 3.0, "max_new_tokens": NEW}

    def several(answers: list[Answer]) -> int:
        return len({answer.tokens for answer in answers})

    assert several(ones(sample(model, source, **hot))) > 15
    assert several(sample(model, source[:1], **hot, best=20)[0]) > 15
    assert several([sample(model, source[:1], **hot, seed=seed)[0][0] for seed in range(20)]) > 15
    assert several(ones(sample(model, source, **hot, numbers=[5] * 20))) == 1


def test_nobody_elses_dice_are_touched() -> None:
    def states() -> tuple[bytes, str, object]:
        return bytes(torch.get_rng_state().tolist()), repr(numpy.random.get_state()), random.getstate()

    model, source = writer(), sources()
    before = states()
    one = sample(model, source, max_new_tokens=NEW)
    assert states() == before
    torch.manual_seed(99)
    same(ones(sample(model, source, max_new_tokens=NEW)), ones(one))


def test_a_score_is_the_models_own_whatever_the_temperature_and_the_cuts() -> None:
    model, source = writer(4), sources()
    for words in ({}, {"temperature": 0.3}, {"temperature": 5.0, "top_k": 4, "top_p": 0.9, "min_p": 0.01}):
        for row, answers in zip(source, sample(model, source, max_new_tokens=NEW, best=2, **words), strict=True):
            for answer in answers:
                assert answer.score == pytest.approx(taught(model, row, answer), abs=1e-10)


@pytest.mark.parametrize("words", [{"temperature": 1e-300}, {"top_k": 1}, {"top_p": 1e-9}, {"min_p": 1 - 1e-12}])
def test_at_the_ends_only_the_likeliest_token_is_left(words: dict[str, float]) -> None:
    model, source = writer(4), sources()
    same(ones(sample(model, source, max_new_tokens=NEW, seed=5, **words)), greedy(model, source, NEW))  # type: ignore[arg-type]


CUTS = [Cuts(), Cuts(0.5), Cuts(2.0), Cuts(1.5, top_k=5), Cuts(1.5, top_p=0.8), Cuts(1.5, min_p=0.1)]


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_tokens_are_as_frequent_as_the_chances_say(cuts: Cuts) -> None:
    model, source, many = writer(8), sources((6,)), 8_000
    with torch.no_grad():
        scores = model(source, torch.tensor([[BEGIN]]))[:, -1]
    scores[:, [PAD, BEGIN]] = -torch.inf
    chances = cuts(scores).softmax(-1)[0].tolist()
    assert sum(chance > 0.01 for chance in chances) >= 3
    found = sample(model, source, *vars(cuts).values(), max_new_tokens=1, best=many)[0]
    assert unlikely(Counter(answer.tokens[0] if answer.tokens else END for answer in found), chances) < 4


def test_whole_answers_are_as_frequent_as_the_product_of_their_chances_says() -> None:
    model, source, vocab, limit, many = writer(5, vocab=6), sources((4,), vocab=6), 6, 3, 8_000
    words = range(END + 1, vocab)
    ended = [(*said, END) for length in range(limit) for said in itertools.product(words, repeat=length)]
    every = ended + list(itertools.product(words, repeat=limit))
    chances = [chance_of(model, source, one) for one in every]
    assert sum(chances) == pytest.approx(1.0)
    assert sum(chance > 0.005 for chance in chances) >= 10
    found = sample(model, source, 1.0, max_new_tokens=limit, best=many, seed=1)[0]
    places = {one: at for at, one in enumerate(every)}
    counted = Counter(places[(*answer.tokens, *([END] if answer.finished else []))] for answer in found)
    assert unlikely(counted, chances) < 4


def chance_of(model: torch.nn.Module, source: Tensor, written: tuple[int, ...]) -> float:
    """The product of the chances of an answer's tokens, PAD and BEGIN never written."""
    with torch.no_grad():
        scores = model(source, torch.tensor([[BEGIN, *written[:-1]]]))[0]
    scores[:, [PAD, BEGIN]] = -torch.inf
    return float(scores.softmax(-1).gather(1, torch.tensor(written)[:, None]).prod())


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1.0)), min_size=1, max_size=12).filter(any),
    st.one_of(st.sampled_from([0.0, 1 - 2**-53]), st.floats(0.0, 1.0, exclude_max=True)),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_a_throw_chooses_the_token_at_which_the_summed_chances_pass_it(
    weights: list[float], throw: float, dtype: torch.dtype
) -> None:
    scores = torch.tensor([weights], dtype=dtype).log()
    [token] = draw(scores, torch.tensor([throw], dtype=torch.float64)).tolist()
    assert weights[token] > 0
    chances = [weight / math.fsum(weights) for weight in weights]
    assert math.fsum(chances[:token]) - 1e-5 <= throw <= math.fsum(chances[: token + 1]) + 1e-5


def test_dice_are_even_and_know_nothing_of_each_other() -> None:
    columns = []
    for seed, step in ((0, 0), (0, 1), (1, 0), (2**70, 0)):
        dice = Dice(seed, range(3000), 2)
        thrown = [dice.throw(range(6000), at) for at in range(step + 1)][step]
        columns += [thrown[::2], thrown[1::2]]
    table = torch.stack(columns)  # by seed, step and draw, of 3000 sources
    assert table.min() >= 0 and table.max() < 1
    gaps = (table.sort(-1).values - (torch.arange(3000) + 0.5) / 3000).abs().amax(-1)
    assert gaps.max() < 1.95 / math.sqrt(3000)  # Kolmogorov's bound at one in a thousand
    together = torch.corrcoef(torch.cat((table, table.roll(1, -1)))).fill_diagonal_(0)
    assert together.abs().max() < 4.5 / math.sqrt(3000)


def test_a_die_is_the_same_whoever_else_has_left() -> None:
    many, alone, thrown_at_all = Dice(3, range(5), 2), Dice(3, [2], 2), set()
    for step in range(2 * AHEAD + 3):
        going = [4, 5, 9] if step > 5 else range(10)
        thrown = dict(zip(going, many.throw(going, step).tolist(), strict=True))
        assert [thrown[4], thrown[5]] == alone.throw([0, 1], step).tolist()
        thrown_at_all |= set(thrown.values())
    assert len(thrown_at_all) == 6 * 10 + (2 * AHEAD - 3) * 3  # and never the same again


def test_padding_and_begin_are_never_drawn_however_likely() -> None:
    answers = ones(sample(Biased(writer(), {PAD: 9.0, BEGIN: 9.0}), sources(), max_new_tokens=NEW, best=3))
    assert any(answer.tokens for answer in answers)
    assert all({PAD, BEGIN, END}.isdisjoint(answer.tokens) for answer in answers)


def test_an_answer_is_cut_at_its_own_limit_and_says_so() -> None:
    endless = Biased(writer(), {END: -torch.inf})
    for new, lengths in ((6, [6, 6, 6]), (None, [57, 53, 50])):
        answers = ones(sample(endless, sources((7, 3, 0)), max_new_tokens=new))
        assert [len(answer.tokens) for answer in answers] == lengths
        assert not any(answer.finished for answer in answers)


def test_what_is_finished_leaves_the_batch_and_a_source_is_encoded_once() -> None:
    model = Biased(writer(4))
    answers = ones(sample(model, sources(), max_new_tokens=NEW, best=4))
    assert model.encoded == 1
    assert model.rows[0] == 28
    assert sum(model.rows) == sum(len(answer.tokens) + answer.finished for answer in answers)


def test_an_empty_source_and_an_empty_batch_are_answered() -> None:
    [[answer]] = sample(writer(), torch.zeros(1, 0, dtype=torch.long), max_new_tokens=NEW)
    same([answer], sample(writer(), torch.full((1, 4), PAD), max_new_tokens=NEW)[0])
    assert sample(writer(), torch.zeros(0, 4, dtype=torch.long)) == []


def test_every_part_is_in_its_own_mode_again_afterwards() -> None:
    model = writer(4).train()
    model.encoder.eval()
    modes = [part.training for part in model.modules()]
    same(ones(sample(model, sources(), max_new_tokens=NEW)), ones(sample(writer(4), sources(), max_new_tokens=NEW)))
    assert [part.training for part in model.modules()] == modes


def test_scores_that_are_no_numbers_are_a_failure() -> None:
    with pytest.raises(Failure, match="not numbers"):
        sample(Biased(writer(), {5: torch.nan}), sources())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"seed": -1}, "seed=-1 is below 0"),
        ({"best": 0}, "1 or more"),
        ({"temperature": 0.0}, "temperature=0.0"),
        ({"max_new_tokens": 0}, "max_new_tokens=0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(words: dict[str, float], said: str) -> None:
    with pytest.raises(Refusal, match=said):
        sample(writer(), sources(), **words)  # type: ignore[arg-type]
