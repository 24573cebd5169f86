"""Positions of their own: padding anywhere, prompts of unequal length, with and without a memory, change nothing."""

import pytest
import torch

from heedful.attention import Causal, Context, Everything, FixedMemory, Memory, Rotary, Window, standing
from heedful.attention.kv_cache_tree import TreeMemory
from heedful.inputs import Learned
from tests.laws import cases, families
from tests.laws.cases import BATCH, EXACT, LENGTH, MECHANISMS, agree, gradients, parameters, stack, states
from tests.laws.test_memory import MEMORIES

THERE = {  # which of the members are no padding
    "left": torch.tensor([[1] * 7, [0] * 3 + [1] * 4, [0] * 6 + [1]]).bool(),
    "right": torch.tensor([[1] * 7, [1] * 4 + [0] * 3, [1] + [0] * 6]).bool(),
    "between": torch.tensor([[1, 0, 1, 0, 1, 1, 0], [1] * 7, [0, 1, 0, 0, 0, 0, 1]]).bool(),
}
MASKS = {"causal": Causal(), "everything": Everything(), "causal & window": Causal() & Window(2)}
DECODERS = [name for name, (family, _) in families.FAMILIES.items() if family in ("gpt", "llama")]


def test_what_is_there_stands_one_behind_the_other():
    assert standing(THERE["between"]).tolist()[2] == [-1, 0, -1, -1, -1, -1, 1]
    assert standing(THERE["left"]).tolist()[1] == [-1, -1, -1, 0, 1, 2, 3]


@pytest.mark.parametrize("where", THERE)
@pytest.mark.parametrize("word", MECHANISMS)
def test_padding_anywhere_changes_nothing_and_learns_nothing(word, where):
    blocks, there = stack(word, position=Rotary()), THERE[where]
    for name, mask in MASKS.items():
        if not cases.obeys(word, f"mask {name}"):
            continue
        x = states()
        whole = blocks(x, mask.over(x, positions=standing(there)))
        assert whole.isfinite().all()
        alone = [blocks(x[b : b + 1, there[b]], mask.over(x[b : b + 1, there[b]]))[0] for b in range(BATCH)]
        agree(whole[there], torch.cat(alone), [x, *parameters(blocks)], where)
        assert not gradients(whole[there], (x,))[0][~there].any(), "padding learns"


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("where", THERE)
@torch.no_grad()
def test_prompts_of_unequal_length_go_on_as_one_by_one(where, memory):
    blocks, x, there = stack("softmax", position=Rotary()), states(), THERE[where].clone()
    there[:, 5:] = True  # what is written behind the prompts is there
    for mask in (Causal(), Causal() & Window(3)):
        kept, parts = MEMORIES[memory](), []
        for first, last in ((0, 5), (5, 6), (6, 7)):
            new, at = x[:, first:last], standing(there)[:, first:last] if first == 0 else None  # the rest is counted on
            parts.append(blocks(new, mask.over(new, kept, positions=at), kept))
        whole = torch.cat(parts, 1)
        for b in range(BATCH):
            alone = blocks(x[b : b + 1, there[b]], mask.over(x[b : b + 1, there[b]]))
            torch.testing.assert_close(whole[b, there[b]], alone[0], **EXACT)


@torch.no_grad()
def test_a_memory_that_began_without_positions_takes_them_later():
    blocks, x = stack("softmax", position=Rotary()), states()
    for make in (Memory, lambda: FixedMemory(LENGTH)):
        memory = make()
        steps = [blocks(x[:, :3], Causal().over(x[:, :3], memory), memory)]
        at = torch.tensor([[3, 4], [3, 4], [3, 4]])
        steps.append(blocks(x[:, 3:5], Causal().over(x[:, 3:5], memory, positions=at), memory))
        steps.append(blocks(x[:, 5:], Causal().over(x[:, 5:], memory), memory))
        torch.testing.assert_close(torch.cat(steps, 1), blocks(x, Causal().over(x)), **EXACT)


@torch.no_grad()
def test_a_memory_with_positions_goes_on_with_the_sequences_taken():
    blocks, x, there = stack("softmax", position=Rotary()), states(), THERE["left"]
    index = torch.tensor([1, 0, 0])
    for make in (Memory, lambda: FixedMemory(LENGTH + 1)):
        memory, new = make(), states()[:, :1]
        blocks(x, Causal().over(x, memory, positions=standing(there)), memory)
        memory.take(index)
        after = blocks(new[index], Causal().over(new[index], memory), memory)
        for b, row in zip(index.tolist(), after, strict=True):
            text = torch.cat((x[b, there[b]], new[b]))[None]
            torch.testing.assert_close(row, blocks(text, Causal().over(text))[0, -1:], **EXACT)


@torch.no_grad()
def test_a_tree_stands_where_it_is_told():
    blocks, x = stack("softmax", position=Rotary()), states()
    memory = TreeMemory(2)
    for step in range(3):
        memory.follow(torch.zeros(BATCH, 1, dtype=torch.long))
        new = x[:, step : step + 1]
        y = blocks(new, Causal().over(new, memory, positions=torch.full((BATCH, 1), 2 * step)), memory)
    at = torch.tensor([[0, 2, 4]]).expand(BATCH, -1)
    torch.testing.assert_close(y, blocks(x[:, :3], Causal().over(x[:, :3], positions=at))[:, -1:], **EXACT)


@torch.no_grad()
def test_a_context_is_padded_wherever_its_positions_say():
    states_, there = states(), THERE["left"]
    context = Context(states_, Everything(), standing(there))
    rows = Everything().over(torch.empty(BATCH, 2))
    assert torch.equal(context.sight(rows).dense.expand(BATCH, 1, 2, LENGTH)[:, 0, 0], there)
    taken = context.kept().take(torch.tensor([2, 1]))
    other = Everything().over(torch.empty(2, 2))
    assert torch.equal(taken.sight(other).dense.expand(2, 1, 2, LENGTH)[:, 0, 0], there[[2, 1]])


@pytest.mark.parametrize("name", DECODERS)
@torch.no_grad()
def test_a_decoder_reads_padded_prompts_as_it_reads_them_alone(name):
    model = families.model(name)
    for where in ("left", "right"):
        tokens, there = torch.randint(4, families.VOCAB, (BATCH, LENGTH)), THERE[where]
        whole = model(tokens, positions=standing(there))
        for b in range(BATCH):
            torch.testing.assert_close(whole[b, there[b]], model(tokens[b : b + 1, there[b]])[0], **EXACT)


def test_positions_past_the_last_one_learned_are_refused_and_padding_is_not_counted():
    position, x = Learned(4, 2, offset=3), torch.zeros(1, 6, 2)
    assert position(x, torch.tensor([[-1, -1, 0, 1, 2, 3]])).shape == x.shape
    assert torch.equal(position(x, torch.tensor([[-1, -1, 0, 1, 2, 3]]))[0, 2:], position.table[3:])
    with pytest.raises(ValueError, match="a sequence of 5 is longer than the 4 positions"):
        position(x, torch.tensor([[-1, 0, 1, 2, 3, 4]]))


def test_the_masks_here_hide_something():
    assert all(not there.all() and there.any(-1).all() for there in THERE.values())
    assert cases.masks()["causal"].over(torch.empty(1, 3), positions=torch.tensor([[-1, 0, 1]])).blind[0, 0, 0]
