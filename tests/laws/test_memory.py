"""Steps with memory == one pass, whatever the chunks, the memory, the mask, the bias, the groups and the position."""

import itertools

import pytest
import torch

from heedful.attention import Causal, Context, FixedMemory, Memory, Padding, Rotary
from heedful.blocks import Stack
from heedful.models import part_tables
from heedful.testing import mechanism_laws as laws
from tests.laws import cases, families
from tests.laws.cases import BATCH, EXACT, HEADS, LENGTH, MECHANISMS, VALUE, stack, states

CHUNKS = [(3, 1, 1, 2), (1,) * LENGTH, (1, 6), (4, 3), (LENGTH,)]
MEMORIES = {
    "grows": lambda: Memory(2),
    "is large enough": lambda: Memory(),
    "is fixed": lambda: FixedMemory(LENGTH),
    "is fixed and roomy": lambda: FixedMemory(LENGTH + 5),
}


def closed(mask, chunks):
    """Whether no row sees past the end of its chunk, so that steps can see all that one pass sees."""
    dense = mask.over(torch.empty(BATCH, LENGTH)).dense.expand(BATCH, -1, LENGTH, LENGTH)
    ends = [sum(chunks[: n + 1]) for n in range(len(chunks))]
    return not any(dense[:, :, :end, end:].any() for end in ends)


def in_steps(run, x, memory, chunks):
    return torch.cat([run(part, memory) for part in x.split(chunks, 1)], 1)


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("word", MECHANISMS)
@torch.no_grad()
def test_steps_with_memory_are_one_pass(word, name):
    every = [(HEADS, CHUNKS[0]), (1, CHUNKS[0]), *((2, chunks) for chunks in CHUNKS)]
    for groups, chunks in cases.few_of(word, every):
        blocks, axes = stack(word, groups, Rotary()), {"groups": [groups], "value": [VALUE], "sight": ["remembered"]}
        fitting = [mask for mask, made in cases.masks().items() if closed(made, chunks)]
        assert "causal" in fitting
        biases = cases.BIASES if (groups, chunks) == (2, CHUNKS[0]) else ["alibi"]
        for case in cases.cases(word, mask=fitting, bias=biases, **axes):
            laws.steps(blocks, case, MEMORIES[name], chunks)


@pytest.mark.parametrize("word", ["softmax", "linear"])
@pytest.mark.parametrize("name", MEMORIES)
@torch.no_grad()
def test_a_block_that_is_called_twice_remembers_both_calls(name, word):
    block, x = stack(word, depth=1).blocks[0], states()
    shared = Stack([block, block, block])
    run = lambda x, memory: shared(x, Causal().over(x, memory), memory)  # noqa: E731
    torch.testing.assert_close(in_steps(run, x, MEMORIES[name](), (3, 1, 3)), run(x, None), **EXACT)


@pytest.mark.parametrize("word", ["softmax", "linear"])  # keys and values are kept, and one sum of them
@pytest.mark.parametrize("name", MEMORIES)
@torch.no_grad()
def test_a_memory_taken_goes_on_with_the_sequences_taken(name, word):
    blocks, x, index = stack(word, position=Rotary()), states(), torch.tensor([2, 0, 0, 1])
    memory, mask = MEMORIES[name](), Causal() & Padding(torch.tensor([LENGTH, 5, 2]))
    blocks(x[:, :4], mask.over(x[:, :4], memory), memory)
    memory.take(index)
    rest = x[index, 4:]
    after = blocks(rest, mask.take(index).over(rest, memory), memory)
    torch.testing.assert_close(after, blocks(x, mask.over(x))[index, 4:], **EXACT)


@pytest.mark.parametrize("word", families.WORDS)
@torch.no_grad()
def test_a_model_in_steps_is_one_pass(word):
    for name in families.CAUSAL:
        places = families.places(word, name, "sight remembered")
        for (memory, make), (position, bias) in cases.few_of(word, itertools.product(MEMORIES.items(), places), 4):
            model, given = families.model(name, word, position=position, bias=bias), families.together(name)
            context = model.encode(given[0]).kept() if name == "transformer" else None
            run = (lambda x, kept, m=model, c=context: m.decode(x, c, kept)) if context else model
            steps = in_steps(run, given[-1], make(), CHUNKS[0])
            label = lambda m, p=(name, memory, position, bias): f"{p}: {m}"  # noqa: E731
            torch.testing.assert_close(steps, model(*given), **EXACT, msg=label)


@torch.no_grad()
def test_a_kept_context_makes_its_keys_once_for_each_projection():
    model, calls = families.model("transformer"), []
    for block in model.decoder.blocks:
        block.cross.project.to_kv.register_forward_hook(lambda m, *_: calls.append(m))
    source, target = families.together("transformer")
    context = model.encode(source)
    assert isinstance(context, Context)
    model.decode(target, context)
    model.decode(target, context)
    assert len(calls) == 4
    calls.clear()
    kept, memory = context.kept(), Memory()
    in_steps(lambda x, memory: model.decode(x, kept, memory), target, memory, (1,) * LENGTH)
    assert len(calls) == len(set(calls)) == 2


@torch.no_grad()
def test_a_fixed_memory_keeps_its_shapes_and_its_place():
    blocks, x, memory = stack("softmax"), states(), FixedMemory(LENGTH)
    places = set()
    for part in x.split(1, 1):
        sight = Causal().over(part, memory)
        assert sight.columns.shape == (1, LENGTH)
        blocks(part, sight, memory)
        places.add(tuple(kept.data_ptr() for slot in memory.slots.values() for kept in slot))
    assert len(places) == 1


@torch.no_grad()
def test_a_fixed_memory_that_refuses_is_as_it_was():
    memory, x = FixedMemory(4), states()
    Causal().over(x[:, :3], memory)
    with pytest.raises(ValueError, match="holds 4 tokens and 6 came"):
        Causal().over(x[:, :3], memory)
    assert Causal().over(x[:, :1], memory).rows.tolist() == [[3]]


def test_every_position_steps():
    assert {position for position, _ in families.PLACES} == set(part_tables.POSITIONS)
