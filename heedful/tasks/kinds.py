"""Every kind of attention that there is: those of models, and what heads are taught by losses."""

from __future__ import annotations

from heedful.models import attention_kinds
from heedful.models.attention_kinds import Kind
from heedful.objectives.head_losses import disagreement, guided

LOSSES = (
    Kind("disagreement", "loss", disagreement.overlap, "objective.disagreement=0.1", disagreement.CARD),
    Kind("guided", "loss", guided.astray, "objective.guided=0.1", guided.CARD),
)


def every() -> dict[str, Kind]:
    """All of them by name: the words of models first."""
    return {**attention_kinds.every(), **attention_kinds.beside(), **{kind.name: kind for kind in LOSSES}}


def kind_named(name: str) -> Kind:
    """The kind of a name."""
    return attention_kinds.kind_named(name, every())
