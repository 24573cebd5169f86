"""The laws of formats: names, tensors and configs of a public layout go there and back, and nothing is lost."""

from __future__ import annotations

import torch
from torch import nn

from heedful import models
from heedful.formats.layout import Layout
from heedful.formats.layout_registry import LAYOUTS, lost_fields
from heedful.formats.name_rules import rules_of
from heedful.formats.weights import state
from heedful.models.specs import Spec
from heedful.testing.broken_law import BrokenLaw, law
from heedful.testing.family_laws import toy_keys


def draw_model(spec: Spec) -> nn.Module:
    """A model whose every number is another."""
    torch.manual_seed(0)
    model = models.assemble(spec)
    with torch.no_grad():
        for tensor in state(model).values():
            tensor.copy_(torch.randn(tensor.shape))
    return model.eval()


def bijection(layout: Layout, spec: Spec) -> None:
    """Each tensor has one rule and goes there and back as it is; together they are as many numbers as before."""
    own = state(draw_model(spec))
    rules = rules_of(own, layout.table(spec))  # one rule each, and no name twice
    for name, rule in rules.items():
        theirs = rule.write(own[name])
        assert [tuple(one.shape) for one in theirs] == rule.shapes(tuple(own[name].shape)), f"shapes of {name}"
        assert torch.equal(rule.read(theirs), own[name]), f"{name} comes back as another"
    written = sum(one.numel() for name, rule in rules.items() for one in rule.write(own[name]))
    assert written == sum(one.numel() for one in own.values()), "numbers are lost or added"


def check_layout(name: str, layout: Layout) -> None:
    """Holds a layout to every law, on a toy of its family."""
    if type(LAYOUTS.get(layout.kind)) is not type(layout):
        raise BrokenLaw(f"{name} is not known as {layout.kind!r}; register it by that name, or by an entry point")
    with law(name, "its family can be built"):
        spec = models.spec(layout.family, **toy_keys(layout.family))
    if not layout.suits(spec):
        raise BrokenLaw(f"{name} breaks a law: it suits a toy of its own family, {layout.family!r}")
    with law(name, "names and tensors are a bijection"):
        bijection(layout, spec)
    with law(name, "a config says the whole spec"):
        told = lost_fields(layout, spec, layout.config(spec))
        assert not told, f"{', '.join(told)} read otherwise"
