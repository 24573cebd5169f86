"""A block's row in one call: what torch's operations make of it, looked at or not; and torch's own for all else."""

import copy
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import heedful
from heedful.attention import Memory
from heedful.decoding.steps import answering
from heedful.engines import fused_block, gemv, prepacked, runner
from heedful.looking import look

WORDS = st.fixed_dictionaries(
    {
        "heads": st.sampled_from([1, 2, 4]),
        "groups": st.sampled_from([1, None]),
        "hidden": st.sampled_from([16, 48]),
        "norm": st.sampled_from(["layer", "rms", "rms(eps=0.001)"]),
        "position": st.sampled_from(["learned", "rotary", "rotary(base=100.0)"]),
        "feedforward": st.sampled_from(["relu", "gelu_tanh", "silu", "gated", "gated(activation='relu', bias=False)"]),
        "mechanism": st.sampled_from(["softmax", "dot", "scaled(temperature=0.5)"]),
        "project_bias": st.booleans(),
        "join_bias": st.booleans(),
    }
)


def built(**words):
    torch.manual_seed(3)
    model = heedful.build("gpt", vocab=24, width=64, depth=2, length=64, dropout=0.1, **words)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
    return model


@contextmanager
def served(count, monkeypatch):
    """Inside, so many rows of blocks are made by the C++."""
    rows, made = [0], fused_block.Row.serves

    def serves(self, x, sight):
        found = made(self, x, sight)
        rows[0] += found
        return found

    monkeypatch.setattr(fused_block.Row, "serves", serves)
    yield
    monkeypatch.setattr(fused_block.Row, "serves", made)
    assert rows[0] == count


def read(model, tokens, first=5, weights="float32", positions=None):
    """States of tokens (B T) that are read one by one behind the first."""
    memory, made = Memory(8), []
    with answering(model, weights) as running:
        made.append(running.read(tokens[:, :first], memory, positions))
        for at in range(first, tokens.shape[1]):
            made.append(running.read(tokens[:, at : at + 1], memory))
    return torch.cat(made, 1)


@settings(max_examples=40, deadline=None)
@given(WORDS, st.sampled_from(["float32", "float16"]), st.sampled_from([1, 4096, 2**17]))
def test_a_row_is_the_one_of_torch(words, weights, worthwhile):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepacked, "WORTHWHILE", worthwhile)  # numbers from which on a matrix is packed
        model, tokens = built(**words), torch.randint(24, (1, 40))
        with served(2 * 35, patch):
            ours = read(model, tokens, weights=weights)
        patch.setattr(fused_block, "working", lambda: None)
        theirs, plain = read(model, tokens, weights=weights), read(model, tokens)
        rounding = (plain - read(copy.deepcopy(model).double(), tokens)).abs().max()  # which sharp weights make large
        assert (ours - theirs).abs().max() <= 10 * rounding + 1e-5 * theirs.abs().max()


def test_how_many_threads_work_changes_no_bit():
    model, tokens, threads, made = built(heads=4), torch.randint(24, (1, 30)), torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            with answering(model) as running:
                memory = Memory(8)
                running.read(tokens[:, :1], memory)  # one row too, and no others, which torch's threads may round
                made.append(torch.cat([running.read(tokens[:, at : at + 1], memory) for at in range(1, 30)], 1))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(made[0], made[1]) and torch.equal(made[0], made[2])


def test_looking_changes_no_bit_and_sees_what_was_asked(monkeypatch):
    model, tokens = built(heads=4, groups=2, position="rotary"), torch.randint(24, (1, 20))
    before = read(model, tokens)
    with look(model) as seen, served(2 * 15, monkeypatch):
        during = read(model, tokens)
    assert torch.equal(before, during)
    with torch.no_grad(), look(model) as whole_text:
        model.eval().read(tokens)
    for path in seen.paths:
        newest = seen.weights(path, call=15)  # the first five tokens at once, and then fifteen
        torch.testing.assert_close(newest[:, :, 0], whole_text.weights(path)[:, :, -1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", ["two texts", "padded", "hook", "bias", "window", "post", "key norm", "erf", "narrow"])
def test_all_else_is_torchs(case, monkeypatch):
    words = {
        "bias": {"bias": "alibi"},
        "window": {"mechanism": "window(size=4)"},
        "post": {"order": "post"},
        "key norm": {"key_norm": True},
        "erf": {"feedforward": "gelu"},
        "narrow": {"heads": 8},  # heads of 8 channels
    }.get(case, {})
    model, tokens = built(**({"heads": 4} | words)), torch.randint(24, (2 if case == "two texts" else 1, 12))
    positions = torch.tensor([[-1, -1, 0, 1, 2]]) if case == "padded" else None
    if case == "hook":
        heard = []
        for block in model.decoder.blocks:
            block.feedforward.up.register_forward_hook(lambda part, given, made: heard.append(made.shape))
    with served(0, monkeypatch):
        ours = read(model, tokens, positions=positions)
    monkeypatch.setattr(fused_block, "working", lambda: None)
    assert torch.equal(ours, read(model, tokens, positions=positions))
    assert case != "hook" or len(heard) == 2 * 2 * 8


def test_a_batch_of_which_one_is_left_goes_on_by_rows_and_learning_never_does(monkeypatch):
    model, tokens = built(heads=4), torch.randint(24, (3, 12))
    alone = read(model, tokens[1:2])
    memory = Memory(8)
    with answering(model) as running, served(2 * 4, monkeypatch):
        running.read(tokens[:, :8], memory)
        memory.take(torch.tensor([1]))
        left = torch.cat([running.read(tokens[1:2, at : at + 1], memory) for at in range(8, 12)], 1)
    torch.testing.assert_close(left, alone[:, 8:], rtol=1e-4, atol=1e-4)
    with served(0, monkeypatch):
        runner(model).train().read(tokens[:1, :1], Memory(8)).sum().backward()
    assert all(p.grad is not None for p in model.decoder.parameters())


def test_matrices_packed_as_the_processor_cannot_read_them_are_torchs(monkeypatch):
    monkeypatch.setattr(prepacked, "WORTHWHILE", 1)
    monkeypatch.setattr(gemv, "of", lambda matrix: None)
    model, tokens = built(heads=4), torch.randint(24, (1, 12))
    with served(0, monkeypatch):
        ours = read(model, tokens, weights="float16")
    assert ours.isfinite().all()


def test_without_a_compiler_blocks_are_torchs(monkeypatch):
    monkeypatch.setattr(fused_block, "working", lambda: None)
    model, tokens = built(heads=4), torch.randint(24, (1, 12))
    with served(0, monkeypatch):
        read(model, tokens)
