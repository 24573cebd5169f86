"""The recurrent encoder: reads a source word by word, one way or both, and gives all its states or its last alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn

from heedful.attention import Context, Everything, Padding
from heedful.blocks.block import Dropout
from heedful.blocks.recurrent_networks import CELLS, Recurrent
from heedful.models.encoder_protocol import Encoder
from heedful.models.family import Family
from heedful.models.specs import PAD, Count, Share, Spec

CellWord = Literal["rnn", "gru", "lstm"]


class RecurrentSpec(Spec):
    """Keys that recurrent families share."""

    vocab: Count
    """The number of tokens that it knows."""
    cell: CellWord = "lstm"
    """The recurrent cell: rnn, gru or lstm."""
    width: Count = 128
    """The width of the states; where a layer reads both ways, each way has half of it."""
    embedding: Count | None = None
    """The width of the token embeddings; that of the states where it is not given."""
    depth: Count = 1
    """The number of layers."""
    dropout: Share = 0.0
    """The share dropped of the embeddings, between the layers and before the output."""

    @property
    def token_width(self) -> int:
        """How wide the vectors of tokens are."""
        return self.embedding or self.width


class ReadsSource(RecurrentSpec):
    """Keys of recurrent networks that read a source whole."""

    both_ways: bool = True
    """Whether the source is read from both its ends (bidirectional)."""
    reverse: bool = False
    """Whether the source is read backwards (Sutskever et al., 2014)."""

    @property
    def width_each(self) -> int:
        """How wide the states of each way are."""
        return self.width // (1 + self.both_ways)

    @model_validator(mode="after")
    def _ways_share_the_width(self) -> Self:
        if self.both_ways and self.width % 2:
            raise ValueError(f"a width of {self.width} cannot be halved for two ways; make it even")
        if self.both_ways and self.reverse:
            raise ValueError("what is read both ways is read from its end too; leave reverse or both_ways out")
        return self


class RecurrentEncoderSpec(ReadsSource):
    """Numbers and words of a recurrent encoder."""

    family: Literal["recurrent_encoder"] = "recurrent_encoder"
    context: Literal["states", "last"] = "states"
    """The context that a decoder gets: the states behind all words, or the last state of all layers."""


class SourceReader(nn.Module):
    """Reads tokens by recurrent layers, from their end where that is asked; padding stands behind them."""

    def __init__(self, spec: ReadsSource) -> None:
        super().__init__()
        s = spec
        self.reverse, self.table, self.drop = s.reverse, nn.Embedding(s.vocab, s.token_width), Dropout(s.dropout)
        self.layers = Recurrent(s.cell, s.token_width, s.width_each, s.depth, s.both_ways, s.dropout)

    def forward(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The state behind each token, where that stands, and the last of all layers: B S M, B P L M."""
        x = self.drop(self.table(tokens))
        states, last = self.layers(turn_back(x, lengths) if self.reverse else x, lengths)
        return self.drop(turn_back(states, lengths) if self.reverse else states), last


def turn_back(x: Tensor, lengths: Tensor) -> Tensor:
    """Each sequence from its end to its beginning; padding stays behind it."""
    at = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1)
    back = torch.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)
    return x.gather(1, back[..., None].expand_as(x))


class RecurrentEncoder(Encoder):
    """Recurrent encoder (Cho et al., 2014; Sutskever et al., 2014; both ways: Bahdanau et al., 2015)."""

    reads: ClassVar[frozenset[str]] = frozenset({"source"})

    def __init__(self, spec: RecurrentEncoderSpec) -> None:
        super().__init__()
        self.spec, self.reader = spec, SourceReader(spec)

    @property
    def width(self) -> int:
        """How wide what it gives is: a state of its last layer, or the whole state of all layers."""
        s = self.spec
        return s.width if s.context == "states" else CELLS[s.cell].parts * s.depth * s.width

    def forward(self, source: Tensor) -> Tensor:  # B S -> B S M, or B 1 M
        return self.encode({"source": source}).states

    def encode(self, batch: Mapping[str, Tensor]) -> Context:
        lengths = (batch["source"] != PAD).sum(-1)
        states, last = self.reader(batch["source"], lengths)
        if self.spec.context == "last":
            return Context(last.flatten(1)[:, None], Everything())
        return Context(states, Padding(lengths))


FAMILY = Family(
    RecurrentEncoderSpec, RecurrentEncoder, {"vocab": 11, "width": 8}, "heedful.models.encoder_decoder_cases:Sources"
)
