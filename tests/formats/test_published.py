"""Configs as they are published, key by key: each is read, and is the size that bears its name here."""

from typing import Any

import pytest

from heedful import models
from heedful.formats import hf_models
from heedful.formats.foreign_config import Config
from heedful.formats.layout_registry import LAYOUTS
from heedful.models.canonical import meaning

ALL = {"initializer_range": 0.02, "torch_dtype": "bfloat16", "transformers_version": "4.37.0", "use_cache": True}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "pretraining_tp": 1, **ALL}
LLAMA |= {"attention_bias": False, "rms_norm_eps": 1e-5, "rope_scaling": None, "tie_word_embeddings": False}
LLAMA2 = {"bos_token_id": 1, "eos_token_id": 2, "vocab_size": 32000}
LLAMA3 = {"bos_token_id": 128000, "eos_token_id": 128001, "vocab_size": 128256, "rope_theta": 500000.0}
PARTS = {"high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192}
QWEN = {"bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu", "rms_norm_eps": 1e-06, **ALL}
QWEN |= {"attention_dropout": 0.0, "rope_theta": 1000000.0, "tie_word_embeddings": True, "use_sliding_window": False}


def sizes(*numbers: int) -> dict[str, int]:
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")
    return dict(zip((*names, "max_position_embeddings"), numbers, strict=True))


GPT2: dict[str, Any] = {
    **{"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "embd_pdrop": 0.1},
    **{"bos_token_id": 50256, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05},
    **{"model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024},
    **{"resid_pdrop": 0.1, "summary_activation": None, "summary_first_dropout": 0.1, "summary_type": "cls_index"},
    **{"summary_proj_to_labels": True, "summary_use_proj": True, "vocab_size": 50257},
    **{"task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}},
}
BERT = {
    **{
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "initializer_range": 0.02,
    },
    **{"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12},
}
LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24}
UNCASED = {
    **{"model_type": "bert", "architectures": ["BertForMaskedLM"], "gradient_checkpointing": False, **BERT},
    **{"layer_norm_eps": 1e-12, "max_position_embeddings": 512, "pad_token_id": 0, "type_vocab_size": 2},
    **{"position_embedding_type": "absolute", "transformers_version": "4.6.0", "use_cache": True, "vocab_size": 30522},
}
ROBERTA = {
    **{"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], **BERT, "bos_token_id": 0, "eos_token_id": 2},
    **{"layer_norm_eps": 1e-05, "max_position_embeddings": 514, "pad_token_id": 1, "type_vocab_size": 1},
    "vocab_size": 50265,
}
DISTILBERT = {
    **{"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"], "activation": "gelu", "dim": 768},
    **{"attention_dropout": 0.1, "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02, "n_heads": 12},
    **{"max_position_embeddings": 512, "n_layers": 6, "pad_token_id": 0, "qa_dropout": 0.1, "tie_weights_": True},
    **{"seq_classif_dropout": 0.2, "sinusoidal_pos_embds": False, "vocab_size": 30522},
}
ALBERT = {
    **{"model_type": "albert", "architectures": ["AlbertForMaskedLM"], **BERT, "hidden_act": "gelu_new"},
    **{"attention_probs_dropout_prob": 0, "bos_token_id": 2, "classifier_dropout_prob": 0.1, "down_scale_factor": 1},
    **{"embedding_size": 128, "eos_token_id": 3, "gap_size": 0, "hidden_dropout_prob": 0, "inner_group_num": 1},
    **{"layer_norm_eps": 1e-12, "max_position_embeddings": 512, "net_structure_type": 0, "num_hidden_groups": 1},
    **{"num_memory_blocks": 0, "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": 30000},
}
PUBLISHED: dict[str, dict[str, Any]] = {
    "bert-base": UNCASED,
    "bert-large": UNCASED | LARGE,
    "minilm": UNCASED
    | {"architectures": ["BertModel"], "hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6},
    "roberta-base": ROBERTA,
    "roberta-large": ROBERTA | LARGE,
    "camembert-base": {
        **{**ROBERTA, "model_type": "camembert", "architectures": ["CamembertForMaskedLM"], "vocab_size": 32005},
        **{"bos_token_id": 5, "eos_token_id": 6, "output_past": True},
    },
    "distilbert-base": DISTILBERT,
    "albert-base": ALBERT,
    "albert-large": ALBERT | LARGE,
    "gpt2": GPT2,
    "gpt2-xl": GPT2 | {"n_embd": 1600, "n_head": 25, "n_layer": 48, "output_past": True},
    "llama-1.1b": LLAMA | LLAMA2 | sizes(2048, 22, 32, 4, 5632, 2048) | {"rope_theta": 10000.0},
    "llama3-8b": LLAMA | LLAMA3 | sizes(4096, 32, 32, 8, 14336, 8192) | {"attention_dropout": 0.0},
    "llama3.1-8b": LLAMA
    | LLAMA3
    | sizes(4096, 32, 32, 8, 14336, 131072)
    | {"mlp_bias": False, "rope_scaling": {"factor": 8.0, **PARTS, "rope_type": "llama3"}},
    "llama3.2-1b": LLAMA
    | LLAMA3
    | sizes(2048, 16, 32, 8, 8192, 131072)
    | {"head_dim": 64, "tie_word_embeddings": True, "rope_scaling": {"factor": 32.0, **PARTS, "rope_type": "llama3"}},
    "mistral-7b": {
        **{"model_type": "mistral", "architectures": ["MistralForCausalLM"], "hidden_act": "silu", **ALL, **LLAMA2},
        **{"rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": False},
        **sizes(4096, 32, 32, 8, 14336, 32768),
    },
    "qwen2-0.5b": {
        **{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "max_window_layers": 24, **QWEN},
        **{"sliding_window": 131072, "use_mrope": False, "vocab_size": 151936},
        **sizes(896, 24, 14, 2, 4864, 131072),
    },
    "qwen3-0.6b": {
        **{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "max_window_layers": 28, **QWEN},
        **{"attention_bias": False, "head_dim": 128, "rope_scaling": None, "sliding_window": None},
        **{"vocab_size": 151936, **sizes(1024, 28, 16, 8, 3072, 40960)},
    },
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_a_published_config_is_the_size_of_its_name(size):
    layout = LAYOUTS[PUBLISHED[size]["model_type"]]
    read = meaning(hf_models.read_spec(layout, Config(PUBLISHED[size], "config.json"), {}))
    asked = {key: read[key] for key in ("output",) if key in read}
    ours = meaning(models.spec(layout.family, size, **asked))
    taught = (
        ("dropout", "input_dropout", "mechanism") if layout.kind == "gpt2" or asked else ()
    )  # how it was trained, and not what it is
    assert {key: read[key] for key in read if key not in taught} == {
        key: ours[key] for key in ours if key not in taught
    }
