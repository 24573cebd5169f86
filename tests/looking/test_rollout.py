"""Rollout: by hand, by the paper's own words, and through every model whose tokens look at each other."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import heedful
from heedful.errors import Refusal
from heedful.looking.maps import Map
from heedful.looking.rollout import roll_out, rollout
from heedful.pipelines.attention_over_image import asked_weights


def test_a_case_that_was_worked_out_by_hand():
    first = torch.tensor([[[0.5, 0.5], [0.2, 0.8]]], dtype=torch.float64)
    second = torch.tensor([[[1.0, 0.0], [0.6, 0.4]], [[0.0, 1.0], [0.2, 0.8]]], dtype=torch.float64)
    # (first + 1) / 2 = [[.75, .25], [.1, .9]]; mean of heads [[.5, .5], [.4, .6]] -> [[.75, .25], [.2, .8]]
    wanted = torch.tensor([[0.5625 + 0.025, 0.1875 + 0.225], [0.15 + 0.08, 0.05 + 0.72]])
    torch.testing.assert_close(rollout([first, second]), wanted.double())
    # largest of heads [[1, 1], [.6, .8]] -> [[1, .5], [.3, .9]], rows by their sums 1.5 and 1.2
    largest = torch.tensor([[2 / 3, 1 / 3], [0.25, 0.75]], dtype=torch.float64)
    torch.testing.assert_close(rollout([second], "max"), largest)
    # smallest [[0, 0], [.2, .4]] -> [[.5, 0], [.1, .7]]
    torch.testing.assert_close(rollout([second], "min"), torch.tensor([[1.0, 0.0], [0.125, 0.875]]).double())
    # of the first layer's weights the smaller half, .2 and .5 at (0, 1), go, for (0, 0) is kept
    kept = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(rollout([first], "mean", 0.75), kept)


def by_the_paper(layers: list[np.ndarray]) -> np.ndarray:
    """Equations 1 and 2 of Abnar and Zuidema (2020), written out: A = 0.5 W + 0.5 I; rollout(i) = A(i) rollout(i-1)."""
    whole = None
    for weights in layers:
        mean = np.zeros(weights.shape[1:])
        for head in weights:
            mean += head / len(weights)
        a = 0.5 * mean + 0.5 * np.eye(len(mean))
        whole = a if whole is None else np.einsum("ik,kj->ij", a, whole)
    return whole


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(2, 6), st.integers(0, 99))
def test_it_is_what_the_paper_defines(depth, heads, tokens, seed):
    torch.manual_seed(seed)
    layers = [torch.randn(heads, tokens, tokens, dtype=torch.float64).softmax(-1) for _ in range(depth)]
    torch.testing.assert_close(rollout(layers).numpy(), by_the_paper([one.numpy() for one in layers]))
    for how in ("mean", "max", "min"):
        for discard in (0.0, 0.4, 0.9):
            made = rollout(layers, how, discard)
            torch.testing.assert_close(made.sum(-1), torch.ones(tokens, dtype=torch.float64))
            assert (made >= 0).all()


def test_what_cannot_be_rolled_out_is_refused():
    square = torch.eye(3)[None]
    with pytest.raises(Refusal, match="did you mean 'mean'"):
        rollout([square], "meen")
    with pytest.raises(Refusal, match="cannot be discarded"):
        rollout([square], "mean", 1.0)
    for layers in ([], [torch.ones(1, 2, 3)], [square, torch.eye(4)[None]]):
        with pytest.raises(Refusal, match="the same tokens look at each other"):
            rollout(layers)


STACKS = ("encoder", "decoder")


def seen_maps(model, *inputs):
    with heedful.look(model) as seen, torch.no_grad():
        model(*inputs)
    made = []
    for path in seen.paths:
        weights = seen.weights(path)[0].float()
        sides = "ss" if "cross" not in path else "ts"
        names = [[f"{side}{at}" for at in range(n)] for side, n in zip(sides, weights.shape[1:], strict=True)]
        made.append(Map(path, weights, tuple(names[0]), tuple(names[1])))
    return made


def test_models_of_text_are_rolled_out_stack_by_stack_and_the_future_is_never_held():
    torch.manual_seed(0)
    model = heedful.build("transformer", vocab=20, width=16, heads=2, depth=2).eval()
    maps = seen_maps(model, torch.randint(4, 20, (1, 5)), torch.randint(4, 20, (1, 7)))
    found = roll_out(maps, 0.2)
    ways = ("mean", "max", "min")
    assert [one.path for one in found] == [f"{stack} rollout, {how} of heads" for stack in STACKS for how in ways]
    encoder, decoder = (torch.cat([one.weights for one in some]) for some in (found[:3], found[3:]))
    assert {one.whole for one in found} == {"rollout, 20% dropped"} and roll_out(maps)[0].whole == "rollout"
    assert encoder.shape == (3, 5, 5) and decoder.shape == (3, 7, 7)
    assert not decoder.triu(1).any() and encoder.triu(1).any()


def test_a_token_that_joins_later_is_rolled_out_from_there_on():
    weights = [torch.rand(2, count, count).softmax(-1) for count in (4, 5, 5)]
    words = tuple("abcd"), tuple("<abcd"), tuple("<abcd")
    maps = [Map(f"encoder.blocks.{at}", w, who, who) for at, (w, who) in enumerate(zip(weights, words, strict=True))]
    assert torch.equal(roll_out(maps)[0].weights[0], rollout(weights[1:]))


@pytest.mark.parametrize(("pool", "tokens"), [("first", 13), ("mean", 12), ("attention", 12)])
def test_weights_over_an_image_are_those_of_whoever_answers(pool, tokens):
    model = heedful.build(
        "vit", channels=1, classes=2, high=12, wide=16, patch=4, width=16, heads=2, depth=1, pool=pool
    )
    weights = torch.randn(tokens, tokens).softmax(-1)
    grid = asked_weights(weights, model, (3, 4))
    row = weights[0, 1:] if pool == "first" else weights.mean(0)
    assert torch.equal(grid.flatten(), row)
