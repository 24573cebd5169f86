"""The two sides of the Transformer, each a family of its own, to be docked to others (Vaswani et al., 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn

from heedful.attention import Causal, Context, Everything, Memory, Padding
from heedful.inputs import Tokens
from heedful.models import blueprint as parts
from heedful.models.encoder_protocol import Encoder
from heedful.models.family import Family
from heedful.models.specs import PAD, SPECIAL, Count, ReadsInOrder, Stacked
from heedful.models.writer import Decoder, memory_for
from heedful.outputs import NextToken


class TransformerEncoderSpec(ReadsInOrder, Stacked):
    """Numbers and words of the encoder of a Transformer."""

    family: Literal["transformer_encoder"] = "transformer_encoder"
    vocab: Count
    """The size of the source's vocabulary; filled in from the tokenizer."""


class TransformerEncoder(Encoder):
    """Transformer encoder: reads a source whole, every token seeing every other."""

    reads: ClassVar[frozenset[str]] = frozenset({"source"})

    def __init__(self, spec: TransformerEncoderSpec) -> None:
        super().__init__()
        s, b = spec, spec.blueprint
        self.spec = spec
        self.inputs = Tokens(s.vocab, s.width, parts.position(b), s.dropout)
        self.encoder = parts.stack(b)
        self.mask, self.bias = parts.mask(b), parts.bias(b)

    @property
    def width(self) -> int:
        return self.spec.width

    def forward(self, source: Tensor) -> Tensor:  # B S -> B S M
        return self.encode({"source": source}).states

    def encode(self, batch: Mapping[str, Tensor]) -> Context:
        source = batch["source"]
        present = Padding((source != PAD).sum(-1))
        sight = (present & self.mask).over(source, bias=self.bias)
        return Context(self.encoder(self.inputs(source, sight), sight), present)


class TransformerDecoderSpec(ReadsInOrder, Stacked):
    """Numbers and words of the decoder of a Transformer."""

    family: Literal["transformer_decoder"] = "transformer_decoder"
    vocab: Count
    """The size of the target's vocabulary; filled in from the tokenizer."""
    tied: bool = True
    """Whether the output layer shares its weights with the token embedding."""

    @model_validator(mode="after")
    def _cross_attention_can_be_made(self) -> Self:
        parts.check_tied(self.blueprint, self.tied)
        with torch.device("meta"):
            parts.stack(self.with_depth(1).blueprint, parts.cross_block)
        return self


class TransformerDecoder(Decoder):
    """Transformer decoder: writes token by token, and looks at a context at every step."""

    special = SPECIAL

    def __init__(self, spec: TransformerDecoderSpec) -> None:
        super().__init__()
        s, b = spec, spec.blueprint
        self.spec = spec
        self.inputs = Tokens(s.vocab, s.width, parts.position(b), s.dropout)
        self.decoder = parts.stack(b, parts.cross_block)
        self.mask, self.bias = parts.mask(b), parts.bias(b, both_ways=False)
        self.outputs: nn.Module = NextToken(s.width, s.vocab, self.inputs.table if s.tied else None)
        if s.tied:
            parts.init_tied(self.decoder)

    @property
    def width(self) -> int:
        return self.spec.width

    def forward(self, target: Tensor, states: Tensor) -> Tensor:  # B T, B S M -> B T V
        return self.decode(target, Context(states, Everything()))

    def states(
        self, tokens: Tensor, context: Context, memory: Memory | None = None, positions: Tensor | None = None
    ) -> Tensor:
        sight = (Causal() & self.mask).over(tokens, memory, self.bias, positions)
        return self.decoder(self.inputs(tokens, sight), sight, context, memory)

    def memory(self, beams: int = 1) -> Memory:
        """A tree for many beams, where its parts may have one."""
        return memory_for(self, beams)


ENCODER = Family(
    TransformerEncoderSpec, TransformerEncoder, {"vocab": 11}, "heedful.models.encoder_decoder_cases:Sources"
)
DECODER = Family(
    TransformerDecoderSpec,
    TransformerDecoder,
    {"vocab": 11, "tied": False},
    "heedful.models.encoder_decoder_cases:Targets",
)
