"""BERT as Hugging Face writes it (`bert`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.config_words import eps, norm_word
from heedful.formats.hf.encoder import Encoder, Inside

NUMBERS = {
    "width": ("hidden_size", 768),
    "depth": ("num_hidden_layers", 12),
    "heads": ("num_attention_heads", 12),
    "hidden": ("intermediate_size", 3072),
    "length": ("max_position_embeddings", 512),
    "vocab": ("vocab_size", 30522),
    "segments": ("type_vocab_size", 2),
}
DROPPING = {"classes": "classifier_dropout", "tags": "classifier_dropout"}
TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
INPUTS = {
    "inputs.table.weight": "embeddings.word_embeddings.weight",
    "inputs.position.table": "embeddings.position_embeddings.weight",
    "inputs.segments.weight": "embeddings.token_type_embeddings.weight",
    "inputs.norm.{kind}": "embeddings.LayerNorm.{kind}",
}
INSIDE: Inside = {
    "attention.project.to_qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention.join": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "feedforward.up": "intermediate.dense",
    "feedforward.down": "output.dense",
    "norm2": "output.LayerNorm",
}
EACH = {
    "tags": {"outputs.matrix.{kind}": "classifier.{kind}"},
    "answer": {"outputs.matrix.{kind}": "qa_outputs.{kind}"},
}
OUTPUTS = EACH | {
    "pooled": {"outputs.pooler.matrix.{kind}": "bert.pooler.dense.{kind}"},
    "classes": {
        "outputs.pooler.matrix.{kind}": "bert.pooler.dense.{kind}",
        "outputs.matrix.{kind}": "classifier.{kind}",
    },
    "masked": {
        "outputs.dense.{kind}": "cls.predictions.transform.dense.{kind}",
        "outputs.norm.{kind}": "cls.predictions.transform.LayerNorm.{kind}",
        "outputs.matrix.bias": "cls.predictions.bias",
    },
}


class Bert(Encoder):
    """The layout of BERT (Devlin et al., 2019)."""

    kind, family, prefix, stem = "bert", "bert", "bert.", "Bert"
    numbers, dropping, tied = NUMBERS, DROPPING, TIED
    bent, drops = ("hidden_act", "gelu"), ("hidden_dropout_prob", "attention_probs_dropout_prob", 0.1)
    inputs, inside, outputs = INPUTS, INSIDE, OUTPUTS
    block = ("encoder.blocks.{n}", "encoder.layer.{n}")
    ignored: ClassVar[Sequence[str]] = (r"bert\.embeddings\.(position|token_type)_ids",)
    left: ClassVar[Sequence[str]] = (r"bert\.pooler\.dense\.(weight|bias)", r"cls\.seq_relationship\.(weight|bias)")
    idle: ClassVar[Sequence[str]] = (
        "directionality",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    )

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        said = super().spec(config, there)
        if said["segments"] < 1:
            raise config.refusal("type_vocab_size", "it should be 1 or more")
        norm = norm_word("layer", config.positive("layer_norm_eps", 1e-12))
        return said | {"norm": norm, "transform": said["feedforward"]}

    def config(self, spec: Any) -> dict[str, Any]:
        return super().config(spec) | {"layer_norm_eps": eps(spec.norm, 1e-5)}
