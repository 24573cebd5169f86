"""Decoder-only language models: GPT-2 (Radford et al., 2019)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from heedful.attention import Causal, Documents, Everything, Memory
from heedful.inputs import Tokens
from heedful.models import spec as parts
from heedful.models.spec import LanguageSpec, Share
from heedful.models.special import Special
from heedful.outputs import NextToken

PUBLISHED = {"vocab": 50257, "length": 1024, "pad": None, "begin": 50256, "end": 50256}


class DecoderSpec(LanguageSpec):
    """What decoders alone share: dropout of what comes in and of what goes out, where it is not that of the blocks."""

    input_dropout: Share | None = None
    output_dropout: Share = 0.0


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


class GPT(nn.Module):
    """Predicts each next token from the ones before it (Radford et al., 2019)."""

    def __init__(self, spec: DecoderSpec) -> None:
        super().__init__()
        s = self.spec = spec
        drops = s.dropout if s.input_dropout is None else s.input_dropout
        self.inputs = Tokens(s.vocab, s.width, parts.position(s), drops, scale=1.0)
        self.decoder = parts.stack(s)
        self.mask, self.bias = parts.mask(s), parts.bias(s, both_ways=False)
        self.drop = nn.Dropout(s.output_dropout)
        self.outputs = NextToken(s.width, s.vocab, self.inputs.table if s.tied else None)

    @property
    def special(self) -> Special:
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

    def read(
        self,
        tokens: Tensor,
        memory: Memory | None = None,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Tensor:
        """The states of what is read, of which scores are made: B T -> B T M."""
        apart = Everything() if documents is None else Documents(documents)
        sight = (Causal() & self.mask & apart).over(tokens, memory, self.bias, positions)
        return self.drop(self.decoder(self.inputs(tokens, sight), sight, memory))
