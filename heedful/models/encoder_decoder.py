"""What all encoder-decoders have in common: how their parts work together. Families differ in the parts."""

from __future__ import annotations

from torch import Tensor, nn

from heedful.attention import Bias, Causal, Context, Mask, Memory, Padding
from heedful.blocks import Stack
from heedful.inputs import Tokens
from heedful.models.special import Special


class EncoderDecoder(nn.Module):
    """Reads a source whole, writes a target token by token, and looks back at the source at every step."""

    inputs: Tokens  # of the target
    source: Tokens
    encoder: Stack
    decoder: Stack
    mask: Mask
    encoder_bias: Bias | None
    decoder_bias: Bias | None
    outputs: nn.Module
    special: Special

    def forward(self, source: Tensor, target: Tensor) -> Tensor:  # B S, B T -> B T V
        return self.decode(target, self.encode(source))

    def encode(self, source: Tensor) -> Context:
        """What the source says, for the decoder to look at: B S -> B S M. Padding stands at the end."""
        present = Padding((source != self.special.pad).sum(-1))
        sight = (present & self.mask).over(source, bias=self.encoder_bias)
        return Context(self.encoder(self.source(source, sight), sight), present)

    def decode(self, target: Tensor, context: Context, memory: Memory | None = None) -> Tensor:
        """Scores of the token after each of the target's: B T -> B T V. With a memory, `target` is what is new."""
        sight = (Causal() & self.mask).over(target, memory, self.decoder_bias)
        return self.outputs(self.decoder(self.inputs(target, sight), sight, context, memory))
