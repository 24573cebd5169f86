"""Families of models: a spec, an assembly, and a forward that can be read aloud. One file each."""

from __future__ import annotations

import os
from typing import Any

import torch
from pydantic import ValidationError
from torch import nn

from heedful.errors import Refusal, unknown
from heedful.models.albert import Albert, AlbertSpec
from heedful.models.answers import NEXT, AskedSpec, asked
from heedful.models.autoformer import AutoFormer, AutoFormerSpec
from heedful.models.bart import Bart, BartSpec, MarianSpec, ReadingBart
from heedful.models.beit import BEiT, BEiTSpec
from heedful.models.bert import Bert, BertSpec, CamembertSpec, DistilbertSpec, RobertaSpec
from heedful.models.convit import ConViT, ConViTSpec
from heedful.models.dino import DINO, DINOSpec
from heedful.models.dvae import DVAE, DVAESpec
from heedful.models.forecaster import Forecaster, ForecasterSpec
from heedful.models.gpt import GPT, GPTSpec, ReadingGPT
from heedful.models.lenet import LeNet, LeNetSpec
from heedful.models.llama import Llama, LlamaSpec
from heedful.models.mae import MAE, MAESpec
from heedful.models.members import Members
from heedful.models.predictor import Predictor, PredictorSpec
from heedful.models.refusals import refusal
from heedful.models.resnet import ResNet, ResNetSpec
from heedful.models.spec import Spec
from heedful.models.swin import Swin, SwinSpec
from heedful.models.t5 import T5, T5Spec
from heedful.models.transformer import Transformer, TransformerSpec
from heedful.models.vit import ViT, ViTSpec
from heedful.models.word_vectors import WordVectors, WordVectorsSpec

FAMILIES: dict[str, tuple[type[Spec], type[nn.Module]]] = {
    "transformer": (TransformerSpec, Transformer),
    "predictor": (PredictorSpec, Predictor),
    "forecaster": (ForecasterSpec, Forecaster),
    "t5": (T5Spec, T5),
    "bart": (BartSpec, Bart),
    "marian": (MarianSpec, Bart),
    "gpt": (GPTSpec, GPT),
    "bert": (BertSpec, Bert),
    "roberta": (RobertaSpec, Bert),
    "camembert": (CamembertSpec, Bert),
    "distilbert": (DistilbertSpec, Bert),
    "albert": (AlbertSpec, Albert),
    "llama": (LlamaSpec, Llama),
    "vit": (ViTSpec, ViT),
    "mae": (MAESpec, MAE),
    "beit": (BEiTSpec, BEiT),
    "convit": (ConViTSpec, ConViT),
    "autoformer": (AutoFormerSpec, AutoFormer),
    "dvae": (DVAESpec, DVAE),
    "dino": (DINOSpec, DINO),
    "swin": (SwinSpec, Swin),
    "resnet": (ResNetSpec, ResNet),
    "lenet": (LeNetSpec, LeNet),
    "word_vectors": (WordVectorsSpec, WordVectors),
}
READING: dict[type[nn.Module], type[nn.Module]] = {  # in place of those that write
    GPT: ReadingGPT,
    Llama: ReadingGPT,
    Bart: ReadingBart,
}
OVERHEAD = 20_000  # bytes that a block takes beside its weights


def spec(family: str, size: str | None = None, **numbers: Any) -> Spec:
    """The spec of a model: a family, a named size of it, and numbers and words that say otherwise."""
    if not isinstance(family, str) or family not in FAMILIES:
        raise unknown("family", str(family), FAMILIES)
    kind = FAMILIES[family][0]
    if size is not None and str(size) not in kind.sizes:
        raise unknown(f"size of {family}", str(size), kind.sizes)
    try:
        with torch.device("meta"):  # a spec tries its parts, and none should take memory yet
            return kind(**{"family": family, **(kind.sizes[size] if size else {}), **numbers})
    except ValidationError as error:
        raise refusal(error, "model", kind) from None
    except (RuntimeError, TypeError, OverflowError) as error:  # torch, of a tensor of such a shape
        raise Refusal(f"the model cannot be built: {first_line(error)}; choose other numbers for it") from None


def build(family: str, size: str | None = None, **numbers: Any) -> nn.Module:
    """A model with fresh weights: `build("transformer", size="base", vocab=8000)`."""
    made = spec(family, size, **numbers)
    check_size(made)
    return assemble(made)


def assemble(spec: Spec) -> nn.Module:
    """The model that a spec describes, with fresh weights."""
    kind = FAMILIES[spec.family][1]
    made = kind if asked(spec) == NEXT else READING.get(kind, kind)
    return Members(spec, made) if isinstance(spec, AskedSpec) and spec.members > 1 else made(spec)


def check_size(spec: Spec) -> None:
    """Refuses a model that no memory here could hold."""
    one, two = (bytes_of(spec.model_copy(update=dict.fromkeys(spec.stacked, depth))) for depth in (1, 2))
    needed = one + (max(spec.stacked.values()) - 1) * (two - one + OVERHEAD)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        letters = ", or fewer letters" if getattr(spec, "letters", 0) else ""
        raise Refusal(
            f"the model would take {needed:.1e} bytes and there are {there:.1e}; "
            f"choose a smaller width, depth, length or vocabulary{letters}"
        )


def bytes_of(spec: Spec) -> int:
    """What a model's weights take; none are made."""
    with torch.device("meta"):
        return sum(tensor.numel() * tensor.element_size() for tensor in assemble(spec).parameters())


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
    "refusal",
    "spec",
]
