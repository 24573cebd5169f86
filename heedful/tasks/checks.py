"""The laws, proved on a trained model: padding, memory, the future, looking, and saving change nothing."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.formats import native
from heedful.looking import look
from heedful.models import FAMILIES
from heedful.models.cases import Cases, Readings
from heedful.models.heads_asked import NEXT, word_asked

CLOSE = 1e-9  # in float64


@dataclass(frozen=True)
class Law:
    """A law, whether it holds, and what was measured."""

    name: str
    holds: bool
    detail: str
    applies: bool = True

    @property
    def said(self) -> str:
        """One word for the verdict."""
        return ("holds" if self.holds else "FAILS") if self.applies else "n/a"


@torch.no_grad()
def checks(model: nn.Module) -> Iterator[Law]:
    """Each law in turn, on random inputs that the model can take."""
    torch.manual_seed(0)
    model = model.cpu().eval()
    exact = copy.deepcopy(model).double()
    spec: Any = model.spec
    cases = (FAMILIES[spec.family].cases if word_asked(spec) == NEXT else Readings)(exact)
    yield within_tolerance("padded == unpadded", cases.padded)
    yield within_tolerance("with memory == without", cases.remembered)
    yield within_tolerance("the future never leaks", cases.leak)
    yield same("looking changes no bit", model, cases)
    yield reload_law("save, load, same outputs", model, cases)


def within_tolerance(name: str, measure: Callable[[], float] | str) -> Law:
    """A law on two ways to the same numbers."""
    if isinstance(measure, str):
        return Law(name, True, measure, applies=False)
    gap = measure()
    return Law(name, gap <= CLOSE, f"largest difference {gap:.1e} in float64")


def same(name: str, model: nn.Module, cases: Cases) -> Law:
    """The outputs with and without looking, bit by bit."""
    inputs = cases.inputs(next(model.parameters()).dtype)
    before = model(*inputs)
    with look(model) as seen:
        during = model(*inputs)
    return Law(
        name, torch.equal(before, during), f"{len(seen.paths)} layers looked at, {before.numel():,} outputs compared"
    )


def reload_law(name: str, model: nn.Module, cases: Cases) -> Law:
    """The outputs of the model and of its own copy from a folder, bit by bit."""
    inputs = cases.inputs(next(model.parameters()).dtype)
    with tempfile.TemporaryDirectory() as folder:
        native.save(model, Path(folder) / "model")
        again = native.load(Path(folder) / "model").to(next(model.parameters()).dtype)
    return Law(name, torch.equal(model(*inputs), again(*inputs)), "bit by bit")
