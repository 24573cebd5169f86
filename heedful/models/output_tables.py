"""Which output a word stands for: what a model ends with, and how it pools what it made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from heedful.models.part_words import Part
from heedful.registry import Registry

if TYPE_CHECKING:
    from heedful.outputs import Each, FirstPool

POOLS: Registry[type[Each]] = Registry(
    "pool",
    "heedful.pools",
    {
        "mean": "heedful.outputs.class_output:Mean",
        "first": "heedful.outputs.class_output:First",
        "attention": "heedful.outputs.class_output:Attended",
        "each": "heedful.outputs.class_output:Each",
    },
)
OUTPUTS: Registry[type[nn.Module]] = Registry(
    "output",
    "heedful.outputs",
    {
        "states": "heedful.outputs.text_encoder_output:States",
        "pooled": "heedful.outputs.text_encoder_output:Pooled",
        "classes": "heedful.outputs.text_encoder_output:Classes",
        "tags": "heedful.outputs.text_encoder_output:Tags",
        "answer": "heedful.outputs.text_encoder_output:Answer",
        "masked": "heedful.outputs.text_encoder_output:MaskedToken",
    },
)
DECODER_OUTPUTS: Registry[type[nn.Module]] = Registry(
    "output",
    "heedful.decoder_outputs",
    {
        "next": "heedful.outputs.token_output:NextToken",
        "classes": "heedful.outputs.text_encoder_output:LastClasses",
        "tags": "heedful.outputs.text_encoder_output:Tags",
        "answer": "heedful.outputs.text_encoder_output:Answer",
    },
)
BART_OUTPUTS: Registry[Part] = Registry(
    "output",
    "heedful.bart_outputs",
    {
        "next": "heedful.outputs.token_output:NextToken",
        "classes": "heedful.models.text.bart:CLASSES",
        "answer": "heedful.outputs.text_encoder_output:Answer",
    },
)
IMAGE_POOLS: Registry[type[FirstPool]] = Registry(
    "pool",
    "heedful.image_pools",
    {
        "first": "heedful.outputs.pools:FirstPool",
        "mean": "heedful.outputs.pools:MeanPool",
        "both": "heedful.outputs.pools:BothPool",
        "attention": "heedful.outputs.pools:AttentionPool",
    },
)
