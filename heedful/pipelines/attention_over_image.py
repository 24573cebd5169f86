"""Attention over an image: what the class token looks at, head by head, and rollouts through all layers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard, cast

import torch
from torch import Tensor, nn

from heedful.data.images import Pixels
from heedful.data.images.decode import Frame
from heedful.inputs.grids import Shape
from heedful.looking.gradients import keep_values, relevance
from heedful.looking.learned_patches import segments
from heedful.looking.look import Seen
from heedful.looking.maps import Map, maps_of_seen
from heedful.looking.overlay import Overlay
from heedful.looking.page import Example, Section
from heedful.looking.rollout import FUSED, rollout, share
from heedful.models.encoder_protocol import ImageEncoder
from heedful.models.vision.mae import MAE
from heedful.models.vision.vit import PatchSpec, ViT

CELL = re.compile(r"(\d+),(\d+)")  # the name of a patch
CLASS = ("first", "both")  # pools that ask the class token
ROLLOUT, SEGMENTS = "rollout through all layers", "segments of the last layer"  # titles of what is over an image
TOLD = ROLLOUT, SEGMENTS  # of these a report tells
MEANT = "mean over all patches"
WHO = "class", "distillation"  # tokens that answer, by their place
DISCARD = 0.5  # of the weights, in the rollouts that are shown beside the plain one


def sees_patches(model: nn.Module) -> TypeGuard[ViT]:
    """Whether a model makes tokens of the patches of an image, which all see one another."""
    return isinstance(model, ImageEncoder) and isinstance(getattr(model, "spec", None), PatchSpec)


def words_of(model: nn.Module, shape: Shape) -> list[str]:
    """What the tokens of a model are called: the class token and others before the patches, then row and column."""
    spec = cast(PatchSpec, model.spec)
    rows, columns = shape
    named = WHO if spec.taught else WHO[:1]
    before = [*named, *(f"token {at}" for at in range(len(named), spec.first))][: spec.first]
    return [*before, *(f"{row},{column}" for row in range(rows) for column in range(columns))]


def maps_of(model: nn.Module, seen: Seen, images: Tensor) -> tuple[Map, ...]:
    """All that was seen of one image (1 C H W); of a model that looks within windows, the mean over its windows."""
    if sees_patches(model):
        tokens = words_of(model, model.inputs.shape(images))
        alone = tokens[model.spec.first :]  # which look at each other where no class token stands before them yet
        early = [f"encoder.blocks.{at}." for at in range(getattr(model.spec, "local_up_to_layer", 0))]
        pooled = (tokens[:1], tokens)
        return maps_of_seen(
            seen,
            lambda path: (
                pooled if "cross" in path else (alone, alone) if path.startswith(tuple(early)) else (tokens, tokens)
            ),
        )
    made = []
    for path in seen.paths:
        weights = seen.weights(path).detach().float().cpu().mean(0)  # H T S
        side = round(weights.shape[-1] ** 0.5)
        cells = tuple(f"{at // side},{at % side}" for at in range(weights.shape[-1]))
        who = tuple(f"from {cell}" for cell in cells)  # of its window, and no token
        made.append(Map(path, weights, who, cells, note="mean over windows"))
    return tuple(made)


def maps_seen(model: nn.Module, seen: Seen, shown: Sequence[int], images: Tensor) -> tuple[Map, ...]:
    """All that was seen of one image (1 C H W) of which only the patches at `shown` were there, to the encoder."""
    model = cast(MAE, model)
    whole = words_of(model, model.inputs.shape(images))
    some = [*whole[: model.spec.first], *(whole[model.spec.first + at] for at in shown)]
    return maps_of_seen(seen, lambda path: (some, some) if path.startswith("encoder") else (whole, whole))


def over(photo: tuple[Pixels, Frame], maps: Sequence[Map], model: nn.Module, images: Tensor) -> tuple[Overlay, ...]:
    """A photograph (C H W) with rollouts over what the model sees of it, and with the attention of every layer's heads.

    `images` (1 C H W), as the model takes it, shows which patches speak for the answer, where there is one.
    """
    if not sees_patches(model):
        return ()
    image, frame, shape = photo[0].transpose(1, 2, 0), photo[1], model.inputs.shape(images)
    maps = place_maps(maps, model)
    whole = stack_maps(maps)
    counts = speaking(model, images, maps) if whole else None
    shown = []
    for token, title in speakers(whole[-1][0], model, shape).items() if whole else ():
        named = ways(whole, model, shape, token)
        if counts is not None:
            named.append(("by gradient", asked_weights(counts, model, shape, token)))
        who = "all patches, on average," if title.endswith(MEANT) else f"the {WHO[token]} token's outputs"
        note = f"What {who} hold of each patch in the end, each by its own scale; heads by mean, largest or least."
        shown.append(Overlay(ROLLOUT + title, image, tuple(named), note, frame, own=True))
    if model.spec.pool in CLASS and maps and maps[-1].rows == maps[-1].columns:
        cells = segments(torch.stack([asked_weights(weights, model, shape) for weights in maps[-1].weights]))
        each = tuple((f"head {at}", one) for at, one in enumerate(cells))
        note = "The patches that hold six tenths of what the class token looks at, head by head."
        shown.append(Overlay(SEGMENTS, image, each, note, frame))
    for map in maps:
        heads = tuple((f"head {at}", asked_weights(weights, model, shape)) for at, weights in enumerate(map.weights))
        title = map.path + title_of_rows(map.weights[0], model, shape)
        shown.append(Overlay(title, image, heads, frame=frame))
    return tuple(shown)


def stack_maps(maps: Sequence[Map]) -> list[Tensor]:
    """The weights of an encoder's layers (each H T T) in which all tokens look at each other, the first layer first."""
    whole = [map.weights for map in maps if map.path.startswith("encoder.blocks.") and map.rows == map.columns]
    return [weights for weights in whole if weights.shape[-1] == max(one.shape[-1] for one in whole)]


