"""Decoder-only language models: GPT-2 (Radford et al., 2019)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn

from heedful.attention import Causal, Documents, Everything, Memory
from heedful.blocks.block import Dropout
from heedful.inputs import Tokens
from heedful.models import blueprint as parts
from heedful.models import heads_asked, output_tables
from heedful.models.family import Family, Model
from heedful.models.heads_asked import NEXT, AskedSpec, word_asked
from heedful.models.specs import Share, Special, Stacked
from heedful.models.writer import LanguageModel

PUBLISHED = {"vocab": 50257, "length": 1024, "pad": None, "begin": 50256, "end": 50256}


class DecoderSpec(AskedSpec, Stacked):
    """What decoders alone share: dropout of what comes in and of what goes out, where it is not that of the blocks."""

    decodes = True
    input_dropout: Share | None = None
    """The dropout of the embeddings; that of the model if unset."""
    output_dropout: Share = 0.0
    """The dropout before the output layer."""

    @model_validator(mode="after")
    def _output_can_be_made(self) -> Self:
        with torch.device("meta"):
            output(self)
        return self


class GPTSpec(DecoderSpec):
    """Numbers and words of a GPT."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "gpt2": {"depth": 12, "width": 768, "heads": 12, **PUBLISHED},
        "gpt2-medium": {"depth": 24, "width": 1024, "heads": 16, **PUBLISHED},
        "gpt2-large": {"depth": 36, "width": 1280, "heads": 20, **PUBLISHED},
        "gpt2-xl": {"depth": 48, "width": 1600, "heads": 25, **PUBLISHED},
    }
    family: Literal["gpt"] = "gpt"
    position: str = "learned"
    feedforward: str = "gelu_tanh"


class Decoder(Model):
    """Reads a text from its beginning: each token sees those before it."""

    def __init__(self, spec: DecoderSpec) -> None:
        super().__init__()
        s, b = spec, spec.blueprint
        self.spec = spec
        drops = s.dropout if s.input_dropout is None else s.input_dropout
        self.inputs = Tokens(s.vocab, s.width, parts.position(b), drops, scale=1.0)
        self.decoder = parts.stack(b)
        self.mask, self.bias = parts.mask(b), parts.bias(b, both_ways=False)
        self.drop = Dropout(s.output_dropout)
        self.outputs = output(s, self.inputs.table if s.tied else None)
        if s.tied and word_asked(s) == NEXT:
            parts.init_tied(self.decoder)

    def read(
        self,
        tokens: Tensor,
        memory: Memory | None = None,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Tensor:
        """The states of what is read, of which answers are made: B T -> B T M."""
        apart = Everything() if documents is None else Documents(documents)
        sight = (Causal() & self.mask & apart).over(tokens, memory, self.bias, positions)
        return self.drop(self.decoder(self.inputs(tokens, sight), sight, memory))


class GPT(Decoder, LanguageModel):
    """Predicts each next token from the ones before it (Radford et al., 2019)."""

    @property
    def special(self) -> Special:  # type: ignore[override]
        """The ids of its special tokens."""
        pad, begin = (-1 if one is None else one for one in (self.spec.pad, self.spec.begin))
        end, *others = self.spec.ends or (-1,)
        return Special(pad, begin, end, others=tuple(others))

    def forward(
        self,
        tokens: Tensor,
        memory: Memory | None = None,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Tensor:
        """Scores of the token after each: B T -> B T V. With a memory, `tokens` are what is new.

        Of texts packed into one row, `documents` (B T) says which each token is of, and none sees another.
        """
        return self.outputs(self.read(tokens, memory, positions, documents))


class ReadingGPT(Decoder):
    """Reads a text and writes none: its last token, which has seen all others, is asked for a class, say."""

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """What is asked of tokens (B T); those below 0 in `positions` are padding."""
        positions = heads_asked.places(tokens, self.spec.pad) if positions is None else positions
        return self.outputs(self.read(tokens, positions=positions), positions)


def output(spec: DecoderSpec, table: nn.Embedding | None = None) -> nn.Module:
    """What the decoder is asked; the next token is read off a table, where one is given."""
    return heads_asked.output(spec, output_tables.DECODER_OUTPUTS, vocab=spec.vocab, tied_to=table)


FAMILY = Family(GPTSpec, GPT, {"vocab": 11}, "heedful.models.cases:Continuations", reading=ReadingGPT)
