"""Masked image modelling (BEiT): a model predicts the visual tokens of hidden patches, as BERT predicts words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from heedful.data.collate import pick, several
from heedful.data.images import Picture
from heedful.data.images.decode import as_hwc
from heedful.data.sample_dice import steady_dice
from heedful.errors import Refusal
from heedful.looking.overlay import Pictures
from heedful.looking.page import Figures, Samples
from heedful.metrics.accuracy import HiddenAccuracy
from heedful.models import Spec
from heedful.models.numerics import device_of, finite
from heedful.models.vision.beit import BEiT
from heedful.models.vision.dvae import DVAE
from heedful.objectives.masked_patches import MaskedTokens, guess_tokens
from heedful.pipelines.pipeline import Heard
from heedful.pipelines.vision_pipeline import AT_ONCE, VisionPipeline, images_of, look_at
from heedful.results import Score
from heedful.tasks.vision.image_tokenizer import per_channel
from heedful.tasks.vision.masked_autoencoding import TASK as REBUILDING
from heedful.tasks.vision.masked_autoencoding import MaskedLearned
from heedful.views.finding import Finding
from heedful.views.learned_filters import GOES_ON, learned_of

SIDE_BY_SIDE = 6  # images of a report


@dataclass(frozen=True)
class TokensLearned(MaskedLearned):
    """Images whose hidden patches are predicted as the tokens of another model."""

    def suited(self, spec: Spec) -> Self:
        if not all(getattr(spec, key, None) for key in ("vocab", "tokenizer_width")):
            raise Refusal(
                "visual tokens are guessed with model.vocab and model.tokenizer_width, those of the teacher; set both"
            )
        return super().suited(spec)


@dataclass(frozen=True)
class Guessing(VisionPipeline[TokensLearned]):
    """Masked image modelling: the share of an image's hidden patches that is guessed; its place says which are."""

    @torch.no_grad()
    def results(
        self, model: nn.Module, samples: Sequence[Picture], learned: TokensLearned, heard: Heard
    ) -> list[Score]:
        model.eval()
        made: list[Score] = []
        for some in several(samples, AT_ONCE):
            dice = steady_dice(len(made), len(some), device_of(model))
            said, wanted, hidden = guess_tokens(model, images_of(some, model), dice)
            right = ((finite(said).argmax(-1) == wanted) & hidden).sum(1) / hidden.sum(1)
            made += map(Score, right.tolist())
            heard(len(some))
        return made


def table(samples: Sequence[Picture], results: Sequence[Score], learned: TokensLearned) -> Samples:
    """Images, and how much of what was hidden of them was guessed."""
    rows = tuple((one.called, f"{100 * said.value:.0f} %") for one, said in zip(samples, results, strict=True))
    return Samples("Images it never saw", ("image", "hidden tokens that were guessed"), rows)


@torch.no_grad()
def side_by_side(model: nn.Module, samples: Sequence[Picture], results: Any, learned: TokensLearned) -> Finding:
    """A few images as they were shown, drawn of what was guessed, and as they are."""
    model = cast(BEiT, model)
    assert model.coder is not None
    some = pick(samples, SIDE_BY_SIDE)
    images = images_of(some, model)
    said, wanted, hidden = guess_tokens(model.eval(), images, steady_dice(0, len(images), images.device))
    shape = model.inputs.shape(images)
    mixed = torch.where(hidden, said.argmax(-1), wanted).unflatten(1, shape)
    kinds = {"shown": cover(images, hidden.unflatten(1, shape)), "guessed": draw(model.coder, mixed, learned)}
    kinds["image"] = images
    rows = {name: one.clamp(0, 1).mul(255).byte().cpu().numpy() for name, one in kinds.items()}
    each = tuple((name, as_hwc(rows[name][at])) for at in range(len(some)) for name in rows)
    note = "What is hidden is grey; the guess is drawn of visual tokens, seen ones and guessed ones."
    cards = ("patches", f"{100 * model.spec.mask_ratio:.0f} %", "of every image hidden"), GOES_ON
    examples = [look_at(model, one.as_input, learned) for one in pick(samples, 3)]
    shown = Pictures("Shown, guessed, and the image", each, note, along=2 * len(rows))
    more = [shown, *learned_of(model, [one.maps for one in examples])]
    return Finding(Figures("What is hidden", cards), "", "mean", tuple(more))


def draw(coder: DVAE, tokens: Tensor, learned: TokensLearned) -> Tensor:
    """The image of visual tokens, from 0 to 1: B h w -> B C H W."""
    scores = torch.nn.functional.one_hot(tokens, coder.spec.vocab).movedim(-1, 1).float()
    made = coder.drawn(scores)
    return made * per_channel(learned.deviation, made) + per_channel(learned.mean, made)


def cover(images: Tensor, hidden: Tensor) -> Tensor:
    """Images with grey in the place of hidden patches (B h w)."""
    grey = interpolate(hidden[:, None].float(), size=images.shape[-2:], mode="nearest")
    return images * (1 - grey) + 0.5 * grey


TASK = replace(
    REBUILDING,
    name="masked-image-modelling",
    fit=TokensLearned.fit,
    learned=TokensLearned,
    objective=MaskedTokens(),
    metrics=(HiddenAccuracy(),),
    watch="accuracy",
    pipeline=Guessing(),
    table=table,
    views=(side_by_side,),
    families=("beit",),
)
