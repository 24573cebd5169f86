"""Colour transforms: each of PIL's changes of colour, for a whole batch, with a strength for each image."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from heedful.data.transforms.moves import each

LUMA = (0.299, 0.587, 0.114)  # how bright red, green and blue are to the eye
LEVELS = 256


def grey(images: Tensor) -> Tensor:
    """How bright each pixel is: B C H W -> B 1 H W."""
    if images.shape[1] != len(LUMA):
        return images.mean(1, keepdim=True)
    red, green, blue = (share * channel for share, channel in zip(LUMA, images.split(1, 1), strict=True))
    return red + green + blue


def blend(one: Tensor, two: Tensor, strength: Tensor) -> Tensor:
    """From `one` at strength 0 to `two` at 1 and beyond, within what can be shown."""
    return (one + each(strength) * (two - one)).clamp(0, 1)


def brightness(images: Tensor, strength: Tensor) -> Tensor:
    """0 is black, 1 the image."""
    return blend(torch.zeros_like(images), images, strength)


def contrast(images: Tensor, strength: Tensor) -> Tensor:
    """0 is the mean grey, 1 the image."""
    return blend(grey(images).mean((2, 3), keepdim=True).expand_as(images), images, strength)


def saturation(images: Tensor, strength: Tensor) -> Tensor:
    """0 is grey, 1 the image."""
    return blend(grey(images).expand_as(images), images, strength)


def hue(images: Tensor, turn: Tensor) -> Tensor:
    """Colours by so much of a turn about grey: by a third, red becomes green; what has no colours stays."""
    if images.shape[1] != len(LUMA):
        return images
    mean, angle = images.mean(1, keepdim=True), each(turn) * math.tau
    aside = (images.roll(1, 1) - images.roll(-1, 1)) / math.sqrt(3)
    return (mean + angle.cos() * (images - mean) + angle.sin() * aside).clamp(0, 1)


def sharpness(images: Tensor, strength: Tensor) -> Tensor:
    """0 is smooth, 1 the image, 2 sharp; the pixels of the edge stay."""
    if min(images.shape[-2:]) < 3:
        return images  # all of its pixels are of the edge
    smooth = images.clone()
    smooth[..., 1:-1, 1:-1] = (9 * avg_pool2d(images, 3, 1) + 4 * images[..., 1:-1, 1:-1]) / 13
    return blend(smooth, images, strength)


def solarise(images: Tensor, above: Tensor) -> Tensor:
    """Shades from `above` up are turned about."""
    return torch.where(images >= each(above), 1 - images, images)


def posterise(images: Tensor, bits: Tensor) -> Tensor:
    """Shades by their first `bits` bits alone (of 8)."""
    step = torch.exp2(8 - each(bits))
    levels = (images * (LEVELS - 1)).round()
    return (levels / step).floor() * step / (LEVELS - 1)


def autocontrast(images: Tensor) -> Tensor:
    """The darkest shade of each channel becomes black, the brightest white: autocontrast."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    return torch.where(high > low, (images - low) / (high - low).clamp(min=1e-6), images)


def equalise(images: Tensor) -> Tensor:
    """Each channel's shades spread so that all are about as frequent, by PIL's own reckoning."""
    levels = (images * (LEVELS - 1)).round().long().flatten(2)  # B C HW
    counts = torch.zeros(*levels.shape[:2], LEVELS, dtype=torch.long, device=images.device)
    counts.scatter_add_(2, levels, torch.ones_like(levels))
    last = counts.gather(2, levels.amax(2, keepdim=True))  # of the brightest shade there is
    step = (levels.shape[2] - last) // (LEVELS - 1)
    before = counts.cumsum(2) - counts
    table = ((before + step // 2) // step.clamp(min=1)).clamp(max=LEVELS - 1)
    made = torch.where(step > 0, table.gather(2, levels), levels)
    return (made.to(images.dtype) / (LEVELS - 1)).view_as(images)
