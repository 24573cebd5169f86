"""RoBERTa and CamemBERT as Hugging Face writes them (`roberta`, `camembert`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.bert import EACH, NUMBERS, Bert
from heedful.models.part_words import parse

TIED = {
    "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}
OUTPUTS = EACH | {
    "pooled": {"outputs.pooler.matrix.{kind}": "roberta.pooler.dense.{kind}"},
    "classes": {
        "outputs.pooler.matrix.{kind}": "classifier.dense.{kind}",
        "outputs.matrix.{kind}": "classifier.out_proj.{kind}",
    },
    "masked": {
        "outputs.dense.{kind}": "lm_head.dense.{kind}",
        "outputs.norm.{kind}": "lm_head.layer_norm.{kind}",
        "outputs.matrix.bias": "lm_head.bias",
    },
}


class Roberta(Bert):
    """The layout of RoBERTa (Liu et al., 2019): positions are counted from behind that of padding."""

    kind, family, prefix, stem = "roberta", "roberta", "roberta.", "Roberta"
    numbers, tied, outputs = NUMBERS | {"vocab": ("vocab_size", 50265)}, TIED, OUTPUTS
    ids = (1, 0, 2)
    ignored, left = (r"roberta\.embeddings\.(position|token_type)_ids",), (r"roberta\.pooler\.dense\.(weight|bias)",)

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        said = super().spec(config, there)
        if said["pad"] is None:
            raise config.refusal("pad_token_id", "positions are counted from it, so that it must be an id")
        before = said["pad"] + 1
        return said | {
            "length": said["length"] - before,
            "position": f"learned(offset={before})",
            "transform": "gelu",
        }

    def config(self, spec: Any) -> dict[str, Any]:
        before = parse(spec.position)[1].get("offset", 0)
        return super().config(spec) | {"max_position_embeddings": spec.length + before}


class Camembert(Roberta):
    """The layout of CamemBERT (Martin et al., 2020), whose tensors bear RoBERTa's names."""

    kind, family, stem = "camembert", "camembert", "Camembert"
    numbers = NUMBERS
