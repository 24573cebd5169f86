"""Encoder-decoders of the transformers library at toy size, drawn at random, and the same models here."""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import torch
from hypothesis import Phase, settings
from hypothesis import strategies as some
from torch import Tensor

import heedful
from heedful import models
from heedful.formats.layout_registry import LAYOUTS
from heedful.formats.name_rules import rules_of
from heedful.formats.weights import state
from heedful.models.canonical import meaning
from heedful.models.text.encoder_decoder import EncoderDecoder
from tests.references.copying import Pair

VOCAB, LENGTH = 29, 11
KINDS = ("t5", "bart", "mbart", "marian", "pegasus")


def few(examples: int) -> settings:
    """Few examples, always the same; one that fails is told as it is, for smaller ones take long to look for."""
    once = (Phase.explicit, Phase.generate)
    return settings(max_examples=examples, derandomize=True, deadline=None, database=None, phases=once)


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
    said = {"bias": f"buckets(buckets={buckets}, farthest={farthest})", "scale_outputs": scaled, "vocab": VOCAB}
    if gated:
        said["feedforward"] = "gated(activation='gelu_tanh', bias=False)"
    numbers["dropout"] = 0.1
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
    spec |= {
        "family": "bart" if kind in ("bart", "mbart") else "marian",
        "scale_embedding": scaled,
        "feedforward": word,
    }
    order = "post" if kind in ("bart", "marian") else "pre"
    return config, spec | {"order": order, "pad": pad, "begin": pad, "end": 2, "first": None, "dropout": 0.1}


CLASSES = {
    "t5": "T5ForConditionalGeneration",
    "bart": "BartForConditionalGeneration",
    "mbart": "MBartForConditionalGeneration",
    "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
}


def theirs_of(kind: str, config: Any) -> Any:
    """Their model of a config, with random weights that all matter."""
    import transformers

    torch.manual_seed(0)
    theirs = getattr(transformers, CLASSES[kind])(config).eval()
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            if weight.dim() == 1 or "embed_tokens" in name or "shared" in name:
                weight.add_(torch.randn_like(weight) * 0.3)
        if kind != "t5":
            theirs.final_logits_bias.normal_()
    return theirs


def both(kind: str, config: Any, spec: dict[str, Any]) -> tuple[EncoderDecoder, Any, list[Pair]]:
    """Their model of a config with random weights, ours as it is read from their folder, and what is which."""
    theirs = theirs_of(kind, config)
    with TemporaryDirectory() as folder:
        theirs.generation_config.forced_bos_token_id = spec.get("first")
        theirs.save_pretrained(folder)
        ours = heedful.load(folder)
    assert isinstance(ours, EncoderDecoder)
    assert meaning(ours.spec) == meaning(models.spec(**spec))
    own, other = state(ours), dict(theirs.named_parameters(remove_duplicate=False))
    rules = rules_of(own, LAYOUTS[kind].table(ours.spec))
    named = dict(ours.named_parameters(remove_duplicate=False))
    pairs = [
        ([named[name]], [other[one] for one in rule.names]) for name, rule in rules.items() if rule.names[0] in other
    ]
    return ours, theirs, pairs
