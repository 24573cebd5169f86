"""Families of models: a spec, an assembly, and a forward that can be read aloud. One file each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from pydantic import ValidationError
from torch import nn

from heedful.errors import Refusal, unknown_word
from heedful.models.family import Family
from heedful.models.heads_asked import NEXT, AskedSpec, word_asked
from heedful.models.specs import Spec
from heedful.registry import Registry, lazily

if TYPE_CHECKING:
    from heedful.models.ensemble import Members
    from heedful.models.series.forecaster import Forecaster
    from heedful.models.sets.predictor import Predictor
    from heedful.models.text.gpt import GPT
    from heedful.models.text.llama import Llama
    from heedful.models.text.transformer import Transformer
    from heedful.models.text.word_vectors import WordVectors
    from heedful.models.vision.autoformer_nas import AutoFormer
    from heedful.models.vision.beit import BEiT
    from heedful.models.vision.convit import ConViT
    from heedful.models.vision.dino import DINO
    from heedful.models.vision.dvae import DVAE
    from heedful.models.vision.lenet import LeNet
    from heedful.models.vision.mae import MAE
    from heedful.models.vision.resnet import ResNet
    from heedful.models.vision.swin import Swin
    from heedful.models.vision.vit import ViT

__getattr__ = lazily(__name__)
FAMILIES: Registry[Family] = Registry(
    "family",
    "heedful.families",
    {
        "transformer": "heedful.models.text.transformer:FAMILY",
        "transformer_encoder": "heedful.models.text.transformer_sides:ENCODER",
        "transformer_decoder": "heedful.models.text.transformer_sides:DECODER",
        "recurrent_encoder": "heedful.models.text.recurrent_encoder:FAMILY",
        "recurrent_decoder": "heedful.models.text.recurrent_decoder:FAMILY",
        "recurrent_predictor": "heedful.models.text.recurrent_predictor:FAMILY",
        "composite": "heedful.models.multimodal.composite:FAMILY",
        "predictor": "heedful.models.sets.predictor:FAMILY",
        "forecaster": "heedful.models.series.forecaster:FAMILY",
        "t5": "heedful.models.text.t5:FAMILY",
        "bart": "heedful.models.text.bart:BART",
        "marian": "heedful.models.text.bart:MARIAN",
        "gpt": "heedful.models.text.gpt:FAMILY",
        "bert": "heedful.models.text.bert:BERT",
        "roberta": "heedful.models.text.bert:ROBERTA",
        "camembert": "heedful.models.text.bert:CAMEMBERT",
        "distilbert": "heedful.models.text.bert:DISTILBERT",
        "albert": "heedful.models.text.albert:FAMILY",
        "llama": "heedful.models.text.llama:FAMILY",
        "vit": "heedful.models.vision.vit:FAMILY",
        "mae": "heedful.models.vision.mae:FAMILY",
        "beit": "heedful.models.vision.beit:FAMILY",
        "convit": "heedful.models.vision.convit:FAMILY",
        "autoformer": "heedful.models.vision.autoformer_nas:FAMILY",
        "dvae": "heedful.models.vision.dvae:FAMILY",
        "dino": "heedful.models.vision.dino:FAMILY",
        "swin": "heedful.models.vision.swin:FAMILY",
        "resnet": "heedful.models.vision.resnet:FAMILY",
        "lenet": "heedful.models.vision.lenet:FAMILY",
        "word_vectors": "heedful.models.text.word_vectors:FAMILY",
    },
)
IMPOSSIBLE = RuntimeError, TypeError, OverflowError  # torch, of a tensor of such a shape
OVERHEAD = 20_000  # bytes that a block takes beside its weights


def spec(family: str, size: str | None = None, **numbers: Any) -> Spec:
    """The spec of a model: a family, a named size of it, and numbers and words that say otherwise."""
    kind = FAMILIES.named(str(family)).spec
    if size is not None and str(size) not in kind.sizes:
        raise unknown_word(f"size of {family}", str(size), kind.sizes)
    try:
        with torch.device("meta"):  # a spec tries its parts, and none should take memory yet
            return kind(**{"family": family, **(kind.sizes[size] if size else {}), **numbers})
    except ValidationError as error:
        from heedful.models.refusals import refusal

        raise refusal(error, "model", kind) from None
    except IMPOSSIBLE as error:
        raise impossible(error) from None


def with_facts(values: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """A model's keys and the facts of its data, each of which reaches the parts that have a key of its name."""
    parts = {key: value for key, value in values.items() if isinstance(value, Mapping) and "family" in value}
    if not parts:
        return {**values, **facts}
    made = {key: with_facts(value, told_of(str(value["family"]), facts)) for key, value in parts.items()}
    return {**values, **told_of(str(values["family"]), facts), **made}


def told_of(family: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that a family has a key for."""
    known = FAMILIES.named(family).spec.model_fields
    return {key: value for key, value in facts.items() if key in known}


def spec_as_written(values: Mapping[str, Any]) -> Spec:
    """The spec that a file holds, by whatever keys it was written."""
    family = str(values.get("family"))
    from heedful.models.former_keys import brought_up_to_date

    return spec(**{"family": family, **brought_up_to_date(values, FAMILIES.named(family).spec.model_fields)})


def build(family: str, size: str | None = None, **numbers: Any) -> nn.Module:
    """A model with fresh weights: `build("transformer", size="base", vocab=8000)`."""
    made = spec(family, size, **numbers)
    check_size(made)
    return assemble(made)


def assemble(spec: Spec) -> nn.Module:
    """The model that a spec describes, with fresh weights."""
    family = FAMILIES[spec.family]
    made = family.model if word_asked(spec) == NEXT else family.reading or family.model
    if isinstance(spec, AskedSpec) and spec.members > 1:
        from heedful.models.ensemble import Members

        return Members(spec, made)
    return made(spec)


def imagine(spec: Spec) -> nn.Module:
    """The model that a spec describes, of tensors on the meta device, which have shapes and take no memory."""
    try:
        with torch.device("meta"):
            return assemble(spec)
    except IMPOSSIBLE as error:
        raise impossible(error) from None


def impossible(error: Exception) -> Refusal:
    """The refusal of a model that has a tensor of a shape that torch cannot make."""
    return Refusal(f"the model cannot be built: {first_line(error)}; choose other numbers for it")


def check_size(spec: Spec) -> None:
    """Refuses a model that no memory here could hold."""
    one, two = (bytes_of(spec.with_depth(blocks)) for blocks in (1, 2))
    needed = one + (max(spec.stacked.values(), default=1) - 1) * (two - one + OVERHEAD)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        letters = ", or fewer letters" if getattr(spec, "letters", 0) else ""
        raise Refusal(
            f"the model would take {needed:.1e} bytes and there are {there:.1e}; "
            f"choose a smaller width, depth, length or vocabulary{letters}"
        )


def bytes_of(spec: Spec) -> int:
    """What a model's weights take; none are made."""
    return sum(tensor.numel() * tensor.element_size() for tensor in imagine(spec).parameters())


def first_line(error: Exception) -> str:
    """What an error says, without the rest of its story."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".;: ")


__all__ = [
    "DINO",
    "DVAE",
    "FAMILIES",
    "GPT",
    "MAE",
    "AutoFormer",
    "BEiT",
    "ConViT",
    "Forecaster",
    "LeNet",
    "Llama",
    "Members",
    "Predictor",
    "ResNet",
    "Spec",
    "Swin",
    "Transformer",
    "ViT",
    "WordVectors",
    "assemble",
    "build",
    "imagine",
    "spec",
]
