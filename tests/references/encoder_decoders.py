"""Encoder-decoders of the transformers library at toy size, drawn at random, and the same models here."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as some
from torch import Tensor, nn

from heedful import models
from heedful.models.encoder_decoder import EncoderDecoder
from tests.references.copying import Pair, copied

VOCAB, LENGTH = 29, 11
KINDS = ("t5", "bart", "mbart", "marian", "pegasus")


@dataclass
class Asked:
    """Sources and targets of unequal length as one batch, and which tokens are there."""

    source: Tensor  # B S
    target: Tensor  # B T
    read: Tensor  # B S, bool
    written: Tensor  # B T, bool

    @classmethod
    def drawn(cls, seed: int, longest: int, pad: int, left: bool) -> Asked:
        coins = torch.Generator().manual_seed(seed)

        def side(length: int) -> tuple[Tensor, Tensor]:
            lengths = torch.randint(1, length + 1, (3,), generator=coins)
            lengths[0] = length
            there = torch.arange(length) < lengths[:, None]
            there = there.flip(1) if left else there
            tokens = torch.randint(3, VOCAB - 1, (3, length), generator=coins)
            return tokens.masked_fill(~there, pad), there

        return cls(*(part for pair in zip(side(longest), side(max(1, longest - 2)), strict=True) for part in pair))

    def theirs(self) -> dict[str, Tensor]:
        """As transformers takes it."""
        return {
            "input_ids": self.source,
            "attention_mask": self.read.long(),
            "decoder_input_ids": self.target,
            "decoder_attention_mask": self.written.long(),
        }

    @property
    def places(self) -> list[Tensor]:
        """Where the tokens of either side stand: transformers counts the padding before them in."""
        return [torch.arange(there.shape[1]).where(there, -1) for there in (self.read, self.written)]


@some.composite
def drawn(draw: Any, kind: str) -> tuple[Any, dict[str, Any]]:
    """A config of theirs, and the spec that should say the same."""
    heads, depth, deep = draw(some.integers(1, 3)), draw(some.integers(1, 2)), draw(some.integers(1, 3))
    return (t5 if kind == "t5" else bart)(draw, kind, heads, depth, deep)


def t5(draw: Any, kind: str, heads: int, depth: int, deep: int) -> tuple[Any, dict[str, Any]]:
    from transformers import T5Config

    gated, scaled = draw(some.booleans()), draw(some.booleans())
    width, key, hidden = draw(some.sampled_from([8, 13])), draw(some.integers(2, 5)), draw(some.integers(3, 20))
    buckets, farthest = draw(some.sampled_from([(32, 128), (8, 6), (4, 5)]))
    config = T5Config(
        vocab_size=VOCAB,
        d_model=width,
        d_kv=key,
        d_ff=hidden,
        num_layers=depth,
        num_decoder_layers=deep,
        num_heads=heads,
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=farthest,
        feed_forward_proj="gated-gelu" if gated else "relu",
        tie_word_embeddings=scaled,
        decoder_start_token_id=0,
    )
    numbers = {"width": width, "key": key, "hidden": hidden, "heads": heads, "depth": depth, "decoder_depth": deep}
    said = {"bias": f"buckets(buckets={buckets}, farthest={farthest})", "scaled": scaled, "vocab": VOCAB}
    if gated:
        said["feedforward"] = "gated(activation='gelu_tanh', bias=False)"
    return config, {"family": "t5", "pad": 0, "begin": 0, "end": 1, **numbers, **said}


def bart(draw: Any, kind: str, heads: int, depth: int, deep: int) -> tuple[Any, dict[str, Any]]:
    import transformers

    configs = {
        "bart": transformers.BartConfig,
        "mbart": transformers.MBartConfig,
        "marian": transformers.MarianConfig,
        "pegasus": transformers.PegasusConfig,
    }
    word, theirs = draw(some.sampled_from([("gelu", "gelu"), ("silu", "swish"), ("relu", "relu")]))
    scaled, hidden, pad = draw(some.booleans()), draw(some.integers(3, 20)), draw(some.sampled_from([0, VOCAB - 1]))
    other = draw(some.booleans()) and kind == "marian"  # a table for the source
    config = configs[kind](
        **({"share_encoder_decoder_embeddings": False, "decoder_vocab_size": VOCAB} if other else {}),
        vocab_size=VOCAB + 3 if other else VOCAB,
        d_model=12,
        max_position_embeddings=LENGTH,
        encoder_layers=depth,
        decoder_layers=deep,
        encoder_attention_heads=heads,
        decoder_attention_heads=4 - heads,
        encoder_ffn_dim=hidden,
        decoder_ffn_dim=hidden + 1,
        activation_function=theirs,
        scale_embedding=scaled,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=2,
        init_std=0.3,
    )
    numbers = {"heads": heads, "decoder_heads": 4 - heads, "hidden": hidden, "decoder_hidden": hidden + 1}
    spec = {"vocab": VOCAB, "width": 12, "length": LENGTH, "depth": depth, "decoder_depth": deep, **numbers}
    spec |= {"source_vocab": VOCAB + 3} if other else {}
    spec |= {"family": "bart" if kind in ("bart", "mbart") else "marian", "scaled": scaled, "feedforward": word}
    order = "post" if kind in ("bart", "marian") else "pre"
    return config, spec | {"order": order, "pad": pad, "begin": pad, "end": 2, "first": None}


BART = {
    "{side}.blocks.{n}.attention.project.to_qkv": "model.{side}.layers.{n}.self_attn.q_proj k_proj v_proj",
    "{side}.blocks.{n}.attention.join": "model.{side}.layers.{n}.self_attn.out_proj",
    "{side}.blocks.{n}.norm1": "model.{side}.layers.{n}.self_attn_layer_norm",
    "encoder.blocks.{n}.norm2": "model.encoder.layers.{n}.final_layer_norm",
    "decoder.blocks.{n}.cross.project.to_q": "model.decoder.layers.{n}.encoder_attn.q_proj",
    "decoder.blocks.{n}.cross.project.to_kv": "model.decoder.layers.{n}.encoder_attn.k_proj v_proj",
    "decoder.blocks.{n}.cross.join": "model.decoder.layers.{n}.encoder_attn.out_proj",
    "decoder.blocks.{n}.norm2": "model.decoder.layers.{n}.encoder_attn_layer_norm",
    "decoder.blocks.{n}.norm3": "model.decoder.layers.{n}.final_layer_norm",
    "{side}.blocks.{n}.feedforward.up": "model.{side}.layers.{n}.fc1",
    "{side}.blocks.{n}.feedforward.down": "model.{side}.layers.{n}.fc2",
    "inputs.table": "model.decoder.embed_tokens",
    "source.table": "model.encoder.embed_tokens",
    "inputs.position.table": "model.decoder.embed_positions",
    "source.position.table": "model.encoder.embed_positions",
    "inputs.norm": "model.decoder.layernorm_embedding",
    "source.norm": "model.encoder.layernorm_embedding",
    "{side}.norm": "model.{side}.layer_norm",
    "outputs.matrix": "lm_head",
}
T5 = {
    "inputs.table": "shared",
    "{side}_bias.table": "{side}.block.0.layer.0.SelfAttention.relative_attention_bias",
    "{side}.blocks.{n}.attention.project.to_qkv": "{side}.block.{n}.layer.0.SelfAttention.q k v",
    "{side}.blocks.{n}.attention.join": "{side}.block.{n}.layer.0.SelfAttention.o",
    "{side}.blocks.{n}.norm1": "{side}.block.{n}.layer.0.layer_norm",
    "decoder.blocks.{n}.cross.project.to_q": "decoder.block.{n}.layer.1.EncDecAttention.q",
    "decoder.blocks.{n}.cross.project.to_kv": "decoder.block.{n}.layer.1.EncDecAttention.k v",
    "decoder.blocks.{n}.cross.join": "decoder.block.{n}.layer.1.EncDecAttention.o",
    "{side}.blocks.{n}.norm2": "{side}.block.{n}.layer.1.layer_norm",
    "decoder.blocks.{n}.norm3": "decoder.block.{n}.layer.2.layer_norm",
    "encoder.blocks.{n}.feedforward.up": "encoder.block.{n}.layer.1.DenseReluDense.wi wi_0 wi_1",
    "encoder.blocks.{n}.feedforward.down": "encoder.block.{n}.layer.1.DenseReluDense.wo",
    "decoder.blocks.{n}.feedforward.up": "decoder.block.{n}.layer.2.DenseReluDense.wi wi_0 wi_1",
    "decoder.blocks.{n}.feedforward.down": "decoder.block.{n}.layer.2.DenseReluDense.wo",
    "{side}.norm": "{side}.final_layer_norm",
}


def both(kind: str, config: Any, spec: dict[str, Any]) -> tuple[EncoderDecoder, nn.Module, list[Pair]]:
    """Their model of a config with random weights, ours with the same, and which parameters are which."""
    import transformers

    classes = {
        "t5": transformers.T5ForConditionalGeneration,
        "bart": transformers.BartForConditionalGeneration,
        "mbart": transformers.MBartForConditionalGeneration,
        "marian": transformers.MarianMTModel,
        "pegasus": transformers.PegasusForConditionalGeneration,
    }
    torch.manual_seed(0)
    theirs, ours = classes[kind](config).eval(), models.build(**spec).eval()
    assert isinstance(ours, EncoderDecoder)
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            if weight.dim() == 1 or "embed_tokens" in name or "shared" in name:
                weight.add_(torch.randn_like(weight) * 0.3)
        if kind != "t5":
            theirs.final_logits_bias.normal_()
            ours.outputs.matrix.bias.copy_(theirs.final_logits_bias[0])
    return ours, theirs, copied(places(T5 if kind == "t5" else BART, ours, theirs))


def places(table: dict[str, str], ours: nn.Module, theirs: nn.Module) -> list[Pair]:
    """Which of our parameters are which of theirs; every one of ours is."""
    own, other = (dict(one.named_parameters(remove_duplicate=False)) for one in (ours, theirs))
    found: dict[str, Pair] = {}
    for (here, there), side, n in itertools.product(table.items(), ("encoder", "decoder"), range(3)):
        first, *more = there.format(side=side, n=n).split()
        stems = [first, *(f"{first.rpartition('.')[0]}.{name}" for name in more)]
        for kind in ("weight", "bias"):
            at = here.format(side=side, n=n)
            name = f"{at}.{kind}" if f"{at}.{kind}" in own else at
            parts = [other[f"{stem}.{kind}"] for stem in stems if f"{stem}.{kind}" in other]
            if name in own and parts and (kind == "weight" or name != at):
                found[name] = [own[name]], parts
    mine = {id(weight) for ours_, _ in found.values() for weight in ours_}
    assert all(id(weight) in mine or name == "outputs.matrix.bias" for name, weight in own.items())
    return list(found.values())
