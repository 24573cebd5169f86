"""Attention rollout over an image, where so many of each layer's smallest weights are dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import torch
from torch import nn

from heedful.looking.maps import Map
from heedful.looking.overlay import Overlay, Pictures
from heedful.looking.page import Section
from heedful.looking.rollout import FUSED, rollout, share
from heedful.models.vision.mae import MAE
from heedful.pipelines.attention_over_image import (
    DISCARD,
    MEANT,
    ROLLOUT,
    asked_weights,
    place_maps,
    sees_patches,
    shape_of,
    speakers,
    stack_maps,
)


def rolled_over(maps: Sequence[Map], discard: float, parts: Sequence[Section], model: nn.Module) -> list[Overlay]:
    """Rollouts that drop a share of the weights, over the image of other parts, where none of these shows them."""
    if shown := [part for part in parts if isinstance(part, Pictures)]:  # patches that were hidden and made again
        return [one for part in shown for one in through(maps, discard, part, cast(MAE, model))]
    images = [part for part in parts if isinstance(part, Overlay)]
    if not sees_patches(model) or not images or discard in (0.0, DISCARD):  # these are drawn anyway
        return []
    shape, layers = shape_of(maps), stack_maps(place_maps(maps, model))
    if not layers:
        return []
    held, dropped = {how: rollout(layers, how, discard) for how in FUSED}, f"{ROLLOUT}, {share(discard)}"
    made = []
    for token, title in speakers(layers[-1][0], model, shape).items():
        each = tuple((how, asked_weights(held[how], model, shape, token)) for how in FUSED)
        made.append(Overlay(dropped + title, images[0].image, each, frame=images[0].frame, own=True))
    return made


def through(maps: Sequence[Map], discard: float, part: Pictures, model: MAE) -> Iterator[Overlay]:
    """The rollout of an autoencoder's encoder over the patches that are shown, and of its decoder over the image."""
    shape, images = shape_of(maps), dict(part.pictures)
    every = [f"{row},{column}" for row in range(shape[0]) for column in range(shape[1])]
    dropped = f", {share(discard)}" if discard else ""
    for stack, image, whose in (("encoder", "shown", "mean over the patches shown"), ("decoder", "image", MEANT)):
        layers = [map for map in maps if map.path.startswith(f"{stack}.blocks.")]
        places = torch.tensor([every.index(name) for name in layers[0].columns[model.spec.first :]])
        each = []
        for how in FUSED:
            held = rollout([map.weights for map in layers], how, discard)[-len(places) :, -len(places) :].mean(0)
            nothing = torch.full((len(every),), torch.nan)  # is told of a patch that is hidden
            each.append((how, nothing.index_copy(0, places, held).unflatten(0, shape)))
        yield Overlay(f"rollout through the {stack}{dropped}, {whose}", images[image], tuple(each), own=True)
