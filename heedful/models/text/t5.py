"""T5: every text task as text to text, with a bias of distances in place of positions (Raffel et al., 2020)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch

from heedful.attention import Across, MultiHead
from heedful.inputs import Tokens
from heedful.models import blueprint as parts
from heedful.models.blueprint import Blueprint
from heedful.models.family import Family
from heedful.models.part_words import with_arguments
from heedful.models.text.encoder_decoder import EncoderDecoder, WriterSpec
from heedful.outputs import NextToken

PUBLISHED = {"vocab": 32128, "pad": 0, "begin": 0, "end": 1, "key": 64}
FIRST = {  # the release of 2020
    "t5-small": {"depth": 6, "width": 512, "hidden": 2048, "heads": 8},
    "t5-base": {"depth": 12, "width": 768, "hidden": 3072, "heads": 12},
    "t5-large": {"depth": 24, "width": 1024, "hidden": 4096, "heads": 16},
    "t5-3b": {"depth": 24, "width": 1024, "hidden": 16384, "heads": 32, "key": 128},
    "t5-11b": {"depth": 24, "width": 1024, "hidden": 65536, "heads": 128, "key": 128},
}
SECOND = {  # 1.1, on which Flan-T5 stands (Chung et al., 2022)
    "small": {"depth": 8, "width": 512, "hidden": 1024, "heads": 6},
    "base": {"depth": 12, "width": 768, "hidden": 2048, "heads": 12},
    "large": {"depth": 24, "width": 1024, "hidden": 2816, "heads": 16},
    "xl": {"depth": 24, "width": 2048, "hidden": 5120, "heads": 32},
    "xxl": {"depth": 24, "width": 4096, "hidden": 10240, "heads": 64},
}
GATED = {"feedforward": "gated(activation='gelu_tanh', bias=False)", "tied": False, "scale_outputs": False}


class T5Spec(WriterSpec):
    """Numbers and words of a T5."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        **{name: PUBLISHED | numbers for name, numbers in FIRST.items()},
        **{
            f"{name}-{size}": PUBLISHED | numbers | GATED
            for name in ("t5-v1.1", "flan-t5")
            for size, numbers in SECOND.items()
        },
    }
    family: Literal["t5"] = "t5"
    mechanism: str = "dot"
    position: str = "none"
    bias: str = "buckets"
    norm: str = "rms(eps=1e-6)"
    feedforward: str = "relu(bias=False)"
    project_bias: bool = False
    join_bias: bool = False
    scale_outputs: bool = True
    """Whether states are divided by the square root of the width before the output layer."""


def dropping(spec: Blueprint) -> Blueprint:
    """Blocks with their dropout everywhere, as T5 has it: of what is added, of weights, and within the feed-forward."""
    if not spec.dropout:
        return spec
    scores, hidden = (with_arguments(word, dropout=spec.dropout) for word in (spec.mechanism, spec.feedforward))
    return replace(spec, mechanism=scores, feedforward=hidden)


class T5(EncoderDecoder):
    """Reads a text and writes a text; blocks share one bias of distances, on either side."""

    def __init__(self, spec: T5Spec) -> None:
        super().__init__()
        s, b = spec, spec.blueprint
        self.spec, self.special = s, s.special
        self.inputs = self.source = Tokens(s.vocab, s.width, parts.position(b), s.dropout, scale=1.0)
        self.encoder = parts.stack(dropping(b))
        self.decoder = parts.stack(dropping(s.decoder_blueprint), parts.cross_block)
        self.mask = parts.mask(b)
        self.encoder_bias, self.decoder_bias = parts.bias(b), parts.bias(b, both_ways=False)
        tied, scale = self.inputs.table if s.tied else None, s.width**-0.5 if s.scale_outputs else 1.0
        self.outputs = NextToken(s.width, s.vocab, tied, scale=scale)
        self.start()

    @torch.no_grad()
    def start(self) -> None:
        """Makes queries as small as their dots are unscaled, and a table that is read backwards as large as T5's."""
        key = parts.key(self.spec.blueprint)
        for part in self.modules():
            if isinstance(part, MultiHead):
                part.to_qkv.weight[: part.parts[0]] *= key**-0.5
            elif isinstance(part, Across):
                part.to_q.weight *= key**-0.5
        if self.spec.tied and self.spec.scale_outputs:
            self.inputs.table.weight *= self.spec.width**0.5
        if self.spec.tied:
            parts.init_tied(self.decoder)


FAMILY = Family(T5Spec, T5, {"vocab": 11, "tied": False}, "heedful.models.cases:Pairs")
