"""A tree in memory: each of the rows that stand side by side sees its own past, as if it had been written alone."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from heedful.attention import Causal, Context, Padding, Rotary
from heedful.attention.kv_cache_tree import TreeMemory
from tests.laws import cases, families
from tests.laws.cases import BATCH, EXACT, HEADS, LENGTH, MECHANISMS, VALUE, WIDTH, stack
from tests.laws.test_memory import closed

SIZES = {"is pruned": 2, "is large enough": 64}
WIDTHS = (1, 3, 2, 3, 3, 4, 1)  # rows side by side at each step


def growing(coins: torch.Generator, batch: int = BATCH) -> Iterator[tuple[Tensor, Tensor]]:
    """For each step, behind which of the last step's rows each row stands (B K), and its inputs (B K M)."""
    before = 1
    for width in WIDTHS:
        parents = torch.randint(0, before, (batch, width), generator=coins)
        yield parents, torch.randn(batch, width, WIDTH, generator=coins, dtype=torch.float64)
        before = width


def lengthened(paths: Tensor | None, parents: Tensor, new: Tensor) -> Tensor:
    """Every row's whole past and itself: B K T M."""
    if paths is None:
        return new[:, :, None]
    index = parents[:, :, None, None].expand(-1, -1, *paths.shape[2:])
    return torch.cat((paths.gather(1, index), new[:, :, None]), 2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("word", MECHANISMS)
@torch.no_grad()
def test_rows_of_a_tree_are_sequences_of_their_own(word, size):
    steps = (1,) * LENGTH
    fitting = [mask for mask, made in cases.masks().items() if closed(made, steps)]
    assert {"causal", "causal & window", "causal & padding", "given for all"} <= set(fitting)
    for groups, biases in cases.few_of(word, [(2, cases.BIASES), (HEADS, cases.FEW), (1, cases.FEW)], 1):
        blocks = stack(word, groups, Rotary())
        axes = {"groups": [groups], "value": [VALUE], "sight": ["remembered"]}
        for case in cases.cases(word, mask=fitting, bias=biases, **axes):
            memory, bias, mask = TreeMemory(SIZES[size]), case.seen().bias, cases.masks()[case.mask]
            paths = None
            for parents, new in growing(torch.Generator().manual_seed(0)):
                memory.follow(parents)
                here = blocks(new, mask.over(new, memory, bias), memory)
                paths = lengthened(paths, parents, new)
                whose = torch.arange(BATCH).repeat_interleave(new.shape[1])
                alone = paths.flatten(0, 1)
                there = blocks(alone, mask.take(whose).over(alone, None, bias))[:, -1].view_as(here)
                torch.testing.assert_close(here, there, **EXACT, msg=lambda m, c=case: f"{c}: {m}")


@pytest.mark.parametrize("word", ["softmax", "linear"])
@pytest.mark.parametrize("size", SIZES)
@torch.no_grad()
def test_sources_that_leave_a_tree_do_not_change_the_others(size, word):
    blocks, mask = stack(word, position=Rotary()), Causal() & Padding(torch.tensor([LENGTH, 5, 2]))
    whole, few = TreeMemory(SIZES[size]), TreeMemory(SIZES[size])
    stay, left = torch.arange(BATCH), {2: [0, 2], 4: [1]}  # at each step, which of those still there stay
    for step, (parents, new) in enumerate(growing(torch.Generator().manual_seed(1))):
        if step in left:
            few.take(torch.tensor(left[step]))
            stay = stay[left[step]]
        whole.follow(parents)
        few.follow(parents[stay])
        all_of_them = blocks(new, mask.over(new, whole), whole)
        those = blocks(new[stay], mask.take(stay).over(new[stay], few), few)
        torch.testing.assert_close(those, all_of_them[stay], **EXACT)
    assert stay.tolist() == [2]


@torch.no_grad()
def test_a_tree_lets_go_of_what_nobody_goes_back_to():
    blocks, memory = stack("softmax"), TreeMemory(8)
    for _ in range(50):
        memory.follow(torch.zeros(BATCH, 4, dtype=torch.long))  # three of four are left behind
        new = torch.randn(BATCH, 4, WIDTH, dtype=torch.float64)
        blocks(new, Causal().over(new, memory), memory)
    assert memory.size == 128  # twice the room of the 50 that live, where 200 were written
    assert {slot.shape[2] for kept in memory.slots.values() for slot in kept} == {128}


@torch.no_grad()
def test_what_was_seen_of_a_tree_stays_as_it_was():
    blocks, memory, kept = stack("softmax", position=Rotary()), TreeMemory(4), []
    mechanism = blocks.blocks[0].attention.mechanism
    mechanism.register_forward_pre_hook(lambda m, given: kept.append((given[0], given[1], given[3])))
    said = []
    for parents, new in growing(torch.Generator().manual_seed(2)):
        memory.follow(parents)
        blocks(new, Causal().over(new, memory), memory)
        said.append(mechanism.weights(*kept[-1]))
    assert memory.size > 4  # it has moved since
    for (q, k, sight), then in zip(kept, said, strict=True):
        assert torch.equal(mechanism.weights(q, k, sight.afresh()), then)
        last = torch.tensor([q.shape[2] - 1])
        torch.testing.assert_close(mechanism.rows(q, k, sight.afresh(), last), then[:, :, last], **EXACT)


@pytest.mark.parametrize("word", families.WORDS)
@torch.no_grad()
def test_a_model_that_writes_a_tree_writes_sequences(word):
    for position, bias in families.places(word, "transformer", "sight remembered"):
        model = families.model("transformer", word, position=position, bias=bias)
        source, _ = families.together("transformer")
        context, memory = model.encode(source), TreeMemory(2)
        assert isinstance(context, Context)
        kept, paths = context.kept(), None
        for parents, new in growing(torch.Generator().manual_seed(3), len(source)):
            tokens = (new[..., :1] * 3).long().abs() % 4 + 1  # B K 1
            memory.follow(parents)
            here = model.decode(tokens[..., 0], kept, memory)
            paths = lengthened(paths, parents, tokens)
            index = torch.arange(len(source)).repeat_interleave(tokens.shape[1])
            there = model.decode(paths.flatten(0, 1)[..., 0], context.take(index))[:, -1].view_as(here)
            torch.testing.assert_close(here, there, **EXACT, msg=lambda m, p=(position, bias): f"{p}: {m}")
