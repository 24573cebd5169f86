"""Objectives: named losses, each a sum and a count."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from heedful.registry import Registry

if TYPE_CHECKING:
    from heedful.objectives.objective import Objective

# Objectives that a run may choose in the place of its task's own, `objective.name=NAME`.
OBJECTIVES: Registry[type[Objective[Any]]] = Registry("objective", "heedful.objectives", {})


def kind_of(own: Objective[Any], name: str | None) -> type[Objective[Any]]:
    """The class of the objective that a run names, or of its task's own where it names none."""
    return type(own) if name is None else OBJECTIVES.named(name)


def instead(own: Objective[Any], name: str | None) -> Objective[Any]:
    """The objective that a run names, with whatever fields it shares with its task's own, which it stands in for."""
    if name is None:
        return own
    kind, theirs = OBJECTIVES.named(name), {one.name for one in fields(own)}
    return kind(**{one.name: getattr(own, one.name) for one in fields(kind) if one.name in theirs})
