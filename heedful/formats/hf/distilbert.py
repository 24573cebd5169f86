"""DistilBERT as Hugging Face writes it (`distilbert`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.bert import EACH
from heedful.formats.hf.encoder import Encoder, Inside

NUMBERS = {
    "width": ("dim", 768),
    "depth": ("n_layers", 6),
    "heads": ("n_heads", 12),
    "hidden": ("hidden_dim", 3072),
    "length": ("max_position_embeddings", 512),
    "vocab": ("vocab_size", 30522),
}
DROPPING = {"classes": "seq_classif_dropout"}
TIED = {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"}
INPUTS = {
    "inputs.table.weight": "embeddings.word_embeddings.weight",
    "inputs.position.table": "embeddings.position_embeddings.weight",
    "inputs.norm.{kind}": "embeddings.LayerNorm.{kind}",
}
INSIDE: Inside = {
    "attention.project.to_qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    "attention.join": "attention.out_lin",
    "norm1": "sa_layer_norm",
    "feedforward.up": "ffn.lin1",
    "feedforward.down": "ffn.lin2",
    "norm2": "output_layer_norm",
}
OUTPUTS = EACH | {
    "classes": {
        "outputs.pooler.matrix.{kind}": "pre_classifier.{kind}",
        "outputs.matrix.{kind}": "classifier.{kind}",
    },
    "masked": {
        "outputs.dense.{kind}": "vocab_transform.{kind}",
        "outputs.norm.{kind}": "vocab_layer_norm.{kind}",
        "outputs.matrix.bias": "vocab_projector.bias",
    },
}


class Distilbert(Encoder):
    """The layout of DistilBERT (Sanh et al., 2019)."""

    kind, family, prefix, stem = "distilbert", "distilbert", "distilbert.", "DistilBert"
    numbers, dropping, share, tied = NUMBERS, DROPPING, 0.2, TIED
    bent, drops = ("activation", "gelu"), ("dropout", "attention_dropout", 0.1)
    inputs, inside, outputs = INPUTS, INSIDE, OUTPUTS
    block = ("encoder.blocks.{n}", "transformer.layer.{n}")
    ignored = (r"distilbert\.embeddings\.position_ids",)
    idle = ("qa_dropout", "sinusoidal_pos_embds", "tie_weights_")  # positions are in the file, however they were drawn

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        said = super().spec(config, there)
        return said | {"transform": said["feedforward"]}
