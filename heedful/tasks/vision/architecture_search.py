"""Architecture search: all networks of a supernet learn, then the best one within a budget is chosen (AutoFormer)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from heedful.data.images import Picture
from heedful.looking.page import Figures, Samples
from heedful.objectives.architecture_search import SearchLearned, Supernet
from heedful.results import Label
from heedful.tasks.vision.image_batches import ImageCollateOneByOne
from heedful.tasks.vision.image_classification import TASK as IMAGES
from heedful.views.finding import Finding
from heedful.views.image_classes import taken_for

SEARCH = "Each row is the best network of a generation: how often it is right, and how large it is, layer by layer."


def choose(model: nn.Module, samples: Sequence[Picture], results: Sequence[Label], learned: SearchLearned) -> Finding:
    """The network that was chosen, the best of each generation, and what it takes for what."""
    made = taken_for(model, samples, results, learned)
    if learned.found is None:
        return made
    header = ("generation", "right on validation images", "weights", "width", "heads and hidden units by layer")
    table: Any = Samples("The search, best of each generation", header, learned.told_of, note=SEARCH)
    layers = f"{len(learned.found.layers)} layers of width {learned.found.width}"
    cards = ("chosen", f"{int(learned.told_of[-1][2].replace(',', '')):,}", f"weights, {layers}"), *made.figures.rows
    return replace(made, figures=Figures(made.figures.title, cards), more=(table, *made.more))


TASK = replace(
    IMAGES,
    name="architecture-search",
    fit=SearchLearned.fit,
    learned=SearchLearned,
    collate=ImageCollateOneByOne(),
    objective=Supernet(),
    views=(choose,),
    families=("autoformer",),
)
