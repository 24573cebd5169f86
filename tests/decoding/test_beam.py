"""Beam search against the whole space, and against the same search written out in plain Python."""

import itertools

import pytest
import torch
from torch import Tensor

from heedful.attention import Memory, Sight
from heedful.attention.kv_cache_tree import TreeMemory
from heedful.attention.mechanisms import Softmax
from heedful.decoding import Answer
from heedful.decoding.beam import top
from heedful.decoding.generated_answer import penalty
from heedful.errors import Refusal
from heedful.models import Transformer
from heedful.models.text.transformer import BEGIN, END
from heedful.models.writer import ROOM
from tests.decoding.toys import Biased, beam, greedy, same, sources, taught, writer

VOCAB, LIMIT = 6, 4
LENGTHS = (4, 2, 0)
PENALTIES = (0.0, 0.6, 3.0, -0.6)


def best_first(answers: list[Answer], length_penalty: float) -> list[Answer]:
    return sorted(answers, key=lambda one: (not one.finished, -one.ranked(length_penalty)))


def every_answer(model: Transformer, source: Tensor) -> list[Answer]:
    """All that can be written of a source within the limit, each with its score by teacher forcing."""
    words = range(END + 1, VOCAB)
    ended = [(*said, END) for length in range(LIMIT) for said in itertools.product(words, repeat=length)]
    written = ended + list(itertools.product(words, repeat=LIMIT))
    lengths = torch.tensor([len(one) for one in written])
    target = torch.tensor([[BEGIN, *one, *([END] * (LIMIT - len(one)))] for one in written])
    chances = model(source.expand(len(written), -1), target[:, :-1]).log_softmax(-1)
    chances = chances.gather(2, target[:, 1:, None]).squeeze(2)
    scores = chances.masked_fill(torch.arange(LIMIT) >= lengths[:, None], 0.0).sum(1)
    return [Answer.of(one, score, (END,)) for one, score in zip(written, scores.tolist(), strict=True)]


def by_hand(model: Transformer, source: Tensor, beams: int, limit: int) -> list[Answer]:
    """Beam search on lists, which never stops before the limit."""
    going: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    answers: list[Answer] = []
    for _ in range(limit):
        ways = []
        for said, score in going:
            chances = model(source[None], torch.tensor([[BEGIN, *said]]))[0, -1].log_softmax(-1).tolist()
            ways += [((*said, token), score + chances[token]) for token in range(END, len(chances))]
        ways.sort(key=lambda way: -way[1])
        answers += [Answer.of(*way, (END,)) for way in ways[:beams] if way[0][-1] == END]
        going = [way for way in ways if way[0][-1] != END][:beams]
    return answers + [Answer.of(*way, (END,)) for way in going]


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_as_wide_as_the_space_finds_what_a_search_of_all_finds(seed):
    model, source = writer(seed, VOCAB), sources(LENGTHS, VOCAB, seed)
    with torch.no_grad():
        expected = [every_answer(model, row) for row in source]
    for length_penalty, best in itertools.product(PENALTIES, (1, 5, 60)):  # 40 end within the limit, cut ones follow
        found = beam(model, source, 128, best, LIMIT, length_penalty)
        for ours, theirs in zip(found, expected, strict=True):
            same(ours, best_first(theirs, length_penalty)[:best])


def test_what_a_search_of_all_finds_is_not_always_the_same():
    best: set[tuple[float, int]] = set()
    for seed, length_penalty in itertools.product(range(8), PENALTIES):
        found = beam(writer(seed, VOCAB), sources(LENGTHS, VOCAB, seed), 128, 1, LIMIT, length_penalty)
        best |= {(length_penalty, len(answer.tokens)) for [answer] in found}
    assert {length for length_penalty, length in best if length_penalty == 0.0} >= {0, 1}
    assert {length for length_penalty, length in best if length_penalty == 3.0} >= {0, 1, 2, 3}


@pytest.mark.parametrize(("beams", "best"), [(1, 1), (2, 2), (3, 1), (5, 4)])
def test_a_narrow_beam_finds_what_the_plain_search_finds_that_never_stops_early(beams, best):
    for seed in range(6):
        model, source = writer(seed), sources(LENGTHS, seed=seed)
        with torch.no_grad():
            expected = [by_hand(model, row, beams, 8) for row in source]
        for length_penalty in PENALTIES:
            found = beam(model, source, beams, best, 8, length_penalty)
            for ours, theirs in zip(found, expected, strict=True):
                same(ours, best_first(theirs, length_penalty)[:best])


@pytest.mark.parametrize("seed", range(6))
def test_one_beam_is_greedy(seed):
    model, source = writer(seed), sources(seed=seed)
    same([answers[0] for answers in beam(model, source, beams=1, max_new_tokens=20)], greedy(model, source, 20))


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_the_best_answers_are_sorted_distinct_and_rightly_scored(length_penalty):
    model, source = writer(4), sources()
    for row, answers in zip(source, beam(model, source, 6, 6, 12, length_penalty), strict=True):
        assert len({(answer.tokens, answer.finished) for answer in answers}) == 6
        assert answers == best_first(answers, length_penalty)
        for answer in answers:
            assert answer.score == pytest.approx(taught(model, row, answer), abs=1e-10)


