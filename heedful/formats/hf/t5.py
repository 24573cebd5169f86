"""T5 as Hugging Face writes it (`t5`): both feed-forwards, tied and untied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.config_words import ACTIVATIONS, eps, norm_word
from heedful.formats.hf.generation_config import generation
from heedful.formats.layout import Layout
from heedful.formats.name_rules import Rule, Same, Stacked
from heedful.models.part_words import parse
from heedful.models.text.t5 import T5Spec

GATE, GELU = "gated-", {"gated-gelu": "gelu_new"}  # which is said of another gelu than elsewhere


class T5(Layout):
    """The layout of T5 (Raffel et al., 2020), of T5 1.1 and of Flan-T5."""

    kind, family = "t5", "t5"
    ignored = (r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",)
    tied: ClassVar[Mapping[str, str]] = {
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
    }

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.only("is_encoder_decoder", True)
        config.harmless("initializer_factor", "classifier_dropout")
        depth, pad = config.whole("num_layers"), config.whole("pad_token_id", 0)
        buckets = config.whole("relative_attention_num_buckets", 32)
        farthest = config.whole("relative_attention_max_distance", 128)
        return {
            "width": config.whole("d_model"),
            "key": config.whole("d_kv"),
            "hidden": config.whole("d_ff"),
            "heads": config.whole("num_heads"),
            "depth": depth,
            "decoder_depth": config.count("num_decoder_layers") or depth,
            "vocab": config.whole("vocab_size"),
            "length": config.whole("n_positions", 512),  # as long as it learned from; more can be read
            "dropout": config.number("dropout_rate", 0.1),
            "bias": f"buckets(buckets={buckets}, farthest={farthest})",
            "norm": norm_word("rms", config.positive("layer_norm_epsilon", 1e-6)),
            "feedforward": feedforward(config),
            "scale_outputs": config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", True)),
            "tied": "lm_head.weight" not in there,  # whatever the config says: transformers goes by the file too
            "pad": pad,
            "begin": config.whole("decoder_start_token_id", pad),
            "end": config.ids("eos_token_id", 1),
        }

    def config(self, spec: T5Spec) -> dict[str, Any]:
        _, distances = parse(spec.bias)
        return {
            "architectures": ["T5ForConditionalGeneration"],
            "model_type": self.kind,
            "is_encoder_decoder": True,
            "d_model": spec.width,
            "d_kv": spec.key or spec.width // spec.heads,
            "d_ff": spec.hidden or 4 * spec.width,
            "num_heads": spec.heads,
            "num_layers": spec.depth,
            "num_decoder_layers": spec.decoder_depth or spec.depth,
            "vocab_size": spec.vocab,
            "n_positions": spec.length,
            "dropout_rate": spec.dropout,
            "relative_attention_num_buckets": distances.get("buckets", 32),
            "relative_attention_max_distance": distances.get("farthest", 128),
            "layer_norm_epsilon": eps(spec.norm, 1e-6),
            "feed_forward_proj": projection(spec.feedforward),
            "scale_decoder_outputs": spec.scale_outputs,
            "tie_word_embeddings": spec.scale_outputs,  # which is what older readers take it to mean
            "pad_token_id": spec.pad,
            "decoder_start_token_id": spec.begin,
            "eos_token_id": spec.end,
        }

    def generation(self, spec: T5Spec) -> dict[str, Any]:
        return generation(spec.special)

    def table(self, spec: T5Spec) -> Sequence[Rule]:
        key = spec.heads * (spec.key or spec.width // spec.heads)
        own, cross = "{side}.block.{n}.layer.0", "decoder.block.{n}.layer.1"
        rules: list[Rule] = [
            Same("inputs.table.weight", "shared.weight"),
            Same("outputs.matrix.weight", "lm_head.weight"),
            Same("{side}_bias.table", "{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"),
            Stacked(
                "{side}.blocks.{n}.attention.project.to_qkv.weight",
                {f"{own}.SelfAttention.{part}.weight": key for part in "qkv"},
            ),
            Same("{side}.blocks.{n}.attention.join.weight", f"{own}.SelfAttention.o.weight"),
            Same("{side}.blocks.{n}.norm1.weight", f"{own}.layer_norm.weight"),
            Same("decoder.blocks.{n}.cross.project.to_q.weight", f"{cross}.EncDecAttention.q.weight"),
            Stacked(
                "decoder.blocks.{n}.cross.project.to_kv.weight",
                {f"{cross}.EncDecAttention.{part}.weight": key for part in "kv"},
            ),
            Same("decoder.blocks.{n}.cross.join.weight", f"{cross}.EncDecAttention.o.weight"),
            Same("{side}.blocks.{n}.norm2.weight", "{side}.block.{n}.layer.1.layer_norm.weight"),
            Same("decoder.blocks.{n}.norm3.weight", "decoder.block.{n}.layer.2.layer_norm.weight"),
            Same("{side}.norm.weight", "{side}.final_layer_norm.weight"),
        ]
        return [*rules, *feedforward_rules("encoder", 1, spec), *feedforward_rules("decoder", 2, spec)]


def feedforward_rules(side: str, layer: int, spec: T5Spec) -> list[Rule]:
    """The rules of a side's feed-forward, whose first matrix is two where it is gated."""
    ours, theirs = f"{side}.blocks.{{n}}.feedforward", f"{side}.block.{{n}}.layer.{layer}.DenseReluDense"
    up: Rule = Same(f"{ours}.up.weight", f"{theirs}.wi.weight")
    if parse(spec.feedforward)[0] == "gated":
        hidden = spec.hidden or 4 * spec.width
        up = Stacked(f"{ours}.up.weight", {f"{theirs}.wi_{part}.weight": hidden for part in "01"})
    return [up, Same(f"{ours}.down.weight", f"{theirs}.wo.weight")]


def feedforward(config: Config) -> str:
    """The word of a feed-forward, which T5 calls a projection: `relu`, `gated-gelu`; other keys may say it anew."""
    word = config.word("feed_forward_proj", "relu")
    name = word.removeprefix(GATE)
    if name not in ACTIVATIONS:
        raise config.refusal("feed_forward_proj", f"known: {', '.join(ACTIVATIONS)}, with or without {GATE}")
    activation = config.among("dense_act_fn", ACTIVATIONS, GELU.get(word, name))
    if config.flag("is_gated_act", word.startswith(GATE)):
        return f"gated(activation='{activation}', bias=False)"
    return f"{activation}(bias=False)"


def projection(word: str) -> str:
    """What T5 calls a feed-forward of a word, or of the nearest that it has."""
    name, given = parse(word)
    if name != "gated":
        return {"gelu_tanh": "gelu_new"}.get(name, name)
    known = {"gelu_tanh": "gelu", "silu": "silu", "relu": "relu"}
    return GATE + known.get(given.get("activation", "silu"), "gelu")
