"""Encoders of text that read both ways at once: BERT, and those that differ from it in numbers and words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.attention import Context, Everything
from heedful.inputs import Sentences
from heedful.models import blueprint as parts
from heedful.models import heads_asked, output_tables, part_tables, part_words
from heedful.models.encoder_protocol import Encoder
from heedful.models.family import Family
from heedful.models.heads_asked import AskedSpec
from heedful.models.specs import Count, Id, Stacked


class EncoderSpec(AskedSpec):
    """Numbers and words of an encoder of text. `output` says what it is asked."""

    position: str = "learned"
    norm: str = "layer(eps=1e-12)"
    order: str = "post"
    feedforward: str = "gelu"
    segments: Annotated[int, Field(ge=0)] = 2
    """How many segments (sentences of a pair) the model can tell apart; 0 for none."""
    tasks: Count = 1
    """How many tasks a text may belong to, for the bias `camtl`."""
    letters: Annotated[int, Field(ge=0)] = 0
    """The size of a table of vectors for the character n-grams of tokens, as in fastText; 0 for none."""
    begin: Id | None = None
    end: Id | list[Id] | None = None
    output: str = "states"
    pooler: str = "tanh"
    """The activation of the pooler, which reads the first token's vector."""
    transform: str = "gelu"
    """The activation that states pass through before masked tokens are predicted."""

    @model_validator(mode="after")
    def _output_can_be_made(self) -> Self:
        with torch.device("meta"):
            output(self, nn.Embedding(self.vocab, self.width))
        return self


class BertSpec(EncoderSpec, Stacked):
    """Numbers and words of BERT (Devlin et al., 2019)."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "bert-base": {"depth": 12, "width": 768, "hidden": 3072, "heads": 12, "vocab": 30522},
        "bert-large": {"depth": 24, "width": 1024, "hidden": 4096, "heads": 16, "vocab": 30522},
        "minilm": {"depth": 6, "width": 384, "hidden": 1536, "heads": 12, "vocab": 30522},
    }
    family: Literal["bert"] = "bert"


class RobertaSpec(EncoderSpec, Stacked):
    """Numbers and words of RoBERTa (Liu et al., 2019), whose positions are counted from behind that of padding."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "roberta-base": {"depth": 12, "width": 768, "hidden": 3072, "heads": 12, "vocab": 50265},
        "roberta-large": {"depth": 24, "width": 1024, "hidden": 4096, "heads": 16, "vocab": 50265},
    }
    family: Literal["roberta"] = "roberta"
    position: str = "learned(offset=2)"
    norm: str = "layer(eps=1e-5)"
    segments: Annotated[int, Field(ge=0)] = 1
    pad: Id | None = 1
    begin: Id | None = 0
    end: Id | list[Id] | None = 2


class CamembertSpec(RobertaSpec):
    """Numbers and words of CamemBERT (Martin et al., 2020): RoBERTa, of French."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "camembert-base": {"depth": 12, "width": 768, "hidden": 3072, "heads": 12, "vocab": 32005},
        "camembert-large": {"depth": 24, "width": 1024, "hidden": 4096, "heads": 16, "vocab": 32005},
    }
    family: Literal["camembert"] = "camembert"  # type: ignore[assignment]
    begin: Id | None = 5
    end: Id | list[Id] | None = 6


class DistilbertSpec(EncoderSpec, Stacked):
    """Numbers and words of DistilBERT (Sanh et al., 2019): half as deep, and without segments."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "distilbert-base": {"depth": 6, "width": 768, "hidden": 3072, "heads": 12, "vocab": 30522},
    }
    family: Literal["distilbert"] = "distilbert"
    segments: Annotated[int, Field(ge=0)] = 0
    pooler: str = "relu"


class Bert(Encoder):
    """Reads a text, or a pair of them, whole: every token sees every other (Devlin et al., 2019)."""

    reads: ClassVar[frozenset[str]] = frozenset({"source"})

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        s, b = spec, spec.blueprint
        self.spec = spec
        given = s.vocab, s.width, parts.position(b), s.segments, parts.norm(s.norm), s.dropout
        self.inputs = Sentences(*given, letters=s.letters)
        self.encoder: nn.Module = parts.stack(b)
        self.mask, self.bias = parts.mask(b), parts.bias(b)
        self.outputs = output(s, self.inputs.table)

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        segments: Tensor | None = None,
        tasks: Tensor | None = None,
        letters: Tensor | None = None,
    ) -> Tensor:
        """What is asked of tokens (B T), each of a segment (B T); those below 0 in `positions` are padding.

        `tasks` (B) say of which task each text is, by its number, and `letters` (B T K) how tokens are spelt.
        """
        positions = self.positions(tokens) if positions is None else positions
        return self.outputs(self.states(tokens, positions, segments, tasks, letters), positions)

    def states(
        self,
        tokens: Tensor,
        positions: Tensor,
        segments: Tensor | None = None,
        tasks: Tensor | None = None,
        letters: Tensor | None = None,
    ) -> Tensor:
        """The states of tokens at their positions, of which answers are made: B T -> B T M."""
        bias = self.bias if self.bias is None or tasks is None else self.bias.of(tasks)
        sight = self.mask.over(tokens, bias=bias, positions=positions)
        made: Tensor = self.encoder(self.inputs(tokens, sight, segments, letters), sight)
        return made

    @property
    def width(self) -> int:
        return self.spec.width

    @property
    def pad(self) -> int | None:  # type: ignore[override]
        return self.spec.pad

    def encode(self, batch: Mapping[str, Tensor]) -> Context:
        positions = self.positions(batch["source"])
        return Context(self.states(batch["source"], positions), Everything(), positions)

    def positions(self, tokens: Tensor) -> Tensor:
        """Where tokens stand, counted without padding, which may be on either side: B T -> B T."""
        return heads_asked.places(tokens, self.spec.pad)


def output(spec: EncoderSpec, table: nn.Embedding) -> nn.Module:
    """What the encoder is asked; masked tokens are read off a table."""
    return heads_asked.output(
        spec,
        output_tables.OUTPUTS,
        table=table,
        tied=spec.tied,
        pooler=part_words.entry_named("pooler", spec.pooler, part_tables.ACTIVATIONS),
        activation=part_words.entry_named("transform", spec.transform, part_tables.ACTIVATIONS),
        norm=parts.norm(spec.norm),
    )


BERT = Family(BertSpec, Bert, {"vocab": 11}, "heedful.models.cases:Readings")
ROBERTA = Family(RobertaSpec, Bert, {"vocab": 11}, "heedful.models.cases:Readings")
CAMEMBERT = Family(CamembertSpec, Bert, {"vocab": 11}, "heedful.models.cases:Readings")
DISTILBERT = Family(DistilbertSpec, Bert, {"vocab": 11}, "heedful.models.cases:Readings")
