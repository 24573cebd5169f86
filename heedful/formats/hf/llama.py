"""Llama, Mistral, Qwen2 and Qwen3 as Hugging Face writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.architectures import Asked
from heedful.formats.hf.config_words import ACTIVATIONS, activation, eps, norm_word, with_dropout
from heedful.formats.hf.rope_config import position, rope
from heedful.formats.name_rules import Rule, Same, Stacked
from heedful.models.blueprint import key
from heedful.models.part_words import parse
from heedful.models.text.llama import LlamaSpec

BLOCK, THEIRS = "decoder.blocks.{n}", "model.layers.{n}"


class Llama(Asked):
    """The layout of Llama (Touvron et al., 2023)."""

    kind, family, prefix = "llama", "llama", "model."
    ignored = (r"model\.(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq",)
    tied: ClassVar[Mapping[str, str]] = {"lm_head.weight": "model.embed_tokens.weight"}
    stem, writes = "Llama", "ForCausalLM"
    answers: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "next": {"outputs.matrix.weight": "lm_head.weight"},
        "classes": {"outputs.matrix.weight": "score.weight"},
        "tags": {"outputs.matrix.{kind}": "score.{kind}"},
    }
    defaults: ClassVar[Mapping[str, Any]] = {"intermediate_size": 11008, "max_position_embeddings": 2048}
    around: ClassVar[tuple[int | None, int | None]] = (1, 2)  # the ids of begin and end, where the config has none

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.only("rope_interleaved", False)
        config.only("use_mrope", False)
        config.harmless("is_llama_config")
        heads = config.whole("num_attention_heads", 32)
        groups = config.take("num_key_value_heads", self.defaults.get("num_key_value_heads"))
        return {
            "width": config.whole("hidden_size", 4096),
            "depth": config.whole("num_hidden_layers", 32),
            "heads": heads,
            "groups": heads if groups is None else config.whole("num_key_value_heads", groups),
            "key": config.count("head_dim", self.defaults.get("head_dim")),
            "hidden": config.whole("intermediate_size", self.defaults["intermediate_size"]),
            "length": config.whole("max_position_embeddings", self.defaults["max_position_embeddings"]),
            "vocab": config.whole("vocab_size", self.defaults.get("vocab_size", 32000)),
            "position": position(config),
            "norm": norm_word("rms", config.positive("rms_norm_eps", 1e-6)),
            "feedforward": self.gated(config),
            "mechanism": self.mechanism(config),
            "tied": config.flag("tie_word_embeddings", False),
            "pad": config.id("pad_token_id"),
            "begin": config.id("bos_token_id", self.around[0]),
            "end": config.ids("eos_token_id", self.around[1]),
            **self.switches(config),
            **self.asked(config, 0.0),
        }

    def gated(self, config: Config) -> str:
        """The word of the feed-forward."""
        bent = config.among("hidden_act", ACTIVATIONS, "silu")
        return f"gated(activation={bent!r}, bias={config.flag('mlp_bias', False)})"

    def mechanism(self, config: Config) -> str:
        """The word of the mechanism."""
        return with_dropout("softmax", config.number("attention_dropout", 0.0))

    def switches(self, config: Config) -> dict[str, bool]:
        """Which matrices have a bias, and whether queries and keys are normed."""
        biased = config.flag("attention_bias", False)
        return {"project_bias": biased, "join_bias": biased, "key_norm": False}

    def config(self, spec: LlamaSpec) -> dict[str, Any]:
        return {
            **self.asking(spec),
            "model_type": self.kind,
            "hidden_size": spec.width,
            "num_hidden_layers": spec.depth,
            "num_attention_heads": spec.heads,
            "num_key_value_heads": spec.groups or spec.heads,
            "head_dim": key(spec.blueprint),
            "intermediate_size": spec.hidden or 4 * spec.width,
            "max_position_embeddings": spec.length,
            "vocab_size": spec.vocab,
            "rms_norm_eps": eps(spec.norm, 1e-6),
            "hidden_act": activation(spec.feedforward),
            "attention_dropout": parse(spec.mechanism)[1].get("dropout", 0.0),
            "tie_word_embeddings": spec.tied,
            "pad_token_id": spec.pad,
            "bos_token_id": spec.begin,
            "eos_token_id": spec.end,
            **rope(spec.position),
            **self.switched(spec),
        }

    def switched(self, spec: LlamaSpec) -> dict[str, Any]:
        """What `switches` reads."""
        return {"attention_bias": spec.project_bias, "mlp_bias": parse(spec.feedforward)[1].get("bias", True)}

    def table(self, spec: LlamaSpec) -> Sequence[Rule]:
        hidden, shared = spec.hidden or 4 * spec.width, (spec.groups or spec.heads) * key(spec.blueprint)
        rows = {"q": spec.heads * key(spec.blueprint), "k": shared, "v": shared}
        return [
            Same("inputs.table.weight", "model.embed_tokens.weight"),
            Stacked(
                f"{BLOCK}.attention.project.to_qkv.{{kind}}",
                {f"{THEIRS}.self_attn.{part}_proj.{{kind}}": size for part, size in rows.items()},
            ),
            Same(f"{BLOCK}.attention.project.norm_q.weight", f"{THEIRS}.self_attn.q_norm.weight"),
            Same(f"{BLOCK}.attention.project.norm_k.weight", f"{THEIRS}.self_attn.k_norm.weight"),
            Same(f"{BLOCK}.attention.join.{{kind}}", f"{THEIRS}.self_attn.o_proj.{{kind}}"),
            Stacked(
                f"{BLOCK}.feedforward.up.{{kind}}",
                {f"{THEIRS}.mlp.{part}_proj.{{kind}}": hidden for part in ("gate", "up")},
            ),
            Same(f"{BLOCK}.feedforward.down.{{kind}}", f"{THEIRS}.mlp.down_proj.{{kind}}"),
            Same(f"{BLOCK}.norm1.weight", f"{THEIRS}.input_layernorm.weight"),
            Same(f"{BLOCK}.norm2.weight", f"{THEIRS}.post_attention_layernorm.weight"),
            Same("decoder.norm.weight", "model.norm.weight"),
            *self.answering(spec),
        ]


class Mistral(Llama):
    """The layout of Mistral (Jiang et al., 2023): each token sees a window of those before it."""

    kind, stem = "mistral", "Mistral"
    defaults: ClassVar[Mapping[str, Any]] = {
        "intermediate_size": 14336,
        "max_position_embeddings": 131072,
        "num_key_value_heads": 8,
    }

    def mechanism(self, config: Config) -> str:
        size = config.take("sliding_window", 4096)
        return super().mechanism(config) if size is None else window_word(config, config.whole("sliding_window", size))

    def switches(self, config: Config) -> dict[str, bool]:
        return {"project_bias": False, "join_bias": False, "key_norm": False}

    def switched(self, spec: LlamaSpec) -> dict[str, Any]:
        return {"sliding_window": parse(spec.mechanism)[1].get("size")}


class Qwen2(Llama):
    """The layout of Qwen2 (Yang et al., 2024): queries, keys and values have biases."""

    kind, stem = "qwen2", "Qwen2"
    defaults: ClassVar[Mapping[str, Any]] = {
        "intermediate_size": 22016,
        "max_position_embeddings": 32768,
        "num_key_value_heads": 32,
        "vocab_size": 151936,
    }
    around = (None, None)

    def mechanism(self, config: Config) -> str:
        size = config.count("sliding_window", 4096)
        size = size if config.flag("use_sliding_window", False) else None
        first, depth = config.whole("max_window_layers", 28), config.whole("num_hidden_layers", 32)
        kinds = config.take("layer_types", None)
        if not isinstance(kinds, list | type(None)):
            raise config.refusal("layer_types", "it should be a list")
        if kinds is None:
            kinds = ["full_attention"] * (size is None or first > 0) + ["sliding_attention"] * (
                size is not None and first < depth
            )
        if kinds and all(kind == "full_attention" for kind in kinds):
            return super().mechanism(config)
        if size is None or not all(kind == "sliding_attention" for kind in kinds):
            named = "max_window_layers" if config.values.get("layer_types") is None else "layer_types"
            raise config.refusal(named, "a window is supported in all layers or in none")
        return window_word(config, size)

    def switches(self, config: Config) -> dict[str, bool]:
        return {"project_bias": True, "join_bias": False, "key_norm": False}

    def switched(self, spec: LlamaSpec) -> dict[str, Any]:
        size = parse(spec.mechanism)[1].get("size")
        return {"use_sliding_window": size is not None, "sliding_window": size, "max_window_layers": 0 if size else 28}


class Qwen3(Qwen2):
    """The layout of Qwen3 (Yang et al., 2025): queries and keys are normed, head by head."""

    kind, stem = "qwen3", "Qwen3"
    defaults: ClassVar[Mapping[str, Any]] = {**Qwen2.defaults, "head_dim": 128}

    def switches(self, config: Config) -> dict[str, bool]:
        biased = config.flag("attention_bias", False)
        return {"project_bias": biased, "join_bias": biased, "key_norm": True}

    def switched(self, spec: LlamaSpec) -> dict[str, Any]:
        return super().switched(spec) | {"attention_bias": spec.project_bias}


def window_word(config: Config, size: int) -> str:
    """The word of a window; weights within one are not dropped."""
    config.only("attention_dropout", 0.0)
    return f"window(size={size})"
