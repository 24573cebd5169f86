"""Learned filters and positions of a vision transformer, and how far its heads look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from heedful.data.images import Pixels
from heedful.data.images.decode import as_hwc
from heedful.inputs import LearnedGrid, OverlappingPatches, ResNetPatches
from heedful.looking.learned_patches import distances, filters, similarity
from heedful.looking.maps import Map
from heedful.looking.overlay import Pictures
from heedful.looking.page import Curve, Curves, Section
from heedful.pipelines.attention_over_image import place_maps, sees_patches, shape_of

REACH = "The mean distance between a patch and what it looks at, of each head: low ones look nearby, high ones far."
CELLS = 64  # positions that are shown
GOES_ON = "and then", "finetune-images", "start=THIS FOLDER: a linear probe, learning on, and the gain over scratch"


def learned_of(model: nn.Module, maps: Sequence[Sequence[Map]]) -> Iterator[Section]:
    """What a vision transformer has learned: its filters, its positions, and how far its heads look in examples."""
    if not sees_patches(model):
        return
    shape, first = model.inputs.stem.shape(model.spec.high, model.spec.wide), model.spec.first
    if isinstance(model.inputs.stem, OverlappingPatches | ResNetPatches):
        shown = None
    else:
        shown = filters(model.inputs.stem.matrix.weight, model.spec.channels)
    if shown is not None and model.spec.channels in (1, 3):
        each = tuple((f"{at + 1}", as_hwc((one * 255).byte().numpy())) for at, one in enumerate(shown))
        yield Pictures("Filters", each, "The principal components of what patches are looked at with, strongest first.")
    if isinstance(model.inputs.position, LearnedGrid):
        alike = similarity(model.inputs.position.table[model.inputs.position.leading :], shape)
        each = tuple((f"{at // shape[1]},{at % shape[1]}", shades(one)) for at, one in enumerate(alike) if at < CELLS)
        yield Pictures("Positions", each, "How alike the learned position of a patch is to those of all patches.")
    seen_at = shape_of([map for one in maps for map in one])
    curves = tuple(reach([place_maps(one, model) for one in maps], seen_at, first))
    yield Curves("How far heads look", curves, REACH)


def reach(maps: Sequence[Sequence[Map]], shape: tuple[int, int], first: int) -> Iterator[Curve]:
    """The mean distance from a patch to what it looks at, in patches, of each head by layer."""
    cells = shape[0] * shape[1]
    layers = [[map.weights[:, -cells:, -cells:] for map in one if map.rows == map.columns] for one in maps]
    far = [torch.stack([distances(w, shape) for w in some]).mean(0) for some in zip(*layers, strict=True)]
    for head in range(max(map(len, far), default=0)):  # layers may have more heads than others
        points = tuple((float(at), float(layer[head])) for at, layer in enumerate(far) if head < len(layer))
        yield Curve(f"head {head}", points, "patches", along="layer")


def shades(weights: Tensor) -> Pixels:
    """Numbers from -1 to 1 (rows x columns) in grey: rows columns 3."""
    return as_hwc(((weights.clamp(-1, 1) + 1) * 127.5).byte().numpy()[None])