def test_a_length_penalty_makes_answers_longer():
    mean = []
    for length_penalty in (0.0, 1.0, 3.0):
        found = [beam(writer(seed), sources(), 5, 1, 12, length_penalty) for seed in range(4)]
        mean.append(sum(len(answers[0].tokens) for batch in found for answers in batch) / 28)
    assert mean[0] < mean[1] < mean[2]


def test_the_penalty_is_that_of_gnmt():
    assert penalty(1, 0.6) == 1.0
    assert penalty(7, 0.0) == 1.0
    assert penalty(7, 1.0) == 2.0
    assert Answer((3, 4, 5, 6, 7, 8), -3.0, True).ranked(1.0) == -1.5  # six tokens and END


def test_search_stops_when_nothing_open_can_come_among_the_best():
    model = Biased(writer(2))
    answers = beam(model, sources(), 3, 1, 40)
    assert all(one.finished for [one] in answers)
    assert len(model.rows) < 20
    first, *rest = model.rows
    assert first == 7  # one target a source, and from then on as many as there are beams
    assert {rows % 3 for rows in rest} == {0}
    assert rest == sorted(rest, reverse=True)


def test_top_is_a_stable_sort_cut_short():
    torch.manual_seed(0)
    for kinds in (2, 5, 1000):
        x = torch.randint(0, kinds, (50, 40)).double()
        x[::3, ::2] = -torch.inf
        for count in (1, 7, 40):
            values, index = x.sort(dim=-1, descending=True, stable=True)
            ours = top(x, count)
            assert ours[0].equal(values[:, :count])
            assert ours[1].equal(index[:, :count])


@pytest.mark.parametrize(("beams", "best"), [(3, 4), (3, 0), (0, 0)])
def test_more_answers_than_beams_are_refused(beams, best):
    with pytest.raises(Refusal, match="as many beams as answers"):
        beam(writer(), sources(), beams, best)


class Remembering(Biased):
    """A writer that never ends and notes after each step what its memory holds, and where."""

    def __init__(self, model: Transformer) -> None:
        super().__init__(model, {END: -torch.inf})
        self.places: list[set[int]] = []
        self.held: list[Tensor] = []

    def states(self, tokens, context, memory, positions=None):
        states = super().states(tokens, context, memory, positions)
        slots = [kept for slot in memory.slots.values() for kept in slot]
        self.places.append({kept.data_ptr() for kept in slots})
        self.held.append(slots[0][:, :, : memory.written].clone())
        return states


def test_beams_that_change_places_leave_keys_and_values_where_they_are(monkeypatch):
    orders, follow = [], TreeMemory.follow
    monkeypatch.setattr(TreeMemory, "follow", lambda tree, parents: (orders.append(parents), follow(tree, parents))[1])
    model = Remembering(writer(4))
    beam(model, sources((7, 7, 7)), 4, 4, ROOM)
    assert sum(len({tuple(row) for row in order.tolist()} - {(0, 1, 2, 3)}) > 0 for order in orders[:-1]) > 10
    assert len({frozenset(places) for places in model.places}) == 1
    assert all(model.held[-1][:, :, : held.shape[2]].equal(held) for held in model.held)


def test_a_source_is_read_once_for_all_its_beams():
    model = writer(4)
    shapes = []
    cross = model.decoder.blocks[0].cross.mechanism
    cross.register_forward_pre_hook(lambda m, given: shapes.append((given[0].shape[2], given[1].shape[0])))
    beam(model, sources((7, 7)), 5, 1, 8)
    assert {rows for rows, _ in shapes} == {1, 5}
    assert {batch for _, batch in shapes} <= {1, 2}  # sources, not beams


class Running(Softmax):
    """A mechanism that keeps something else than columns: here, by the row, what it would have kept by the column."""

    sums = True

    def recall(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight, memory: Memory) -> Tensor:
        assert type(memory) is Memory
        return super().recall(q, k, v, sight, memory)


@pytest.mark.parametrize("seed", range(3))
def test_what_rows_cannot_share_is_copied_for_each_beam(seed):
    model = writer(seed)
    expected = beam(model, sources(), 4, 3, 12)
    for block in model.decoder.blocks:
        block.attention.mechanism = Running()
    for ours, theirs in zip(beam(model, sources(), 4, 3, 12), expected, strict=True):
        same(ours, theirs)


def test_more_beams_than_learned_positions_are_searched_all_the_same():
    model = writer(position="learned", length=5)
    for ours, theirs in zip(
        beam(model, sources((5, 3)), 9, 9, 5), beam(model, sources((5, 3)), 9, 9, 5, remember=False), strict=True
    ):
        same(ours, theirs)
