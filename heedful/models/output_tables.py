"""Which output a word stands for: what a model ends with, and how it pools what it made."""

from __future__ import annotations

from functools import partial

from torch import nn

from heedful.models.part_words import Part
from heedful.outputs import (
    Answer,
    Attended,
    AttentionPool,
    BothPool,
    Classes,
    Each,
    First,
    FirstPool,
    LastClasses,
    MaskedToken,
    Mean,
    MeanPool,
    NextToken,
    Pooled,
    States,
    Tags,
)

POOLS: dict[str, type[Each]] = {"mean": Mean, "first": First, "attention": Attended, "each": Each}


OUTPUTS: dict[str, type[nn.Module]] = {
    "states": States,
    "pooled": Pooled,
    "classes": Classes,
    "tags": Tags,
    "answer": Answer,
    "masked": MaskedToken,
}


DECODER_OUTPUTS: dict[str, type[nn.Module]] = {
    "next": NextToken,
    "classes": LastClasses,
    "tags": Tags,
    "answer": Answer,
}


BART_OUTPUTS: dict[str, Part] = {"next": NextToken, "classes": partial(Classes, pool="last"), "answer": Answer}


IMAGE_POOLS: dict[str, type[FirstPool]] = {
    "first": FirstPool,
    "mean": MeanPool,
    "both": BothPool,
    "attention": AttentionPool,
}
