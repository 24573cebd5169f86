"""GPT-2 as Hugging Face writes it (`gpt2`); its matrices lie the other way round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.architectures import Asked
from heedful.formats.hf.config_words import ACTIVATIONS, activation, eps, norm_word, with_dropout
from heedful.formats.name_rules import Rule, Same, Transposed
from heedful.models.part_words import parse
from heedful.models.text.gpt import GPTSpec

BLOCK, THEIRS = "decoder.blocks.{n}", "transformer.h.{n}"
MATRICES = {
    "attention.project.to_qkv": "attn.c_attn",
    "attention.join": "attn.c_proj",
    "feedforward.up": "mlp.c_fc",
    "feedforward.down": "mlp.c_proj",
}


class GPT2(Asked):
    """The layout of GPT-2 (Radford et al., 2019)."""

    kind, family, prefix = "gpt2", "gpt", "transformer."
    stem, writes = "GPT2", "LMHeadModel"
    answers: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "next": {"outputs.matrix.weight": "lm_head.weight"},
        "classes": {"outputs.matrix.weight": "score.weight"},
        "tags": {"outputs.matrix.{kind}": "classifier.{kind}"},
        "answer": {"outputs.matrix.{kind}": "qa_outputs.{kind}"},
    }
    ignored = (r"transformer\.h\.\d+\.attn\.(bias|masked_bias)",)
    tied: ClassVar[Mapping[str, str]] = {"lm_head.weight": "transformer.wte.weight"}

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        for key, *allowed in (
            ("scale_attn_by_inverse_layer_idx", False),
            ("add_cross_attention", False),
            ("reorder_and_upcast_attn", False, True),  # the order of products, in more digits: nothing else
        ):
            config.only(key, *allowed)
        config.harmless("n_ctx", "embd_pdrop", *(key for key in config.values if key.startswith("summary_")))
        score = "softmax" if config.flag("scale_attn_weights", True) else "dot"
        width, dropout = config.whole("n_embd", 768), config.number("resid_pdrop", 0.1)
        return {
            "width": width,
            "depth": config.whole("n_layer", 12),
            "heads": config.whole("n_head", 12),
            "hidden": config.count("n_inner") or 4 * width,
            "length": config.whole("n_positions", 1024),
            "vocab": config.whole("vocab_size", 50257),
            "dropout": dropout,
            "mechanism": with_dropout(score, config.number("attn_pdrop", 0.1)),
            "norm": norm_word("layer", config.positive("layer_norm_epsilon", 1e-5)),
            "feedforward": config.among("activation_function", ACTIVATIONS, "gelu_new"),
            "tied": config.flag("tie_word_embeddings", True),
            "pad": config.id("pad_token_id"),
            "begin": config.id("bos_token_id", 50256),
            "end": config.ids("eos_token_id", 50256),
            **self.asked(config, dropout),
        }

    def config(self, spec: GPTSpec) -> dict[str, Any]:
        score, given = parse(spec.mechanism)
        return {
            **self.asking(spec),
            "model_type": self.kind,
            "n_embd": spec.width,
            "n_layer": spec.depth,
            "n_head": spec.heads,
            "n_inner": spec.hidden or 4 * spec.width,
            "n_positions": spec.length,
            "vocab_size": spec.vocab,
            "embd_pdrop": spec.dropout,
            "resid_pdrop": spec.dropout,
            "attn_pdrop": given.get("dropout", 0.0),
            "scale_attn_weights": score != "dot",
            "layer_norm_epsilon": eps(spec.norm, 1e-5),
            "activation_function": activation(spec.feedforward),
            "tie_word_embeddings": spec.tied,
            "pad_token_id": spec.pad,
            "bos_token_id": spec.begin,
            "eos_token_id": spec.end,
        }

    def table(self, spec: GPTSpec) -> Sequence[Rule]:
        return [
            Same("inputs.table.weight", "transformer.wte.weight"),
            Same("inputs.position.table", "transformer.wpe.weight"),
            *(Transposed(f"{BLOCK}.{ours}.weight", f"{THEIRS}.{theirs}.weight") for ours, theirs in MATRICES.items()),
            *(Same(f"{BLOCK}.{ours}.bias", f"{THEIRS}.{theirs}.bias") for ours, theirs in MATRICES.items()),
            Same(f"{BLOCK}.norm1.{{kind}}", f"{THEIRS}.ln_1.{{kind}}"),
            Same(f"{BLOCK}.norm2.{{kind}}", f"{THEIRS}.ln_2.{{kind}}"),
            Same("decoder.norm.{kind}", "transformer.ln_f.{kind}"),
            *self.answering(spec),
        ]
