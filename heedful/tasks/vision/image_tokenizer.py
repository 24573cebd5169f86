"""Image tokenizer (dVAE): a model encodes an image as visual tokens, and decodes the image from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from heedful.data.collate import pick, several
from heedful.data.images import Picture
from heedful.data.images.decode import as_hwc
from heedful.looking.overlay import Pictures
from heedful.looking.page import Figures, Samples
from heedful.metrics.skill import Pair, ReconstructionSkill, skill_of
from heedful.models.numerics import finite, precise
from heedful.models.vision.dvae import DVAE
from heedful.objectives.image_tokenizer import DrawnTokens
from heedful.pipelines.image_preprocessing import ImageLearned, again, check_pictures
from heedful.pipelines.pipeline import Heard, unheard
from heedful.pipelines.vision_pipeline import AT_ONCE, VisionPipeline, images_of
from heedful.results import ImageTokens
from heedful.tasks.task import Task
from heedful.tasks.vision.image_batches import READERS, ImageCollate
from heedful.views.finding import Finding

NOTE = "Beside each image what the decoder draws of its tokens alone; a skill of 1 would be the image itself."
SIDE_BY_SIDE = 8  # images of a report
TOLD = 16  # tokens of an image in a table


@torch.no_grad()
def drawing_errors(model: nn.Module, samples: Sequence[Picture], learned: ImageLearned, heard: Heard) -> list[Pair]:
    """The reconstruction error of each picture, and the error of its mean colour in its place."""
    model = cast(DVAE, model)
    model.eval()
    made: list[Pair] = []
    for some in several(samples, AT_ONCE):
        images = images_of(some, model)
        wanted = model.scale(images)
        error = (precise(model(images)) - wanted).square().mean((1, 2, 3)).tolist()
        plain = (wanted - wanted.mean((2, 3), keepdim=True)).square().mean((1, 2, 3)).tolist()
        made += zip(error, plain, strict=True)
        heard(len(images))
    return made


@dataclass(frozen=True)
class Coding(VisionPipeline[ImageLearned]):
    """Image tokenizer: the visual tokens of an image, row by row."""

    @torch.no_grad()
    def results(
        self, model: nn.Module, samples: Sequence[Picture], learned: ImageLearned, heard: Heard
    ) -> list[ImageTokens]:
        model = cast(DVAE, model)
        made: list[ImageTokens] = []
        for some in several(samples, AT_ONCE):
            told = finite(model.eval().told(images_of(some, model))).flatten(2).argmax(1)
            made += [ImageTokens(tuple(row)) for row in told.tolist()]
            heard(len(some))
        return made


def table(samples: Sequence[Picture], results: Sequence[ImageTokens], learned: ImageLearned) -> Samples:
    """Images, and the first of their visual tokens."""
    each = zip(samples, results, strict=True)
    rows = tuple((one.called, " ".join(map(str, said.tokens[:TOLD])), f"{len(said.tokens)}") for one, said in each)
    return Samples("Images it never saw", ("image", f"its first {TOLD} visual tokens", "of"), rows)


@torch.no_grad()
def side_by_side(
    model: nn.Module, samples: Sequence[Picture], results: Sequence[ImageTokens], learned: ImageLearned
) -> Finding:
    """A few images, what is drawn of their tokens, and how many tokens are in use."""
    model = cast(DVAE, model)
    some = pick(samples, SIDE_BY_SIDE)
    images = images_of(some, model)
    made = model.eval()(images) * per_channel(learned.deviation, images) + per_channel(learned.mean, images)
    pixels = made.clamp(0, 1).mul(255).byte().cpu().numpy()
    skills = [f"drawn, skill {skill_of([pair]):.2f}" for pair in drawing_errors(model, some, learned, unheard)]
    each = [pair for at, one in enumerate(some) for pair in (("image", one.pixels), (skills[at], pixels[at]))]
    pictures = tuple((words, as_hwc(one)) for words, one in each)
    shown = Pictures("Images, and what is drawn of their tokens", pictures, NOTE, along=8)
    counts = torch.tensor([one.tokens for one in results]).flatten().bincount(minlength=model.spec.vocab).float()
    shares = counts / counts.sum()
    many = math.exp(-float((shares * shares.clamp(min=1e-12).log()).sum()))
    cards = ("visual tokens", f"{model.spec.vocab:,}", "known"), ("in use", f"{many:.1f}", "by their entropy, here")
    return Finding(Figures("Visual tokens", cards), "", "mean", (shown,))


def per_channel(numbers: Sequence[float], like: Tensor) -> Tensor:
    """A number for each channel as it goes with images."""
    return torch.tensor(numbers, device=like.device)[None, :, None, None]


TASK = Task(
    name="image-tokenizer",
    readers=READERS,
    fit=ImageLearned.fit,
    learned=ImageLearned,
    encode=check_pictures,
    again=again,
    collate=ImageCollate(),
    objective=DrawnTokens(),
    metrics=(ReconstructionSkill(source=drawing_errors),),
    watch="skill",
    pipeline=Coding(),
    table=table,
    views=(side_by_side,),
    families=("dvae",),
)
