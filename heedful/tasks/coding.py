"""Telling images by visual tokens: a model learns which to take, and to draw the image of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, pick, several
from heedful.data.images import Picture, Pixels
from heedful.looking.overlay import Pictures
from heedful.looking.page import Figures, Samples
from heedful.models.numerics import device_of, finite, precise
from heedful.models.vision.dvae import DVAE
from heedful.pipelines.reading_inputs import read_all
from heedful.results import ImageTokens, Result
from heedful.tasks.closed import PLAIN, Terms
from heedful.tasks.images import Images, levels, pixels_of
from heedful.tasks.seen import coloured
from heedful.views.finding import Finding

EVEN = 0.02  # how much it counts that all tokens are used, beside the error of the pixels
SIDE_BY_SIDE = 8  # images of a report


class Coding(Images):
    """Learns visual tokens; scored by how much less the squared error of what is drawn is than the mean colour's."""

    name: ClassVar[str] = "coding"
    family: ClassVar[str] = "dvae"
    also: ClassVar[tuple[str, ...]] = ()
    watch: ClassVar[str] = "skill"
    terms: ClassVar[frozenset[str]] = frozenset()

    def numbers(self) -> dict[str, Any]:
        return self.sizes()

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        assert isinstance(model, DVAE)
        images, _ = self.variety(batch)
        told = model.told(images)
        error = (precise(model.drawn(told)) - model.scale(images)).square().mean((1, 2, 3))
        used = precise(told).softmax(1).mean((0, 2, 3))  # over the batch: how often each token is taken
        uneven = (used * (used.clamp(min=1e-12) * model.spec.vocab).log()).sum()
        return (error + EVEN * uneven).sum(), torch.full((), len(images), device=images.device)

    def score(self, model: nn.Module, samples: Sequence[Picture]) -> dict[str, float]:
        found = self.errors(model, samples)
        return {"skill": 1 - sum(error for error, _ in found) / max(1e-12, sum(plain for _, plain in found))}

    @torch.no_grad()
    def errors(
        self, model: nn.Module, pictures: Sequence[Picture | Pixels], size: int = 250
    ) -> list[tuple[float, float]]:
        """The error of what is drawn of each picture, and that of its mean colour in its place."""
        assert isinstance(model, DVAE)
        model.eval()
        made: list[tuple[float, float]] = []
        for some in several(pictures, size):
            images = levels(torch.from_numpy(pixels_of(some)).to(device_of(model)))
            wanted = model.scale(images)
            error = (precise(model(images)) - wanted).square().mean((1, 2, 3)).tolist()
            plain = (wanted - wanted.mean((2, 3), keepdim=True)).square().mean((1, 2, 3)).tolist()
            made += zip(error, plain, strict=True)
            self.tell(len(images))
        return made

    @torch.no_grad()
    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        assert isinstance(model, DVAE)
        for group in several(read_all(inputs, self.known)):
            images = levels(torch.from_numpy(pixels_of(group)).to(device_of(model)))
            told = finite(model.eval().told(images)).flatten(2).argmax(1)
            yield from (ImageTokens(tuple(row)) for row in told.tolist())

    def show(self, model: nn.Module, samples: Sequence[Picture]) -> Samples:
        rows = tuple(
            (Path(one.place).name if one.is_file else one.place, f"{1 - error / max(1e-12, plain):.3f}")
            for one, (error, plain) in zip(samples, self.errors(model, samples), strict=True)
        )
        return Samples("Images it never saw", ("image", "skill"), rows)

    @torch.no_grad()
    def finding(self, model: nn.Module, samples: Sequence[Picture]) -> Finding | None:
        assert isinstance(model, DVAE)
        some = pick(samples, SIDE_BY_SIDE)
        images = levels(torch.from_numpy(pixels_of(some)).to(device_of(model)))
        made = model.eval()(images) * shaped(self.deviation, images) + shaped(self.mean, images)
        drawn = made.clamp(0, 1).mul(255).byte().cpu().numpy()
        each = [pair for at, one in enumerate(some) for pair in (("image", one.pixels), ("drawn", drawn[at]))]
        pictures = tuple((words, coloured(pixels)) for words, pixels in each)
        shown = Pictures("Images, and what is drawn of their tokens", pictures, along=8)
        counts = model.tokens(images).flatten().bincount(minlength=model.spec.vocab).float()
        shares = counts / counts.sum()
        many = math.exp(-float((shares * shares.clamp(min=1e-12).log()).sum()))
        cards = ("visual tokens", f"{model.spec.vocab:,}", "known"), ("in use", f"{many:.1f}", "by their entropy, here")
        return Finding(Figures("Visual tokens", cards), "", "mean", (shown,))


def shaped(numbers: Sequence[float], like: Tensor) -> Tensor:
    """A number for each channel as it goes with images."""
    return torch.tensor(numbers, device=like.device)[None, :, None, None]
