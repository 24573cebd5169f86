"""The same numbers as transformers' Llama, Mistral, Qwen2 and Qwen3: logits, layers, gradients, padding and memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

import heedful
from heedful.errors import Refusal
from tests.references.language import same

KINDS = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "mistral": (MistralConfig, MistralForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}
PARTS = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8}
SCALINGS = [None, {"rope_type": "linear", "factor": 3.0}, {"rope_type": "llama3", **PARTS}]


def rotary(theta: float, scaling: dict | None) -> dict:
    return {"rope_parameters": {"rope_theta": theta, "rope_type": "default", **(scaling or {})}}


def numbers(heads: int, groups: int, key: int, depth: int, **more: object) -> dict:
    return {
        **{"hidden_size": 12, "num_hidden_layers": depth, "num_attention_heads": heads, "num_key_value_heads": groups},
        **{
            "head_dim": key,
            "intermediate_size": 7,
            "vocab_size": 23,
            "max_position_embeddings": 12,
            "rms_norm_eps": 1e-3,
        },
        **{"bos_token_id": 1, "eos_token_id": 2, **more},
    }


HEADS = st.sampled_from([(1, 1), (4, 2), (3, 1), (6, 3)])
DRAWN = {
    "heads": HEADS,
    "key": st.sampled_from([2, 6]),
    "depth": st.integers(1, 2),
    "length": st.integers(1, 12),
    "tied": st.booleans(),
}


@given(**DRAWN, biased=st.booleans(), scaling=st.sampled_from(SCALINGS), theta=st.sampled_from([100.0, 10_000.0]))
@settings(max_examples=5, derandomize=True, deadline=None)
def test_llama_is_llama(heads, key, depth, length, tied, biased, scaling, theta):
    said = numbers(*heads, key, depth, tie_word_embeddings=tied, attention_bias=biased, mlp_bias=not biased)
    same(LlamaForCausalLM(LlamaConfig(**said, **rotary(theta, scaling))), length)


@pytest.mark.parametrize("scaling", SCALINGS[1:], ids=lambda scaling: scaling["rope_type"])
def test_llamas_longer_texts_are_llamas(scaling):
    same(LlamaForCausalLM(LlamaConfig(**numbers(2, 2, 8, 1), **rotary(50.0, scaling))), 12)


@given(**DRAWN, window=st.sampled_from([None, 1, 3, 20]))
@settings(max_examples=5, derandomize=True, deadline=None)
def test_mistral_is_mistral(heads, key, depth, length, tied, window):
    said = numbers(*heads, key, depth, tie_word_embeddings=tied, sliding_window=window)
    same(MistralForCausalLM(MistralConfig(**said)), length)


@given(**DRAWN, window=st.sampled_from([None, 2]))
@settings(max_examples=4, derandomize=True, deadline=None)
def test_qwen2_is_qwen2(heads, key, depth, length, tied, window):
    said = numbers(*heads, key, depth, tie_word_embeddings=tied, sliding_window=window)
    same(Qwen2ForCausalLM(Qwen2Config(**said, use_sliding_window=window is not None, max_window_layers=0)), length)


@given(**DRAWN, biased=st.booleans())
@settings(max_examples=4, derandomize=True, deadline=None)
def test_qwen3_is_qwen3(heads, key, depth, length, tied, biased):
    same(
        Qwen3ForCausalLM(Qwen3Config(**numbers(*heads, key, depth, tie_word_embeddings=tied, attention_bias=biased))),
        length,
    )


SAID = {"rope_scaling", "rope_parameters", "sliding_window", "layer_types", "max_window_layers"}


@pytest.mark.parametrize(
    ("kind", "more", "said"),
    [
        (
            "llama",
            {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
            "rope_scaling: type is 'dynamic'; known: default",
        ),
        ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "rope_scaling: rope_type is 'yarn'; known: "),
        (
            "llama",
            {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "odd": 1}},
            "odd is '1', which is not supported",
        ),
        ("llama", {"rope_scaling": 3}, "rope_scaling is '3'; it should be an object"),
        ("llama", {"hidden_act": "quick"}, "hidden_act is 'quick'; known: gelu_new"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor is '0.5'; only 1.0 is supported"),
        (
            "mistral",
            {"sliding_window": 3, "attention_dropout": 0.5},
            "attention_dropout is '0.5'; only 0.0 is supported",
        ),
        (
            "qwen2",
            {"use_sliding_window": True, "max_window_layers": 1},
            "max_window_layers is '1'; a window is supported",
        ),
        ("qwen2", {"layer_types": ["full_attention", "odd"]}, "layer_types is .*; a window is supported in all layers"),
        ("qwen2", {"layer_types": 3}, "layer_types is '3'; it should be a list"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(kind, more, said, tmp_path):
    import json

    config = {"model_type": kind, **numbers(2, 2, 2, 2), **more}
    (tmp_path / "config.json").write_text(json.dumps(config))
    heedful.save(heedful.build("gpt", vocab=9, width=4, heads=2), tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").rename(tmp_path / "model.safetensors")
    with pytest.raises(Refusal, match=said):
        heedful.load(tmp_path)


@pytest.mark.parametrize(
    ("size", "count"),
    [
        ("llama-1.1b", 1_100_048_384),
        ("llama2-7b", 6_738_415_616),
        ("llama3-8b", 8_030_261_248),
        ("llama3.1-8b", 8_030_261_248),
        ("llama3.2-1b", 1_235_814_400),
        ("mistral-7b", 7_241_732_096),
        ("qwen2-0.5b", 494_032_768),
        ("qwen3-0.6b", 596_049_920),
    ],
)
def test_named_sizes_have_as_many_weights_as_published(size, count):
    with torch.device("meta"):
        ours = heedful.models.assemble(heedful.models.spec("llama", size))
    assert sum(parameter.numel() for parameter in ours.parameters()) == count
