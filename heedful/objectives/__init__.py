"""Objectives: named losses, each a sum and a count."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from heedful.registry import Registry

if TYPE_CHECKING:
    from heedful.objectives.objective import Objective

# Objectives that a run may choose in the place of its task's own, `objective.name=NAME`.
OBJECTIVES: Registry[type[Objective[Any]]] = Registry(
    "objective",
    "heedful.objectives",
    {
        "scheduled_sampling": "heedful.objectives.scheduled_sampling:ScheduledSampling",
    },
)


def kind_of(own: Objective[Any], name: str | None) -> type[Objective[Any]]:
    """The class of the objective that a run names, or of its task's own where it names none."""
    return type(own) if name is None else OBJECTIVES.named(name)


def instead(own: Objective[Any], name: str | None) -> Objective[Any]:
    """The objective that a run names, in the place of its task's own."""
    return own if name is None else of_fields(OBJECTIVES.named(name), own)


def of_fields(kind: type[Objective[Any]], own: Objective[Any]) -> Objective[Any]:
    """An objective of a kind, with the fields that it shares with the one whose place it takes."""
    theirs = {one.name for one in fields(own)}
    return kind(**{one.name: getattr(own, one.name) for one in fields(kind) if one.name in theirs})