def place_maps(maps: Sequence[Map], model: ViT) -> list[Map]:
    """The maps whose tokens stand on the image, or look at it; nodes that a kind has of its own stand nowhere."""
    tokens = tuple(words_of(model, shape_of(maps)))
    known = tokens, tokens[model.spec.first :]
    return [map for map in maps if map.columns in known and map.rows in (*known, tokens[:1])]


def shape_of(maps: Sequence[Map]) -> Shape:
    """The rows and columns of patches of an image that maps are of: those of the last patch that is named."""
    ends = [CELL.fullmatch(map.columns[-1]) for map in maps]
    return max(((1 + int(end[1]), 1 + int(end[2])) for end in ends if end), default=(0, 0))


def ways(layers: Sequence[Tensor], model: ViT, shape: tuple[int, int], token: int) -> list[tuple[str, Tensor]]:
    """The rollout of layers by each way to take heads together, all weights counted and only the larger ones."""
    kinds = [(how, how, 0.0) for how in FUSED] + [(how, f"{how}, {share(DISCARD)}", DISCARD) for how in FUSED]
    return [(name, asked_weights(rollout(layers, how, part), model, shape, token)) for how, name, part in kinds]


def speakers(weights: Tensor, model: ViT, shape: tuple[int, int]) -> dict[int, str]:
    """The places of the tokens that answer, with what a title says of each; where patches do, 0 stands for them."""
    first = title_of_rows(weights, model, shape)
    if not model.spec.taught:
        return {0: first}
    return {0: first or f", the {WHO[0]} token", 1: f", the {WHO[1]} token"}


def asked_weights(weights: Tensor, model: ViT, shape: tuple[int, int], token: int = 0) -> Tensor:
    """The weights (T S) of whoever answers over the patches: of a token's row, or of the mean of all rows."""
    cells = shape[0] * shape[1]
    row = weights[-cells:].mean(0) if not token and title_of_rows(weights, model, shape) else weights[token]
    return row[-cells:].unflatten(0, shape)


def title_of_rows(weights: Tensor, model: ViT, shape: tuple[int, int]) -> str:
    """What a title says of weights (T S) of which no one token is asked; nothing where the class token is."""
    alone = weights.shape[-1] == shape[0] * shape[1]  # no token stands before the patches
    return f", {MEANT}" if len(weights) > 1 and (alone or model.spec.pool not in CLASS) else ""


@torch.enable_grad()
def speaking(model: ViT, images: Tensor, maps: Sequence[Map]) -> Tensor | None:
    """How much each token, to each, speaks for the likeliest class of an image (1 C H W): T T, where one is learned."""
    if model.spec.pool == "attention" or isinstance(model.outputs, nn.Identity):
        return None
    with keep_values(model) as found:
        answer = model(images.detach().requires_grad_())[0].max()  # which tells slopes though no weight may learn
    slopes = found.gradients(answer)
    most = max(map.weights.shape[-1] for map in maps)  # layers before a class token stands there tell of no answer
    whole = [map for map in maps if map.weights.shape[-1] == most and map.rows == map.columns]
    felt_at = [map for map in whole if map.path in slopes]
    if len(felt_at) < len(whole):  # layers share weights, whose slope is told by none of them
        return None
    return relevance([map.weights for map in felt_at], [slopes[map.path][0].float().cpu() for map in felt_at])


def overlays(examples: Sequence[Example]) -> Iterator[Section]:
    """What the model looks at in a few pictures: each one's rollouts over it, and what each head looks at."""
    for seen in examples:
        parts = (part for part in seen.sections if isinstance(part, Overlay) and part.title.startswith(TOLD))
        yield from (replace(part, title=f"{seen.name}: {part.title}") for part in parts)
