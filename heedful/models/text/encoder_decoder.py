"""What all encoder-decoders have in common: how their parts work together. Families differ in the parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

import torch
from pydantic import model_validator
from torch import Tensor

from heedful.attention import Bias, Causal, Context, Everything, Mask, Memory, Padding
from heedful.blocks import Stack
from heedful.inputs import Tokens
from heedful.models import blueprint as parts
from heedful.models.blueprint import Blueprint
from heedful.models.specs import BEGIN, DECODER, END, PAD, Count, Id, LanguageSpec, Special, Stacked
from heedful.models.writer import Beginning, Writer, memory_for


class TwoStacks(Stacked):
    """What families share whose encoder and decoder have one spec: all keys are of both, but those of DECODER."""

    decoder_depth: Count | None = None
    """The number of the decoder's blocks; as many as the encoder's if unset."""

    @property
    def decoder_blueprint(self) -> Blueprint:
        """What the blocks that write are made of."""
        own = {DECODER[key]: number for key, number in self if key in DECODER and number}
        return replace(self.blueprint, **own)

    @model_validator(mode="after")
    def _decoder_can_be_made(self) -> Self:
        with torch.device("meta"):
            decoder(self.with_depth(1).model_copy(update={"decoder_depth": 1}))
        return self


class WriterSpec(LanguageSpec, TwoStacks):
    """What the specs of encoder-decoders share that have special tokens of their own."""

    decodes = True
    use = "seq2seq"
    pad: Id = PAD
    """The id of the padding token."""
    begin: Id = BEGIN
    """The id of the token that begins a target."""
    end: Id = END
    """The id of the token that ends a target."""

    @property
    def special(self) -> Special:
        """The ids of the special tokens."""
        return Special(self.pad, self.begin, self.end)


def encoder(spec: TwoStacks) -> Stack:
    """The blocks that read."""
    return parts.stack(spec.blueprint)


def decoder(spec: TwoStacks) -> Stack:
    """The blocks that write."""
    return parts.stack(spec.decoder_blueprint, parts.cross_block)


class EncoderDecoder(Writer):
    """Reads a source whole, writes a target token by token, and looks back at the source at every step."""

    reads = frozenset({"source"})
    inputs: Tokens  # of the target
    source: Tokens
    encoder: Stack
    decoder: Stack
    mask: Mask
    encoder_bias: Bias | None
    decoder_bias: Bias | None

    def forward(self, source: Tensor, target: Tensor) -> Tensor:  # B S, B T -> B T V
        return self.decode(target, self.encode(source))

    def encode(self, source: Tensor, positions: Tensor | None = None) -> Context:
        """What the source says, for the decoder to look at: B S -> B S M.

        Padding stands at the end, or where `positions` (B S) are below 0.
        """
        present = Padding((source != self.special.pad).sum(-1)) if positions is None else Everything()
        sight = (present & self.mask).over(source, bias=self.encoder_bias, positions=positions)
        return Context(self.encoder(self.source(source, sight), sight), present, positions)

    def begin(self, batch: Mapping[str, Tensor]) -> Beginning:
        """Reads the sources; targets begin with the prompts of the batch, or with BEGIN where there are none."""
        source = batch["source"]
        begin = source.new_full((len(source), 1), self.special.begin)
        return Beginning.of(self.encode(source), batch.get("prompt", begin), (source != self.special.pad).sum(-1))

    def states(
        self, tokens: Tensor, context: Context, memory: Memory | None = None, positions: Tensor | None = None
    ) -> Tensor:
        sight = (Causal() & self.mask).over(tokens, memory, self.decoder_bias, positions)
        return self.decoder(self.inputs(tokens, sight), sight, context, memory)

    def memory(self, beams: int = 1) -> Memory:
        """A tree for many beams, where its parts may have one."""
        return memory_for(self, beams)
