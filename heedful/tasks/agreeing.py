"""Saying the same of many views of an image: a model learns to see without being told what it sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, pick, several
from heedful.data.images import Picture, Pixels
from heedful.data.images.decode import Size
from heedful.data.transforms import ResizedCrop, mixed
from heedful.errors import Refusal
from heedful.looking.overlay import Pictures
from heedful.looking.page import Example, Figures, Samples
from heedful.models.numerics import device_of, finite, precise, unit
from heedful.models.vision.dino import DINO, DINOSpec, crowding
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Label, Result, Vector
from heedful.tasks.closed import PLAIN, Terms
from heedful.tasks.images import Images, levels, pixels_of
from heedful.tasks.seen import GOES_ON, coloured, learned, overlays
from heedful.tasks.variety import Variety
from heedful.views.finding import Finding

LEAST = 0.25  # of the most that a small view shows of an image, what it shows at least
SIDE = 0.45  # of a small view, of the image's
NEIGHBOURS = 5  # that tell what a picture is
WARMTH = 0.07  # of their votes (Wu et al., 2018)
SHOWN = 6  # pictures of a report with their neighbours


class Agreeing(Images):
    """Learns to say the same of views of one image; scored by how often an image's neighbours are of its class."""

    name: ClassVar[str] = "agreeing"
    family: ClassVar[str] = "dino"
    also: ClassVar[tuple[str, ...]] = ()
    terms: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, labels: Sequence[str], size: Size, variety: Variety | None = None) -> None:
        super().__init__(labels, size, variety)
        if self.variety.mixes:
            raise Refusal(
                "data.augment mixes two images, and here views of one are to agree; leave mixup and cutmix out"
            )
        self.variety.always = True  # views are others in every epoch, whatever else is varied

    def numbers(self) -> dict[str, Any]:
        return self.sizes()

    def prepare(self, model: nn.Module) -> None:
        assert isinstance(model, DINO)
        model.alike()

    # ------------------------------------------------------------------ learning

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        assert isinstance(model, DINO)
        images = levels(batch["images"])
        dice = batch.get("dice", torch.arange(len(images), device=images.device))
        large, small = self.views(images, dice, model.spec)
        wanted = model.taught(torch.cat(large)).chunk(2)
        seen = model.student.projector.placed(model.student(torch.cat(large)))
        said = model.student.projector.compared(seen).chunk(2)
        if small:
            said = (*said, *model.student.told(torch.cat(small)).chunk(len(small)))
        logs = [(precise(one) / model.spec.student_temp).log_softmax(-1) for one in said]
        pairs = [-(one * other).sum(-1) for at, one in enumerate(wanted) for to, other in enumerate(logs) if at != to]
        crowded = torch.stack([crowding(precise(one)) for one in seen.chunk(2)])
        loss = torch.stack(pairs).mean(0) + model.spec.koleo_weight * crowded.mean(0)
        return loss.sum(), torch.full((), len(images), device=images.device)

    @torch.no_grad()
    def views(self, images: Tensor, dice: Tensor, spec: DINOSpec) -> tuple[list[Tensor], list[Tensor]]:
        """Two views of large parts of each image, and some of small ones at a smaller size, each varied by itself."""
        sides = [max(spec.patch, round(SIDE * side / spec.patch) * spec.patch) for side in images.shape[-2:]]
        large, small = (
            ResizedCrop(least=spec.global_crop_scale),
            ResizedCrop(least=LEAST * spec.global_crop_scale, most=spec.global_crop_scale),
        )
        with torch.autocast(images.device.type, enabled=False):
            made = []
            for at in range(2 + spec.local_crops):
                own = mixed(dice ^ (at + 1))
                cut = small.cut(images, own, (sides[0], sides[1])) if at >= 2 else large(images, own)
                made.append(self.variety.varied(cut, own))
        return made[:2], made[2:]

    def stepped(self, model: nn.Module, done: float, together: Callable[[Tensor], Tensor]) -> None:
        assert isinstance(model, DINO)
        model.follow(together(model.heard), done)

    def kept(self, model: nn.Module) -> nn.Module:
        return model.left() if isinstance(model, DINO) else model

    # ------------------------------------------------------------------ answering

    @torch.no_grad()
    def vectors(self, model: nn.Module, pictures: Sequence[Picture | Pixels], size: int = 250) -> Tensor:
        """What a model makes of pictures: B M."""
        model.eval()
        made = [
            model(levels(torch.from_numpy(pixels_of(some)).to(device_of(model)))) for some in several(pictures, size)
        ]
        self.tell(len(pictures))
        return finite(precise(torch.cat(made)))

    def answers(self, model: nn.Module, pictures: Sequence[Picture | Pixels], size: int = 500) -> list[Label]:
        """What the nearest others of each picture are, by their votes, and the share of the votes."""
        near, close = neighbours(self.vectors(model, pictures))
        made = []
        for places, weights in zip(near.tolist(), (close / WARMTH).exp().tolist(), strict=True):
            votes = dict.fromkeys(self.labels, 0.0)
            for at, weight in zip(places, weights, strict=True):
                one = pictures[at]
                votes[one.label if isinstance(one, Picture) else self.labels[0]] += weight
            best, all_of = max(votes, key=lambda label: votes[label]), max(1e-12, sum(votes.values()))
            made.append(Label(best, votes[best] / all_of, tuple((name, vote / all_of) for name, vote in votes.items())))
        return made

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        for group in several(read_all(inputs, self.known)):
            yield from (Vector(tuple(row)) for row in self.vectors(model, group).tolist())

    def look(self, model: nn.Module, text: str) -> Example:
        return self.looked(model, text)

    def finding(self, model: nn.Module, samples: Sequence[Picture]) -> Finding | None:
        some = list(samples[:2000])
        near, _ = neighbours(self.vectors(model, some))
        rows = [some[at] for one in range(min(SHOWN, len(some))) for at in (one, *near[one].tolist())]
        each = tuple((one.label, coloured(one.pixels)) for one in rows)
        nearest = Pictures(
            "Nearest neighbours",
            each,
            "First in each row an image, then those that it is taken to be like, the nearest first; each by its class.",
            along=1 + near.shape[1],
        )
        examples = [self.look(model, self.write_input(one)) for one in pick(samples, 3)]
        figures = Figures("What nobody named", (("neighbours", f"{NEIGHBOURS}", "vote on what an image is"), GOES_ON))
        more = [nearest, *overlays(examples), *learned(model, [example.maps for example in examples])]
        return Finding(figures, "", "mean", tuple(more))

    def show(self, model: nn.Module, samples: Sequence[Picture]) -> Samples:
        shown = super().show(model, samples)
        return Samples(shown.title, ("image", "class", "neighbours", "share"), shown.rows, shown.right)


def neighbours(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Which others are nearest to each vector, by the cosine, and how near: B N each."""
    made = unit(vectors)
    alike = made @ made.T
    alike.fill_diagonal_(-torch.inf)
    close, near = alike.topk(min(NEIGHBOURS, len(vectors) - 1), -1)
    return near, close
