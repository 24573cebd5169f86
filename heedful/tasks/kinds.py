"""Every kind of attention that there is: those of models, and what heads are taught by losses."""

from __future__ import annotations

from heedful.attention.card import Card
from heedful.models import kinds
from heedful.models.kinds import Kind
from heedful.tasks.heads import astray, overlap

LOOKS = "looks into every layer, so that no fused kernel's thrift is left while learning"
DISAGREEMENT = Card(
    "Multi-Head Attention with Disagreement Regularization (Li et al., 2018)", 2018, "T^2", limits=LOOKS, tier="B"
)
GUIDED = Card(
    "Guiding Attention for Self-Supervised Learning with Transformers (Deshpande and Narasimhan, 2020)",
    2020,
    "T^2",
    limits=LOOKS,
    tier="B",
)
LOSSES = (
    Kind("disagreement", "loss", overlap, "training.disagreement=0.1", DISAGREEMENT),
    Kind("guided", "loss", astray, "training.guided=0.1", GUIDED),
)


def every() -> dict[str, Kind]:
    """All of them by name: the words of models first."""
    return {**kinds.every(), **kinds.beside(), **{kind.name: kind for kind in LOSSES}}


def known(name: str) -> Kind:
    """The kind of a name."""
    return kinds.known(name, every())
