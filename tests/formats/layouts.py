"""Every public layout with configs as its makers write them, for the laws over all tables of names."""

from __future__ import annotations

from typing import Any

IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
TEXT = {"is_encoder_decoder": True, "eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 0}
BART = {
    **{"d_model": 12, "vocab_size": 20, "max_position_embeddings": 8, **TEXT},
    **{"encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 10},
    **{"decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 9},
}
ODD = {
    **{"activation_function": "silu", "scale_embedding": True, "tie_word_embeddings": False, "dropout": 0.0},
    **{"attention_dropout": 0.2, "activation_dropout": 0.3, "forced_bos_token_id": 4, "decoder_start_token_id": 2},
}
ENCODER = {
    **{"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 10, "vocab_size": 20},
    **{"max_position_embeddings": 9, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.2},
}
SMALLER = {"dim": 12, "n_layers": 2, "n_heads": 3, "hidden_dim": 10, "vocab_size": 20, "max_position_embeddings": 9}
SHARED = {"embedding_size": 5, "num_hidden_groups": 2, "inner_group_num": 2}
NAMED = {"id2label": {"0": "good", "1": "bad", "2": "neither"}, "label2id": {"good": 0, "bad": 1, "neither": 2}}
# By model_type: configs, each of which the layout must read, and write again as it was.
SEEING = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20, "patch_size": 4}
DINO = {key: value for key, value in SEEING.items() if key != "intermediate_size"} | {"mlp_ratio": 2}
TWO = {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}
GPT2 = {"n_embd": 12, "n_layer": 2, "n_head": 3, "vocab_size": 20, "n_positions": 8, **IDS}
MANY = {"problem_type": "multi_label_classification"}
CONFIGS: dict[str, list[dict[str, Any]]] = {
    "vit": [
        {**SEEING, "image_size": 16, "num_channels": 3, **TWO},
        {**SEEING, "image_size": [8, 20], "num_channels": 2, "qkv_bias": False, "hidden_act": "gelu_new"},
        {**SEEING, "image_size": 8, **TWO, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.2, 0.1]},
    ],
    "swin": [
        {"embed_dim": 8, "depths": [2, 1], "num_heads": [2, 4], "window_size": 3, "image_size": 32, **TWO},
        {
            "embed_dim": 4,
            "depths": [1, 1],
            "num_heads": [1, 2],
            "window_size": 2,
            "image_size": [16, 24],
            "qkv_bias": False,
            "layer_norm_eps": 1e-3,
        },
    ],
    "resnet": [
        {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 2], "layer_type": "basic", "image_size": 16, **TWO},
        {"embedding_size": 2, "hidden_sizes": [8], "depths": [2], "layer_type": "bottleneck", "num_channels": 1},
    ],
    "deit": [
        {**SEEING, "image_size": 16, **TWO, "hidden_dropout_prob": 0.1, "layer_norm_eps": 1e-6},
        {**SEEING, "image_size": 16, **TWO, "architectures": ["DeiTForImageClassificationWithTeacher"]},
        {**SEEING, "image_size": 16, "architectures": ["DeiTModel"]},
    ],
    "dinov2": [
        {**DINO, "image_size": 16, "layerscale_value": 0.1, **TWO},
        {**DINO, "image_size": 8, "use_swiglu_ffn": True, "mlp_ratio": 3, "architectures": ["Dinov2Model"]},
    ],
    "vit_mae": [
        {
            **{**SEEING, "image_size": [8, 16], "mask_ratio": 0.5, "num_channels": 2},
            **{"decoder_hidden_size": 8, "decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 2},
            **{"decoder_intermediate_size": 32, "norm_pix_loss": True},
        },
    ],
    "beit": [
        {**SEEING, "image_size": 16, "use_relative_position_bias": True, **TWO},
        {**SEEING, "image_size": 8, "layer_scale_init_value": 0.0, "use_absolute_position_embeddings": True},
        {
            **{**SEEING, "image_size": 8, "architectures": ["BeitForMaskedImageModeling"], "vocab_size": 9},
            **{"use_shared_relative_position_bias": True, "use_mask_token": True},
        },
    ],
    "gpt2": [
        {**GPT2, "n_inner": None},
        {
            **{"n_embd": 8, "n_layer": 1, "n_head": 1, "vocab_size": 20, "n_positions": 8, "n_inner": 5, **IDS},
            **{"activation_function": "relu", "scale_attn_weights": False, "tie_word_embeddings": False},
            **{"layer_norm_epsilon": 1e-3, "attn_pdrop": 0.0, "resid_pdrop": 0.3, "eos_token_id": [2, 3]},
        },
        {**GPT2, "architectures": ["GPT2ForSequenceClassification"], **NAMED},
        {**GPT2, "architectures": ["GPT2ForTokenClassification"], "classifier_dropout": 0.3},
        {**GPT2, "architectures": ["GPT2ForQuestionAnswering"], "tie_word_embeddings": False},
    ],
    "t5": [
        {"d_model": 12, "d_kv": 3, "d_ff": 20, "num_layers": 2, "num_heads": 3, "vocab_size": 20, **TEXT},
        {
            **{"d_model": 8, "d_kv": 8, "d_ff": 5, "num_layers": 1, "num_heads": 1, "vocab_size": 20, **TEXT},
            **{"num_decoder_layers": 3, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
            **{"relative_attention_num_buckets": 8, "relative_attention_max_distance": 20, "dropout_rate": 0.0},
            **{"layer_norm_epsilon": 1e-3, "scale_decoder_outputs": False},
        },
    ],
    "bart": [
        BART | ODD,
        BART | {"architectures": ["BartForSequenceClassification"], "classifier_dropout": 0.2, **NAMED},
        BART | {"architectures": ["BartForQuestionAnswering"]},
    ],
    "mbart": [BART, BART | {"architectures": ["MBartForSequenceClassification"], "dropout": 0.0, **NAMED}],
    "marian": [BART | ODD, BART | {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 9}],
    "pegasus": [BART],
    "bert": [
        {**ENCODER, "architectures": ["BertModel"], "pad_token_id": 0, "classifier_dropout": None},
        {
            **{**ENCODER, "architectures": ["BertForSequenceClassification"], "hidden_act": "relu", **NAMED},
            **{"classifier_dropout": 0.3, "type_vocab_size": 3, "layer_norm_eps": 1e-5, "bos_token_id": 3},
        },
        {**ENCODER, "architectures": ["BertForSequenceClassification"], **NAMED, **MANY},
    ],
    "roberta": [
        {**ENCODER, "architectures": ["RobertaForMaskedLM"], "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
        {**ENCODER, "architectures": ["RobertaForSequenceClassification"], "pad_token_id": 3, "type_vocab_size": 1},
    ],
    "camembert": [{**ENCODER, "architectures": ["CamembertForTokenClassification"], "pad_token_id": 1, **NAMED}],
    "distilbert": [
        {**SMALLER, "architectures": ["DistilBertForSequenceClassification"], "seq_classif_dropout": 0.2, **NAMED},
        {**SMALLER, "architectures": ["DistilBertForMaskedLM"], "activation": "gelu_new", "dropout": 0.0},
    ],
    "albert": [
        {**ENCODER, **SHARED, "architectures": ["AlbertForQuestionAnswering"]},
        {**ENCODER, **SHARED, "architectures": ["AlbertForTokenClassification"], "classifier_dropout_prob": 0.1},
    ],
}

LLAMA = {
    **{"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 20},
    **{"intermediate_size": 10, "max_position_embeddings": 16, "head_dim": 6, "rms_norm_eps": 1e-5, **IDS},
}
PARTS = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0, "original_max_position_embeddings": 8}
WINDOWS = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0}
CONFIGS |= {
    "llama": [
        LLAMA,
        LLAMA | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 2},
        LLAMA | {"rope_theta": 500.0, "rope_scaling": {"rope_type": "llama3", **PARTS}, "attention_dropout": 0.2},
        LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": 2.0}, "hidden_act": "relu", "eos_token_id": [2, 5]},
        LLAMA | {"architectures": ["LlamaForSequenceClassification"], **NAMED, "tie_word_embeddings": True},
        LLAMA | {"architectures": ["LlamaForTokenClassification"], "classifier_dropout": 0.2},
    ],
    "mistral": [
        LLAMA | {"sliding_window": 3},
        LLAMA | {"architectures": ["MistralForSequenceClassification"], **NAMED},
    ],
    "qwen2": [LLAMA, LLAMA | WINDOWS, LLAMA | {"architectures": ["Qwen2ForSequenceClassification"], **NAMED, **MANY}],
    "qwen3": [LLAMA, LLAMA | {"attention_bias": True, "tie_word_embeddings": True} | WINDOWS],
}
