"""Beginning with what another model has learned: its weights are taken over where names and shapes fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import ClassTable
from heedful.checkpoints import store
from heedful.checkpoints.weights import state
from heedful.errors import Refusal
from heedful.inputs import LearnedGrid
from heedful.models import Spec
from heedful.tasks import Task
from heedful.training.spec import RunSpec

LEAST = 0.5  # of the weights, below which it is another model altogether
NAMED = 4  # tensors that begin anew and are told by name


ASKED = ("output", "classes", "labels", "several")  # of a model, which the task says anew


def inherited(run: RunSpec, task: Task) -> dict[str, Any]:
    """The numbers and words of the model that a run begins with, but for what it is asked and what it drops."""
    other = store.load(run.start)
    spec = other.spec
    if not isinstance(spec, Spec) or not vocab_of(other):
        raise Refusal(f"start={run.start} is no model of text; name the folder of one")
    kept = spec.model_dump(exclude_none=True, exclude={*ASKED, "dropout"})
    return kept | {"vocab": task.grown(vocab_of(other))}


@torch.no_grad()
def begin(model: nn.Module, folder: Path) -> str:
    """Puts the weights of a run or model folder into a fresh model, and says what was taken and what begins anew."""
    other = store.load(folder)
    own, found = state(model), fitting(model, other)
    taken = sum(tensor.numel() for tensor in found.values()) / sum(tensor.numel() for tensor in own.values())
    if taken < LEAST:
        raise Refusal(
            f"start={folder}: {100 * taken:.0f} % of the weights fit, so it is another model; give this one the same "
            "model.width, model.depth and other sizes, or leave start out"
        )
    for name, tensor in found.items():
        own[name].copy_(tensor)
    fresh = [name for name in own if name not in found]
    more = f" and {len(fresh) - NAMED:,} more" if len(fresh) > NAMED else ""
    anew = f"; anew: {', '.join(fresh[:NAMED])}{more}" if fresh else ""
    return f"{folder} ({len(found):,} of {len(own):,} tensors{anew})"


def fitting(model: nn.Module, other: nn.Module) -> dict[str, Tensor]:
    """The tensors of another model that have a place in a model; tables of positions are resized to its grid."""
    own, there = state(model), state(other)
    found = {name: there[name] for name in own if name in there and there[name].shape == own[name].shape}
    for name in own.keys() & there.keys() - found.keys():  # more tokens are known now: those before keep their rows
        rows, (before, *wide) = len(own[name]), there[name].shape
        if rows > before and [*own[name].shape[1:]] == wide and len(there[name]) == vocab_of(other):
            found[name] = torch.cat((there[name], own[name][before:]))
    tables = {path: part for path, part in other.named_modules() if isinstance(part, LearnedGrid | ClassTable)}
    for path, part in model.named_modules():
        if isinstance(part, LearnedGrid | ClassTable) and path in tables and part.fits(tables[path]):
            found[f"{path}.table"] = tables[path].resized(part.shape)
    return found


def vocab_of(model: nn.Module) -> int:
    """How many tokens a model knows; none where it is not of text."""
    known: int = getattr(model.spec, "vocab", None) or 0
    return known
