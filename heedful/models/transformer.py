"""The encoder-decoder of "Attention is all you need" (Vaswani et al., 2017)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator
from torch import Tensor, nn

from heedful.attention import Causal, Context, Memory, Padding
from heedful.blocks import Stack
from heedful.inputs import Tokens
from heedful.models import spec as parts
from heedful.models.spec import BEGIN, END, PAD, UNKNOWN, Count, Spec
from heedful.outputs import NextToken

__all__ = ["BEGIN", "END", "PAD", "UNKNOWN", "Transformer", "TransformerSpec"]


class TransformerSpec(Spec):
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
    decoder_depth: Count | None = None  # as deep as the encoder where not given
    tied: bool = True  # the output reads the target's table backwards

    @model_validator(mode="after")
    def _table_is_as_wide_as_the_model(self) -> Self:
        if self.tied and parts.position(self).room:
            raise ValueError(
                f"position {self.position!r} narrows the token table for the output that reads it; set model.tied=false"
            )
        return self


class Transformer(nn.Module):
    """Reads a source whole, writes a target token by token, and looks back at the source at every step."""

    def __init__(self, spec: TransformerSpec) -> None:
        super().__init__()
        s = self.spec = spec
        self.inputs = Tokens(s.vocab, s.width, parts.position(s), s.dropout)
        self.source = Tokens(s.source_vocab, s.width, parts.position(s), s.dropout) if s.source_vocab else self.inputs
        self.encoder = Stack((parts.block(s) for _ in range(s.depth)), parts.last_norm(s))
        self.decoder = Stack((parts.cross_block(s) for _ in range(s.decoder_depth or s.depth)), parts.last_norm(s))
        self.mask = parts.mask(s)
        self.encoder_bias, self.decoder_bias = parts.bias(s), parts.bias(s, both_ways=False)
        self.outputs = NextToken(s.width, s.vocab, self.inputs.table if s.tied else None)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:  # B S, B T -> B T V
        return self.decode(target, self.encode(source))

    def encode(self, source: Tensor) -> Context:
        """What the source says, for the decoder to look at: B S -> B S M. Padding stands at the end."""
        present = Padding((source != PAD).sum(-1))
        sight = (present & self.mask).over(source, bias=self.encoder_bias)
        return Context(self.encoder(self.source(source, sight), sight), present)

    def decode(self, target: Tensor, context: Context, memory: Memory | None = None) -> Tensor:
        """Scores of the token after each of the target's: B T -> B T V. With a memory, `target` is what is new."""
        sight = (Causal() & self.mask).over(target, memory, self.decoder_bias)
        return self.outputs(self.decoder(self.inputs(target, sight), sight, context, memory))
