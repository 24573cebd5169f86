"""BART and Marian: the encoder-decoder of Vaswani et al. (2017) as it was published most, in four layouts.

BART (Lewis et al., 2020) learns positions and norms its inputs; Marian (Junczys-Dowmunt et al., 2018) takes sines and
does not. With `order="pre"` the one is mBART (Liu et al., 2020), the other Pegasus (Zhang et al., 2020).
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn

from heedful.attention import Causal
from heedful.inputs import NormedTokens, Tokens
from heedful.models import blueprint as parts
from heedful.models import heads_asked, output_tables
from heedful.models.family import Family
from heedful.models.heads_asked import NEXT, AskedSpec, word_asked
from heedful.models.specs import Count, Id, Special
from heedful.models.text.encoder_decoder import EncoderDecoder, WriterSpec, decoder, encoder
from heedful.outputs import Classes

BARTS = {"vocab": 50265, "length": 1024, "pad": 1, "begin": 2, "end": 2, "first": 0}
OPUS = {"vocab": 58101, "length": 512, "pad": 58100, "begin": 58100, "end": 0}


class BartSpec(WriterSpec, AskedSpec):
    """Numbers and words of a BART."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "bart-base": {"depth": 6, "width": 768, "heads": 12, **BARTS},
        "bart-large": {"depth": 12, "width": 1024, "heads": 16, **BARTS},
    }
    family: Literal["bart"] = "bart"
    position: str = "learned(offset=2)"
    order: str = "post"
    feedforward: str = "gelu"
    source_vocab: Count | None = None
    """The size of the source's vocabulary, if it has an embedding of its own."""
    decoder_heads: Count | None = None
    """The decoder's number of heads; the encoder's if unset."""
    decoder_hidden: Count | None = None
    """The width of the decoder's feed-forward layer; the encoder's if unset."""
    scale_embedding: bool = False
    """Whether token embeddings are multiplied by the square root of the width."""
    normalize_embedding: bool = True
    """Whether embeddings are normalised before the first block."""
    output_bias: bool = True
    """Whether a bias is added to the score of each token."""
    first: Id | None = None
    """The id of the token with which every answer has to begin."""
    last_first: bool = False
    """Whether the decoder begins with the last token, and not with `begin`, when it answers a question."""

    @property
    def special(self) -> Special:
        return Special(self.pad, self.begin, self.end, first=self.first)

    @model_validator(mode="after")
    def _output_can_be_made(self) -> Self:
        with torch.device("meta"):
            output(self)
        return self


class MarianSpec(BartSpec):
    """Numbers and words of a Marian model, such as those of OPUS-MT (Tiedemann and Thottingal, 2020)."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "opus-mt": {"depth": 6, "width": 512, "hidden": 2048, "heads": 8, **OPUS},
        "opus-mt-tc-big": {"depth": 6, "width": 1024, "hidden": 4096, "heads": 16, "feedforward": "relu", **OPUS},
    }
    family: Literal["marian"] = "marian"  # type: ignore[assignment]
    position: str = "sine_halves"
    feedforward: str = "silu"
    scale_embedding: bool = True
    normalize_embedding: bool = False

    @property
    def special(self) -> Special:
        never = tuple(sorted({self.pad, self.begin}))
        return Special(self.pad, self.begin, self.end, never, self.first)


class Bart(EncoderDecoder):
    """Reads a text and writes a text, in any of the four layouts."""

    def __init__(self, spec: BartSpec) -> None:
        super().__init__()
        s = self.spec = spec
        self.special = s.special
        self.inputs = self.tokens(s, s.vocab)
        self.source = self.tokens(s, s.source_vocab or s.vocab)
        if s.source_vocab is None:
            self.source.table = self.inputs.table
        self.encoder, self.decoder = encoder(s), decoder(s)
        self.mask = parts.mask(s.blueprint)
        self.encoder_bias, self.decoder_bias = parts.bias(s.blueprint), parts.bias(s.blueprint, both_ways=False)
        self.outputs = output(s, self.inputs.table if s.tied else None)
        if s.tied and word_asked(s) == NEXT:
            parts.init_tied(self.decoder)

    @staticmethod
    def tokens(s: BartSpec, vocab: int) -> Tokens:
        """The inputs of one side; positions and norms are its own, whoever else reads the table."""
        given = vocab, s.width, parts.position(s.blueprint), s.dropout, None if s.scale_embedding else 1.0
        return NormedTokens(*given, norm=parts.norm(s.norm)) if s.normalize_embedding else Tokens(*given)


class ReadingBart(Bart):
    """Reads a text twice, whole and then token by token, and is asked something of it (Lewis et al., 2020)."""

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """What is asked of tokens (B T), a class at the last that ends them; those below 0 in `positions` are padding.

        Where no token ends a text, its last one is asked.
        """
        positions = heads_asked.places(tokens, self.spec.pad) if positions is None else positions
        before = tokens.roll(1, 1).where(positions != 0, self.begins(tokens, positions))
        sight = (Causal() & self.mask).over(before, bias=self.decoder_bias, positions=positions)
        states = self.decoder(self.inputs(before, sight), sight, self.encode(tokens, positions))
        ends = (tokens == self.spec.end) & (positions >= 0)
        return self.outputs(states, torch.where(ends, positions + tokens.shape[1], positions))

    def begins(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """What the decoder reads first: B T -> B 1. mBART turns a text round, so that this is its last token."""
        last = tokens.gather(1, positions.argmax(1, keepdim=True))
        return last if self.spec.last_first else torch.full_like(last, self.spec.begin)


def output(spec: BartSpec, table: nn.Embedding | None = None) -> nn.Module:
    """What the model is asked; the next token is read off a table, where one is given."""
    more = {"vocab": spec.vocab, "tied_to": table, "bias": spec.output_bias}
    return heads_asked.output(spec, output_tables.BART_OUTPUTS, **more)


CLASSES = partial(Classes, pool="last")  # of the token behind which all has been read
BART = Family(BartSpec, Bart, {"vocab": 11, "tied": False}, "heedful.models.cases:Pairs", reading=ReadingBart)
MARIAN = Family(MarianSpec, Bart, {"vocab": 11, "tied": False}, "heedful.models.cases:Pairs", reading=ReadingBart)
