"""A cache of lowered masks: a sight keeps them for its forward, and longer where they follow from numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import torch

from heedful.attention.mask_and_bias import Mask

Made = TypeVar("Made")
MOST = 64  # lists of blocks, orders and parts that last, a few megabytes each where sequences are very long
LASTING: dict[Hashable, object] = {}


def once(made: dict[Hashable, object], key: Hashable, make: Callable[[], Made]) -> Made:
    """The value that `make` gave at the first call. torch.compile can trace it, but no cached_property, which locks."""
    if key not in made:
        made[key] = make()
    return made[key]  # type: ignore[return-value]


def across_forwards(key: Hashable, mask: Mask, length: int, device: torch.device, make: Callable[[], Made]) -> Made:
    """The same for all forwards, where a mask is made of numbers alone; what was asked for least lately goes first."""
    from heedful.attention.mask_signature import signature  # which is asked of long sequences alone

    told = signature(mask)
    if told is None or torch.compiler.is_compiling():
        return make()
    name = (key, told, length, str(device))
    with torch.inference_mode(False):  # or what is made while a text is written could not be learned with later
        made = once(LASTING, name, make)
    LASTING.pop(name, None)
    LASTING[name] = made
    while len(LASTING) > MOST:
        LASTING.pop(next(iter(LASTING)))
    return made
