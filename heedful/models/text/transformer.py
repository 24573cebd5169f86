"""The encoder-decoder of "Attention is all you need" (Vaswani et al., 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import torch
from pydantic import model_validator

from heedful.inputs import Tokens
from heedful.models import blueprint as parts
from heedful.models.family import Family
from heedful.models.specs import BEGIN, END, PAD, SPECIAL, UNKNOWN, Count, ReadsInOrder, Spec
from heedful.models.text.encoder_decoder import EncoderDecoder, TwoStacks, decoder, encoder
from heedful.outputs import NextToken

if TYPE_CHECKING:
    from heedful.models.text.transformer_sides import TransformerDecoder, TransformerEncoder

__all__ = ["BEGIN", "END", "PAD", "SPECIAL", "UNKNOWN", "Transformer", "TransformerSpec"]


class TransformerSpec(ReadsInOrder, TwoStacks):
    """Numbers and words of an encoder-decoder."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"depth": 4, "width": 128, "hidden": 256, "heads": 4},
        "small": {"depth": 4, "width": 256, "hidden": 1024, "heads": 8},
        "base": {"depth": 6, "width": 512, "hidden": 2048, "heads": 8},
        "big": {"depth": 6, "width": 1024, "hidden": 4096, "heads": 16},
    }
    family: Literal["transformer"] = "transformer"
    vocab: Count
    """The size of the target's vocabulary; filled in from the tokenizer."""
    source_vocab: Count | None = None
    """The size of the source's vocabulary, if it has an embedding of its own."""
    tied: bool = True
    """Whether the output layer shares its weights with the target's embedding."""

    @model_validator(mode="after")
    def _table_is_as_wide_as_the_model(self) -> Self:
        parts.check_tied(self.blueprint, self.tied)
        return self


class Transformer(EncoderDecoder):
    """The encoder-decoder that is trained here, of any parts."""

    special = SPECIAL

    def __init__(self, spec: TransformerSpec) -> None:
        super().__init__()
        s, b = spec, spec.blueprint
        self.spec = spec
        self.inputs = Tokens(s.vocab, s.width, parts.position(b), s.dropout)
        self.source = Tokens(s.source_vocab, s.width, parts.position(b), s.dropout) if s.source_vocab else self.inputs
        self.encoder, self.decoder = encoder(s), decoder(s)
        self.mask = parts.mask(b)
        self.encoder_bias, self.decoder_bias = parts.bias(b), parts.bias(b, both_ways=False)
        self.outputs = NextToken(s.width, s.vocab, self.inputs.table if s.tied else None)
        if s.tied:
            parts.init_tied(self.decoder)


def sides(model: Transformer) -> tuple[TransformerEncoder, TransformerDecoder]:
    """Its encoder and its decoder as models of their own, which share its weights."""
    from heedful.models.text import transformer_sides as own

    s, words = model.spec, dict(model.spec)
    read, written = {"vocab": s.source_vocab or s.vocab}, {"depth": s.decoder_depth or s.depth}
    with torch.device("meta"):
        encoder = own.TransformerEncoder(own.TransformerEncoderSpec(**of(words, own.TransformerEncoderSpec) | read))
        decoder = own.TransformerDecoder(own.TransformerDecoderSpec(**of(words, own.TransformerDecoderSpec) | written))
    encoder.inputs, encoder.encoder, encoder.bias = model.source, model.encoder, model.encoder_bias
    decoder.inputs, decoder.decoder, decoder.bias = model.inputs, model.decoder, model.decoder_bias
    decoder.outputs = model.outputs
    return encoder, decoder


def of(words: Mapping[str, Any], kind: type[Spec]) -> dict[str, Any]:
    """The keys that another kind of spec has too, but for its family."""
    return {key: value for key, value in words.items() if key in kind.model_fields and key != "family"}


FAMILY = Family(TransformerSpec, Transformer, {"vocab": 11, "tied": False}, "heedful.models.cases:Pairs", gives=sides)
