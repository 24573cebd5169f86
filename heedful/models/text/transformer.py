"""The encoder-decoder of "Attention is all you need" (Vaswani et al., 2017)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from heedful.inputs import Tokens
from heedful.models import blueprint as parts
from heedful.models.cases import Pairs
from heedful.models.family import Family
from heedful.models.special_tokens import Special
from heedful.models.specs import BEGIN, END, PAD, UNKNOWN, Count, ReadsInOrder
from heedful.models.text.encoder_decoder import EncoderDecoder, TwoStacks, decoder, encoder
from heedful.outputs import NextToken

__all__ = ["BEGIN", "END", "PAD", "SPECIAL", "UNKNOWN", "Transformer", "TransformerSpec"]

SPECIAL = Special(PAD, BEGIN, END, never=(PAD, BEGIN))


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
    source_vocab: Count | None = None  # where the source has a vocabulary, and so a table, of its own
    tied: bool = True  # the output reads the target's table backwards

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


FAMILY = Family(TransformerSpec, Transformer, {"vocab": 11, "tied": False}, Pairs)
