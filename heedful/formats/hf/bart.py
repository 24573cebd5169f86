"""BART, mBART, Marian and Pegasus as Hugging Face writes them: one table of names for the four."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.architectures import Asked
from heedful.formats.hf.config_words import ACTIVATIONS, activation, with_dropout
from heedful.formats.hf.generation_config import generation
from heedful.formats.name_rules import Row, Rule, Same, Stacked
from heedful.inputs import SineHalves
from heedful.models import Spec
from heedful.models.heads_asked import NEXT, word_asked
from heedful.models.part_words import parse
from heedful.models.text.bart import BartSpec

READS: Mapping[str, Mapping[str, str]] = {
    "classes": {
        "outputs.pooler.matrix.{kind}": "classification_head.dense.{kind}",
        "outputs.matrix.{kind}": "classification_head.out_proj.{kind}",
    },
    "answer": {"outputs.matrix.{kind}": "qa_outputs.{kind}"},
}
SIZES = {"depth": "layers", "heads": "attention_heads", "hidden": "ffn_dim"}  # of a side


class BART(Asked):
    """The layout of BART (Lewis et al., 2020)."""

    kind, family, prefix = "bart", "bart", "model."
    order: ClassVar[str] = "post"
    stem, writes, drops = "Bart", "ForConditionalGeneration", ("classes", 0.0)
    answers: ClassVar[Mapping[str, Mapping[str, str]]] = READS
    normed: ClassVar[bool] = True
    position: ClassVar[str] = "learned(offset=2)"
    ids: ClassVar[Mapping[str, int]] = {"pad_token_id": 1, "decoder_start_token_id": 2, "eos_token_id": 2}
    ignored: ClassVar[Sequence[str]] = (r"(model\.)?(en|de)coder\.version", r"model\.shared\.weight")
    tied: ClassVar[Mapping[str, str]] = {
        "lm_head.weight": "model.shared.weight",
        "model.encoder.embed_tokens.weight": "model.shared.weight",
        "model.decoder.embed_tokens.weight": "model.shared.weight",
    }

    def suits(self, spec: Spec) -> bool:
        return super().suits(spec) and cast(BartSpec, spec).order == self.order

    def ties(self, spec: BartSpec) -> Mapping[str, str]:
        return self.tied if spec.source_vocab is None else {"lm_head.weight": "model.decoder.embed_tokens.weight"}

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        self.check(config)
        tied, source = config.flag("tie_word_embeddings", True), config.whole("vocab_size")
        shared, vocab = self.vocabulary(config, source)
        score = config.number("attention_dropout", 0.0), config.number("activation_dropout", 0.0)
        word = config.among("activation_function", ACTIVATIONS, "gelu")
        dropout = config.number("dropout", 0.1)
        read = self.asked(config, dropout) or {"output_bias": "final_logits_bias" in there}
        return {
            "width": config.whole("d_model"),
            **{ours: config.whole(f"encoder_{theirs}") for ours, theirs in SIZES.items()},
            **{f"decoder_{ours}": config.whole(f"decoder_{theirs}") for ours, theirs in SIZES.items()},
            "length": config.whole("max_position_embeddings", 1024),
            "vocab": vocab,
            "source_vocab": None if shared and tied else source,
            "dropout": dropout,
            "mechanism": with_dropout("softmax", score[0]),
            "feedforward": with_dropout(word, score[1]),
            "order": self.order,
            "position": self.position,
            "normalize_embedding": self.normed,
            "scale_embedding": config.flag("scale_embedding", False),
            "tied": tied,
            "pad": config.id("pad_token_id", self.ids["pad_token_id"]),
            "begin": config.whole("decoder_start_token_id", self.ids["decoder_start_token_id"]),
            "end": config.ids("eos_token_id", self.ids["eos_token_id"]),
            "first": config.id("forced_bos_token_id"),
            **read,
        }

    def check(self, config: Config) -> None:
        """Reads what older configs say of their kind, and refuses another."""
        config.only("is_encoder_decoder", True)
        pre, sines = self.order == "pre", not self.position.startswith("learned")
        for key, value in (
            ("normalize_before", pre),
            ("add_final_layer_norm", pre),
            ("normalize_embedding", self.normed),
            ("static_position_embeddings", sines),
            ("add_bias_logits", False),
            ("do_blenderbot_90_layernorm", False),
        ):
            config.only(key, value)
        for side in ("encoder", "decoder"):
            config.only(f"{side}_layerdrop", 0.0, 0)
        config.harmless("num_hidden_layers", "init_std", "classifier_dropout", "classif_dropout", "bos_token_id")
        config.harmless("extra_pos_embeddings", "force_bos_token_to_be_generated", "save_step")

    def vocabulary(self, config: Config, source: int) -> tuple[bool, int]:
        """Whether source and target have one table, and how many tokens the target has."""
        return True, source

    def config(self, spec: BartSpec) -> dict[str, Any]:
        score, inner = parse(spec.mechanism)[1], parse(spec.feedforward)[1]
        decoder = spec.decoder_depth or spec.depth, spec.decoder_heads or spec.heads, spec.decoder_hidden or spec.hidden
        sides = {"encoder": (spec.depth, spec.heads, spec.hidden), "decoder": decoder}
        return {
            **self.asking(spec),
            "model_type": self.kind,
            "is_encoder_decoder": True,
            "d_model": spec.width,
            **{
                f"{side}_{name}": number or 4 * spec.width
                for side, numbers in sides.items()
                for name, number in zip(SIZES.values(), numbers, strict=True)
            },
            "max_position_embeddings": spec.length,
            "vocab_size": spec.source_vocab or spec.vocab,
            "dropout": spec.dropout,
            "attention_dropout": score.get("dropout", 0.0),
            "activation_dropout": inner.get("dropout", 0.0),
            "activation_function": activation(spec.feedforward),
            "scale_embedding": spec.scale_embedding,
            "tie_word_embeddings": spec.tied,
            "pad_token_id": spec.pad,
            "decoder_start_token_id": spec.begin,
            "eos_token_id": spec.end,
            "forced_bos_token_id": spec.first,
            "forced_eos_token_id": None,
        }

    def generation(self, spec: BartSpec) -> dict[str, Any]:
        return generation(spec.special)

    def table(self, spec: BartSpec) -> Sequence[Rule]:
        ours, theirs, width = "{side}.blocks.{n}", "model.{side}.layers.{n}", spec.width
        cross, other = "decoder.blocks.{n}", "model.decoder.layers.{n}"
        both = spec.source_vocab is None
        return [
            Same("inputs.table.weight", f"model.{'shared' if both else 'decoder.embed_tokens'}.weight"),
            Same("source.table.weight", "model.encoder.embed_tokens.weight"),
            Same("inputs.position.table", "model.decoder.embed_positions.weight"),
            Same("source.position.table", "model.encoder.embed_positions.weight"),
            Same("inputs.norm.{kind}", "model.decoder.layernorm_embedding.{kind}"),
            Same("source.norm.{kind}", "model.encoder.layernorm_embedding.{kind}"),
            stacked_rules(f"{ours}.attention.project.to_qkv", f"{theirs}.self_attn", "qkv", width),
            Same(f"{ours}.attention.join.{{kind}}", f"{theirs}.self_attn.out_proj.{{kind}}"),
            Same(f"{ours}.norm1.{{kind}}", f"{theirs}.self_attn_layer_norm.{{kind}}"),
            Same(f"{cross}.cross.project.to_q.{{kind}}", f"{other}.encoder_attn.q_proj.{{kind}}"),
            stacked_rules(f"{cross}.cross.project.to_kv", f"{other}.encoder_attn", "kv", width),
            Same(f"{cross}.cross.join.{{kind}}", f"{other}.encoder_attn.out_proj.{{kind}}"),
            Same("encoder.blocks.{n}.norm2.{kind}", "model.encoder.layers.{n}.final_layer_norm.{kind}"),
            Same(f"{cross}.norm2.{{kind}}", f"{other}.encoder_attn_layer_norm.{{kind}}"),
            Same(f"{cross}.norm3.{{kind}}", f"{other}.final_layer_norm.{{kind}}"),
            Same(f"{ours}.feedforward.up.{{kind}}", f"{theirs}.fc1.{{kind}}"),
            Same(f"{ours}.feedforward.down.{{kind}}", f"{theirs}.fc2.{{kind}}"),
            Same("encoder.norm.{kind}", "model.encoder.layer_norm.{kind}"),
            Same("decoder.norm.{kind}", "model.decoder.layer_norm.{kind}"),
            *self.answering(spec),
        ]

    def answering(self, spec: BartSpec) -> list[Rule]:  # type: ignore[override]
        if word_asked(spec) != NEXT:
            return super().answering(spec)
        return [Same("outputs.matrix.weight", "lm_head.weight"), Row("outputs.matrix.bias", "final_logits_bias")]


class MBART(BART):
    """The layout of mBART (Liu et al., 2020): BART, normed before each part."""

    kind, order = "mbart", "pre"
    stem = "MBart"

    def asked(self, config: Config, dropout: float) -> dict[str, Any]:
        read = super().asked(config, dropout)
        return read | {"last_first": True} if read else {}


class Marian(BART):
    """The layout of Marian (Junczys-Dowmunt et al., 2018), as of OPUS-MT."""

    kind, family = "marian", "marian"
    stem, writes, answers = "Marian", "MTModel", {}
    normed = False
    position = "sine_halves"
    ids: ClassVar[Mapping[str, int]] = {"pad_token_id": 58100, "decoder_start_token_id": 58100, "eos_token_id": 0}
    ignored = (*BART.ignored, r"model\.(en|de)coder\.embed_positions\.weight")

    def vocabulary(self, config: Config, source: int) -> tuple[bool, int]:
        shared, target = config.flag("share_encoder_decoder_embeddings", True), config.count("decoder_vocab_size")
        return shared, source if shared else target or source

    def config(self, spec: BartSpec) -> dict[str, Any]:
        shared = spec.source_vocab is None
        return super().config(spec) | {
            "share_encoder_decoder_embeddings": shared,
            "decoder_vocab_size": spec.vocab,
            "bad_words_ids": [[token] for token in spec.special.never],
        }


class Pegasus(BART):
    """The layout of Pegasus (Zhang et al., 2020): Marian, normed before each part."""

    kind, family, order = "pegasus", "marian", "pre"
    stem, answers = "Pegasus", {}
    normed, position, ignored = False, Marian.position, Marian.ignored
    ids: ClassVar[Mapping[str, int]] = {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1}

    def constants(self, spec: BartSpec) -> dict[str, Tensor]:
        here = torch.arange(spec.length)[None]
        sines = SineHalves(spec.width)(torch.zeros(1, spec.length, spec.width), here)[0]
        return {f"model.{side}.embed_positions.weight": sines.clone() for side in ("encoder", "decoder")}


def stacked_rules(ours: str, theirs: str, parts: str, rows: int) -> Stacked:
    """Queries, keys and values of one matrix, weights and biases."""
    return Stacked(f"{ours}.{{kind}}", {f"{theirs}.{part}_proj.{{kind}}": rows for part in parts})
