"""Guessing which visual tokens stand behind hidden patches, as words behind a mask are guessed (Bao et al., 2022)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

from heedful.data.collate import Batch, pick, several
from heedful.data.images import Picture, Pixels
from heedful.data.images.decode import Size
from heedful.data.transforms import draw
from heedful.errors import Refusal
from heedful.looking.overlay import Pictures
from heedful.looking.page import Example, Figures, Samples
from heedful.models import Spec
from heedful.models.numerics import device_of, finite, precise
from heedful.models.vision.beit import BEiT, BEiTSpec
from heedful.models.vision.dvae import DVAE
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Result, Score
from heedful.tasks.closed import PLAIN, Task, Terms
from heedful.tasks.coding import Coding, shaped
from heedful.tasks.images import Images, levels, pixels_of
from heedful.tasks.rebuilding import some_can_be_hidden
from heedful.tasks.seen import GOES_ON, coloured, learned
from heedful.tasks.variety import Variety
from heedful.views.finding import Finding

HIDING = 41  # purpose of dice
COARSE = 3  # cells along the side of the noise whose heights are hidden: patches that stand together go together
SIDE_BY_SIDE = 6  # images of a report


class Guessing(Images):
    """Learns to tell hidden patches by the tokens of a discrete autoencoder; scored by the share that is right."""

    name: ClassVar[str] = "guessing"
    family: ClassVar[str] = "beit"
    also: ClassVar[tuple[str, ...]] = ()
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing"})

    def __init__(self, labels: Sequence[str], size: Size, variety: Variety | None = None) -> None:
        super().__init__(labels, size, variety)
        self.variety.always = True  # what is hidden is another in every epoch, whatever else is varied

    def numbers(self) -> dict[str, Any]:
        return self.sizes()

    def taught_by(self, teacher: nn.Module, task: Task, spec: Spec) -> None:
        if not isinstance(teacher, DVAE) or not isinstance(task, Coding) or task.size != self.size:
            raise Refusal("teacher has no visual tokens for such images; train one on the same: teacher=recipe:dvae")
        assert isinstance(spec, BEiTSpec)
        for key, value in (
            ("vocab", teacher.spec.vocab),
            ("tokenizer_width", teacher.spec.width),
            ("patch", teacher.spec.patch),
        ):
            if getattr(spec, key) != value:
                raise Refusal(f"model.{key}={getattr(spec, key)} and the teacher has {value}; set model.{key}={value}")
        self.teacher = teacher

    def suits(self, spec: Spec) -> None:
        if isinstance(spec, BEiTSpec) and not (spec.vocab and spec.tokenizer_width):
            raise Refusal(
                "visual tokens are guessed with model.vocab and model.tokenizer_width, those of the teacher; set both"
            )
        some_can_be_hidden(spec)

    def prepare(self, model: nn.Module) -> None:
        assert isinstance(model, BEiT) and model.coder is not None
        if self.teacher is None:
            raise Refusal("visual tokens are those of a teacher, and there is none; add teacher=recipe:dvae")
        model.coder.load_state_dict(self.teacher.state_dict())

    # ------------------------------------------------------------------ learning

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        images, _ = self.variety(batch)
        dice = batch.get("dice", torch.arange(len(images), device=images.device))
        said, wanted, hidden = asked(model, images, dice)
        losses = cross_entropy(said.flatten(0, 1), wanted.flatten(), reduction="none", label_smoothing=terms.smoothing)
        each = (losses.view_as(hidden) * hidden).sum(1) / hidden.sum(1)
        return each.sum(), torch.full((), len(images), device=images.device)

    # ------------------------------------------------------------------ answering

    def score(self, model: nn.Module, samples: Sequence[Picture]) -> dict[str, float]:
        found = self.shares(model, samples)
        return {"accuracy": sum(found) / max(1, len(found))}

    @torch.no_grad()
    def shares(self, model: nn.Module, pictures: Sequence[Picture | Pixels], size: int = 250) -> list[float]:
        """The share of each picture's hidden patches that is guessed; which are hidden follows from its place."""
        model.eval()
        made: list[float] = []
        for some in several(pictures, size):
            images = levels(torch.from_numpy(pixels_of(some)).to(device_of(model)))
            said, wanted, hidden = asked(model, images, self.dice(len(made), len(images), images.device))
            made += (((finite(said).argmax(-1) == wanted) & hidden).sum(1) / hidden.sum(1)).tolist()
            self.tell(len(images))
        return made

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        for group in several(read_all(inputs, self.known)):
            yield from map(Score, self.shares(model, group))

    def look(self, model: nn.Module, text: str) -> Example:
        return self.looked(model, text)

    def show(self, model: nn.Module, samples: Sequence[Picture]) -> Samples:
        rows = tuple(
            (Path(one.place).name if one.is_file else one.place, f"{100 * share:.0f} %")
            for one, share in zip(samples, self.shares(model, samples), strict=True)
        )
        return Samples("Images it never saw", ("image", "hidden tokens that were guessed"), rows)

    @torch.no_grad()
    def finding(self, model: nn.Module, samples: Sequence[Picture]) -> Finding | None:
        assert isinstance(model, BEiT) and model.coder is not None
        some = pick(samples, SIDE_BY_SIDE)
        images = levels(torch.from_numpy(pixels_of(some)).to(device_of(model)))
        said, wanted, hidden = asked(model.eval(), images, self.dice(0, len(images), images.device))
        shape = model.inputs.shape(images)
        mixed = torch.where(hidden, said.argmax(-1), wanted).unflatten(1, shape)
        kinds = {"shown": covered(images, hidden.unflatten(1, shape)), "guessed": self.drawn(model.coder, mixed)}
        kinds["image"] = images
        rows = {name: one.clamp(0, 1).mul(255).byte().cpu().numpy() for name, one in kinds.items()}
        each = tuple((name, coloured(rows[name][at])) for at in range(len(some)) for name in rows)
        note = "What is hidden is grey; the guess is drawn of visual tokens, seen ones and guessed ones."
        cards = ("patches", f"{100 * model.spec.mask_ratio:.0f} %", "of every image hidden"), GOES_ON
        examples = [self.look(model, self.write_input(one)) for one in pick(samples, 3)]
        shown = Pictures("Shown, guessed, and the image", each, note, along=2 * len(rows))
        more = [shown, *learned(model, [one.maps for one in examples])]
        return Finding(Figures("What is hidden", cards), "", "mean", tuple(more))

    def drawn(self, coder: DVAE, tokens: Tensor) -> Tensor:
        """The image of visual tokens, from 0 to 1: B h w -> B C H W."""
        scores = torch.nn.functional.one_hot(tokens, coder.spec.vocab).movedim(-1, 1).float()
        made = coder.drawn(scores)
        return made * shaped(self.deviation, made) + shaped(self.mean, made)


def asked(model: nn.Module, images: Tensor, dice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What is said of every patch (B P V), its visual token (B P), and which were hidden (B P)."""
    assert isinstance(model, BEiT) and model.coder is not None
    shape = model.inputs.shape(images)
    count = shape[0] * shape[1]
    noise = draw(dice, COARSE * COARSE, HIDING).view(-1, 1, COARSE, COARSE)
    fine = interpolate(noise, size=shape, mode="bilinear", align_corners=True).flatten(1)
    order = (fine + 1e-3 * draw(dice, count, HIDING + 1)).argsort(1)
    least = min(count - 1, max(1, round(count * model.spec.mask_ratio)))
    hidden = torch.zeros(len(images), count, dtype=torch.bool, device=images.device).scatter(1, order[:, :least], True)
    with torch.no_grad():
        wanted = model.coder.tokens(images)
    return precise(model.guess(images, hidden)), wanted, hidden


def covered(images: Tensor, hidden: Tensor) -> Tensor:
    """Images with grey in the place of hidden patches (B h w)."""
    grey = interpolate(hidden[:, None].float(), size=images.shape[-2:], mode="nearest")
    return images * (1 - grey) + 0.5 * grey
