"""The laws of families of models: padding, memory, the future, looking and saving change nothing; each key speaks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful import models
from heedful.errors import Refusal
from heedful.models import FAMILIES
from heedful.models.family import Family
from heedful.tasks.checks import checks
from heedful.testing.attention_cases import stir
from heedful.testing.broken_law import BrokenLaw, law

SMALL = {"width": 24, "heads": 2, "depth": 2, "depths": [1, 1], "out_dim": 16, "hidden_dim": 16, "bottleneck_dim": 8}
SAID: tuple[tuple[str, Any], ...] = (  # of attention
    ("mechanism", "window(size=1)"),
    ("mechanism", "blocks(size=1)"),
    ("mechanism", "linear"),
    ("mechanism", "isab"),
    ("project", "collaborative"),
    ("join", "routed"),
    ("stack", "realformer"),
    ("bias", "alibi"),
    ("groups", 1),
    ("key", 6),
    ("key_norm", True),
)


def toy_keys(family: str) -> dict[str, Any]:
    """A small model's keys, of those that its family has."""
    small = {key: value for key, value in SMALL.items() if key in FAMILIES[family].spec.model_fields}
    return small | dict(FAMILIES[family].toy)


def answer(family: str, **said: Any) -> list[Tensor]:
    """What a new model says, with the same dice whatever is said of it."""
    torch.manual_seed(0)
    model = models.build(family, **toy_keys(family) | said).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(weight.numel())) * 0.3)
        torch.manual_seed(1)
        made = model(*FAMILIES[family].cases(model).inputs(torch.float32))
    return [part for part in (made if isinstance(made, tuple) else (made,)) if isinstance(part, Tensor)]


def key_speaks(family: str, key: str, value: Any, plain: list[Tensor]) -> None:
    """A key of attention changes what a model says, or is refused: what is taken and ignored would be a lie."""
    try:
        other = answer(family, **{key: value})
    except (Refusal, ValueError):
        return
    pairs = zip(plain, other, strict=True)
    assert any(one.shape != two.shape or not torch.equal(one, two) for one, two in pairs), f"{key}={value} is ignored"


def check_family(name: str, family: Family) -> None:
    """Holds a family to every law, on a toy of it and the cases that it brings."""
    word = family.spec.model_fields["family"].default
    if FAMILIES.get(str(word)) is not family:
        raise BrokenLaw(f"{name} is not known as {word!r}; register it by that name, or by an entry point")
    with law(word, "a toy of it can be built, and its spec reads back from its own JSON"):
        spec = models.spec(word, **toy_keys(word))
        assert models.spec_as_written(spec.model_dump(mode="json")) == spec
        torch.manual_seed(0)
        model = stir(models.assemble(spec))
    with law(word, "the laws of `heedful check` can be measured on its cases"):
        found = list(checks(model))
    for one in found:
        if not one.holds:
            raise BrokenLaw(f"{word} breaks a law: {one.name} ({one.detail})")
    with law(word, "a key of attention changes what it says, or is refused"):
        plain = answer(word)
        for key, value in SAID:
            key_speaks(word, key, value, plain)
