"""Attention rollout: what a token looks at through all layers, streams that pass them by counted in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from heedful.errors import Refusal, unknown_word
from heedful.looking.maps import Map

FUSED: dict[str, Callable[[Tensor], Tensor]] = {  # heads become one: H T T -> T T
    "mean": lambda weights: weights.mean(0),
    "max": lambda weights: weights.amax(0),
    "min": lambda weights: weights.amin(0),
}


def rollout(layers: Sequence[Tensor], heads: str = "mean", discard: float = 0.0) -> Tensor:
    """The product of all layers' weights (each H T T, the first layer first), each half itself and half the stream.

    A row says how much of each input its token holds in the end, and sums to one (Abnar and Zuidema, 2020). Heads are
    taken by their mean, or by their largest or smallest weight; the smallest share `discard` of each layer's weights
    counts as nothing, but for the first token's of itself (Gildenblat, 2020).
    """
    if heads not in FUSED:
        raise unknown_word("way to take heads together", heads, FUSED)
    if not 0.0 <= discard < 1.0:
        raise Refusal(f"a share of {discard} cannot be discarded; choose one from 0 up to but not including 1")
    if not layers or any(one.shape[-2:] != layers[0].shape[-2:] or one.shape[-1] != one.shape[-2] for one in layers):
        raise Refusal("a rollout wants layers in which the same tokens look at each other; look at an encoder")
    whole = torch.eye(layers[0].shape[-1], dtype=layers[0].dtype, device=layers[0].device)
    for weights in layers:
        whole = mix_with_itself(discard_smallest(FUSED[heads](weights), discard)) @ whole
    return whole


def discard_smallest(weights: Tensor, discard: float) -> Tensor:
    """The weights (T T) without the smallest share of them; of what is equal the first go first."""
    count = int(weights.numel() * discard)
    least = weights.flatten().sort(stable=True).indices[:count]
    made = weights.flatten().index_fill(0, least, 0.0).view_as(weights)
    made[0, 0] = weights[0, 0]
    return made


def mix_with_itself(weights: Tensor) -> Tensor:
    """Half of what is looked at and half of the token itself, each row summing to one."""
    half = (weights + torch.eye(len(weights), dtype=weights.dtype, device=weights.device)) / 2
    return half / half.sum(-1, keepdim=True)


def share(discard: float) -> str:
    """How a share that a rollout drops is told: 50% dropped."""
    return f"{100 * discard:g}% dropped"


def roll_out(maps: Sequence[Map], discard: float = 0.0) -> list[Map]:
    """The rollout of each stack whose tokens look at each other, as maps: by the heads' mean, maximum and minimum.

    Where a token joins those that were there before, as a ConViT's class token does, from that layer on.
    """
    stacks: dict[str, list[Map]] = {}
    for map in maps:
        if ".blocks." in map.path and map.rows == map.columns and not map.path.endswith("cross"):
            stacks.setdefault(map.path.split(".blocks.")[0], []).append(map)
    found, said = [], f"rollout, {share(discard)}" if discard else "rollout"
    for stack, layers in stacks.items():
        whole = [map for map in layers if map.rows == layers[-1].rows]
        for how in FUSED:
            weights = rollout([map.weights for map in whole], how, discard)[None]
            name = f"{stack} rollout, {how} of heads"
            found.append(Map(name, weights, whole[0].rows, whole[0].columns, whole=said))
    return found
