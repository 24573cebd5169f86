"""Families of models: a spec, an assembly, and a forward that can be read aloud. One file each."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from torch import nn

from heedful.errors import Refusal, nearest, unknown
from heedful.models.forecaster import Forecaster, ForecasterSpec
from heedful.models.predictor import Predictor, PredictorSpec
from heedful.models.spec import Spec
from heedful.models.transformer import Transformer, TransformerSpec

FAMILIES: dict[str, tuple[type[Spec], type[nn.Module]]] = {
    "transformer": (TransformerSpec, Transformer),
    "predictor": (PredictorSpec, Predictor),
    "forecaster": (ForecasterSpec, Forecaster),
}


def spec(family: str, size: str | None = None, **numbers: Any) -> Spec:
    """The spec of a model: a family, a named size of it, and numbers and words that say otherwise."""
    if family not in FAMILIES:
        raise unknown("family", family, FAMILIES)
    kind = FAMILIES[family][0]
    if size is not None and size not in kind.sizes:
        raise unknown(f"size of {family}", size, kind.sizes)
    try:
        return kind(**{"family": family, **(kind.sizes[size] if size else {}), **numbers})
    except ValidationError as error:
        raise refusal(error, "model", kind) from None


def build(family: str, size: str | None = None, **numbers: Any) -> nn.Module:
    """A model with fresh weights: `build("transformer", size="base", vocab=8000)`."""
    return assemble(spec(family, size, **numbers))


def assemble(spec: Spec) -> nn.Module:
    """The model that a spec describes, with fresh weights."""
    return FAMILIES[spec.family][1](spec)


def refusal(error: ValidationError, where: str, kind: type[Any]) -> Refusal:
    """What pydantic found wrong, as one sentence about the first thing that is."""
    first = error.errors()[0]
    key = ".".join([where, *(str(part) for part in first["loc"])]).strip(".")
    if first["type"] == "extra_forbidden":
        known = [f"{where}.{name}".strip(".") for name in kind.model_fields]
        return Refusal(f"unknown key {key!r}{nearest(key, known) or ';'} known: {', '.join(sorted(known))}")
    if first["type"] == "missing":
        return Refusal(f"{key} is not given; add {key}=...")
    if first["type"] == "value_error":
        return Refusal(str(first["ctx"]["error"]))
    said = first["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return Refusal(f"{key}={first['input']!r} does not fit: it should be {said}")


__all__ = ["FAMILIES", "Forecaster", "Predictor", "Spec", "Transformer", "assemble", "build", "refusal", "spec"]
