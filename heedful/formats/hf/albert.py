"""ALBERT as Hugging Face writes it (`albert`)."""

from __future__ import annotations

from heedful.formats.hf import bert
from heedful.formats.hf.bert import Bert
from heedful.formats.hf.encoder import Inside

NUMBERS = bert.NUMBERS | {
    "width": ("hidden_size", 4096),
    "heads": ("num_attention_heads", 64),
    "hidden": ("intermediate_size", 16384),
    "vocab": ("vocab_size", 30000),
    "embedding_size": ("embedding_size", 128),
    "hidden_groups": ("num_hidden_groups", 1),
    "inner_group": ("inner_group_num", 1),
}
DROPPING = {"classes": "classifier_dropout_prob", "tags": "classifier_dropout_prob"}
TIED = {
    "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
}
INPUTS = bert.INPUTS | {"inputs.widen.{kind}": "encoder.embedding_hidden_mapping_in.{kind}"}
INSIDE: Inside = {
    "attention.project.to_qkv": ("attention.query", "attention.key", "attention.value"),
    "attention.join": "attention.dense",
    "norm1": "attention.LayerNorm",
    "feedforward.up": "ffn",
    "feedforward.down": "ffn_output",
    "norm2": "full_layer_layer_norm",
}
OUTPUTS = bert.EACH | {
    "pooled": {"outputs.pooler.matrix.{kind}": "albert.pooler.{kind}"},
    "classes": {
        "outputs.pooler.matrix.{kind}": "albert.pooler.{kind}",
        "outputs.matrix.{kind}": "classifier.{kind}",
    },
    "masked": {
        "outputs.dense.{kind}": "predictions.dense.{kind}",
        "outputs.norm.{kind}": "predictions.LayerNorm.{kind}",
        "outputs.matrix.bias": "predictions.bias",
    },
}


class Albert(Bert):
    """The layout of ALBERT (Lan et al., 2020)."""

    kind, family, prefix, stem = "albert", "albert", "albert.", "Albert"
    numbers, dropping, share, tied = NUMBERS, DROPPING, 0.1, TIED
    bent, drops = ("hidden_act", "gelu_new"), ("hidden_dropout_prob", "attention_probs_dropout_prob", 0.0)
    ids = (0, 2, 3)
    inputs, inside, outputs = INPUTS, INSIDE, OUTPUTS
    block = ("encoder.groups.{group}.blocks.{n}", "encoder.albert_layer_groups.{group}.albert_layers.{n}")
    ignored = (r"albert\.embeddings\.(position|token_type)_ids",)
    left = (r"albert\.pooler\.(weight|bias)", r"sop_classifier\.classifier\.(weight|bias)")
    idle = ("down_scale_factor", "gap_size", "layers_to_keep", "net_structure_type", "num_memory_blocks")
