"""Encoder-decoders of the transformers library at toy size, drawn at random, and the same models here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as some
from torch import Tensor, nn

from heedful import models
from heedful.models.encoder_decoder import EncoderDecoder

VOCAB = 29


@dataclass
class Asked:
    """Sources and targets of unequal length as one batch: which tokens are there, and where they stand."""

    source: Tensor  # B S
    target: Tensor  # B T
    read: Tensor  # B S, bool
    written: Tensor  # B T, bool

    @classmethod
    def drawn(cls, seed: int, rows: int, longest: int, pad: int, left: bool) -> Asked:
        coins = torch.Generator().manual_seed(seed)

        def side(length: int) -> tuple[Tensor, Tensor]:
            lengths = torch.randint(1, length + 1, (rows,), generator=coins)
            lengths[0] = length
            there = torch.arange(length) < lengths[:, None]
            there = there.flip(1) if left else there
            tokens = torch.randint(3, VOCAB, (rows, length), generator=coins)
            return tokens.masked_fill(~there, pad), there

        source, read = side(longest)
        target, written = side(max(1, longest - 2))
        return cls(source, target, read, written)

    def theirs(self) -> dict[str, Tensor]:
        """As transformers takes it."""
        return {
            "input_ids": self.source,
            "attention_mask": self.read.long(),
            "decoder_input_ids": self.target,
            "decoder_attention_mask": self.written.long(),
        }

    def places(self) -> tuple[Tensor, Tensor]:
        """Where tokens stand: transformers counts the padding before them in."""
        return tuple(torch.arange(there.shape[1]).where(there, -1) for there in (self.read, self.written))  # type: ignore[return-value]
