"""The same numbers as transformers' GPT-2: logits, hidden layers, gradients, padding, memory, and folders both ways."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

import heedful
from tests.references.language import both, folder_of, same, stirred

IDS = {"bos_token_id": 1, "eos_token_id": 2}


@given(
    heads=st.sampled_from([1, 2, 3, 4]),
    key=st.sampled_from([6, 7, 10]),
    depth=st.integers(1, 3),
    length=st.integers(1, 9),
    inner=st.sampled_from([None, 7]),
    more=st.sampled_from(
        [{}, {"activation_function": "gelu"}, {"scale_attn_weights": False}, {"tie_word_embeddings": False}]
    ),
)
@settings(max_examples=6, derandomize=True, deadline=None)
def test_gpt2_is_gpt2(heads, key, depth, length, inner, more):
    config = GPT2Config(
        n_embd=heads * key, n_layer=depth, n_head=heads, n_inner=inner, vocab_size=23, n_positions=9, **IDS, **more
    )
    same(GPT2LMHeadModel(config), length)


def test_gpt2_at_the_limit_of_its_positions():
    same(GPT2LMHeadModel(GPT2Config(n_embd=6, n_layer=1, n_head=1, vocab_size=23, n_positions=5, **IDS)), 5)


def test_a_gpt2_without_its_outputs_is_read_too(tmp_path):
    theirs = stirred(GPT2Model(GPT2Config(n_embd=6, n_layer=2, n_head=1, vocab_size=23, n_positions=5, **IDS)))
    ours, tokens = heedful.load(folder_of(theirs, str(tmp_path))), torch.randint(23, (2, 5))
    kept = []
    ours.decoder.register_forward_hook(lambda part, given, made: kept.append(made))
    ours(tokens)
    torch.testing.assert_close(kept[0], theirs(tokens).last_hidden_state, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_keep_the_precision_of_their_file(dtype):
    config = GPT2Config(n_embd=6, n_layer=1, n_head=1, vocab_size=23, n_positions=5, **IDS)
    with both(GPT2LMHeadModel(config).to(dtype)) as (ours, theirs):
        assert {parameter.dtype for parameter in ours.parameters()} == {dtype}
        tokens = torch.randint(23, (2, 5))
        torch.testing.assert_close(ours(tokens), theirs(tokens).logits, rtol=0.0, atol=0.03)


@pytest.mark.parametrize("size", ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"])
def test_named_sizes_have_as_many_weights_as_published(size):
    with torch.device("meta"):
        ours = heedful.models.assemble(heedful.models.spec("gpt", size))
    published = {"gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200}
    assert sum(parameter.numel() for parameter in ours.parameters()) == published[size]
