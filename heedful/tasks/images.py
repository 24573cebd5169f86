"""Of which class an image is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from heedful.attention import Attention
from heedful.data.collate import Batch, pick, several
from heedful.data.images import Picture, Pixels
from heedful.data.splits import Splits
from heedful.decoding.steps import answering
from heedful.errors import Refusal
from heedful.looking import attends, confusion, look
from heedful.looking.calibration import bins
from heedful.looking.page import Example, Samples, Section
from heedful.models import Spec
from heedful.models.numerics import device_of, finite, precise
from heedful.models.vision.autoformer_nas import AutoFormerSpec
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Label, Result
from heedful.tasks.closed import PLAIN, Task, Terms
from heedful.tasks.pictured import Pictured, levels, pixels_of
from heedful.tasks.seen import learned, maps_of, mistakes, over, overlays
from heedful.tasks.teaching import judged, taught
from heedful.views.finding import Finding

__all__ = ["Images", "levels", "pixels_of"]

SHOWN = 3  # pictures of a report with what the model looks at


class Images(Pictured):
    """Says of an image of which class it is; scored by the share that is right."""

    name: ClassVar[str] = "images"
    family: ClassVar[str] = "vit"
    also: ClassVar[tuple[str, ...]] = ("beit", "convit", "autoformer", "swin", "resnet", "lenet")
    watch: ClassVar[str] = "accuracy"
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing"})

    def numbers(self) -> dict[str, Any]:
        return {**self.sizes(), "classes": len(self.labels), "labels": list(self.labels)}

    def suits(self, spec: Spec) -> None:
        if isinstance(spec, AutoFormerSpec) and spec.searched:
            raise Refusal(
                "model.widths, depths, many_heads and many_hidden are to choose among, and one model is learned here; "
                "leave them out, or choose with `heedful train autoformer`"
            )

    def noted(self, splits: Splits[Picture]) -> str:
        if "classes" not in self.numbers():  # none is learned
            return ""
        return confusion.balance((one.label for one in splits.train), "the report, class by class")

    # ------------------------------------------------------------------ learning

    def taught_by(self, teacher: nn.Module, task: Task, spec: Spec) -> None:
        if not getattr(spec, "distilled", False):
            raise Refusal("teacher wants a model with a token that is taught; set model.distilled=true (family vit)")
        same = isinstance(task, Images) and (task.labels, task.size) == (self.labels, self.size)
        if type(task) is not type(self) or not same:
            raise Refusal("teacher has learned other classes or sizes of images; train it on the same data")
        self.teacher = teacher

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        images, share = self.variety(batch)
        if self.teacher is None:
            losses = judged(precise(model(images)), batch, share, terms.smoothing)
        else:
            losses = taught(model, self.teacher, images, batch, share, terms.smoothing)
        return losses.sum(), torch.full((), len(images), device=images.device)

    # ------------------------------------------------------------------ answering

    def score(self, model: nn.Module, samples: Sequence[Picture]) -> dict[str, float]:
        right = [one.label == said.name for one, said in zip(samples, self.answers(model, samples), strict=True)]
        return {"accuracy": sum(right) / max(1, len(right))}

    def answers(self, model: nn.Module, pictures: Sequence[Picture | Pixels], size: int = 500) -> list[Label]:
        """The likeliest class of each picture and its chance."""
        made: list[Label] = []
        with answering(model) as running:
            for some in several(pictures, size):
                images = levels(torch.from_numpy(pixels_of(some)).to(device_of(model)))
                chances = finite(precise(running(images))).softmax(-1).cpu()
                made += [Label.among(self.labels, row) for row in chances]
                self.tell(len(chances))
        return made

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        for group in several(read_all(inputs, self.known)):
            yield from self.answers(model, group)

    @torch.no_grad()
    def look(self, model: nn.Module, text: str) -> Example:
        if not attends(model):
            raise Refusal(f"a {model.spec.family} has no attention to look into; ask it with `heedful predict`")  # type: ignore[union-attr]
        said = self.answers(model, [self.known(text)])[0]
        return self.looked(model, text, f" → {said.name} ({100 * said.chance:.0f} %)")

    @torch.no_grad()
    def looked(self, model: nn.Module, text: str, said: str = "") -> Example:
        """Where a model looks in a picture, and what it says of it."""
        images = levels(torch.from_numpy(self.known(text))[None].to(device_of(model)))
        model.eval()
        with look(model) as seen:
            model(images)
        shown = maps_of(model, seen, images)
        return Example(f"{self.called(text)}{said}", shown, sections=over(self.large(text), shown, model, images))

    def show(self, model: nn.Module, samples: Sequence[Picture]) -> Samples:
        answers = self.answers(model, samples)
        rows = tuple(
            (Path(one.place).name if one.is_file else one.place, one.label, said.name, f"{said.chance:.2f}")
            for one, said in zip(samples, answers, strict=True)
        )
        right = tuple(label == answer for _, label, answer, _ in rows)
        return Samples("Images it never saw", ("image", "class", "said", "chance"), rows, right)

    def finding(self, model: nn.Module, samples: Sequence[Picture]) -> Finding | None:
        counts = np.zeros((len(self.labels), len(self.labels)), dtype=np.int64)
        answers = self.answers(model, samples)
        for one, said in zip(samples, answers, strict=True):
            counts[self.numbered[one.label], self.numbered[said.name]] += 1
        right = [one.label == said.name for one, said in zip(samples, answers, strict=True)]
        figures, table, diagram = confusion.told(self.labels, counts, bins([said.chance for said in answers], right))
        layer = ([""] + [path for path, part in model.named_modules() if isinstance(part, Attention)])[-1]
        examples = [self.look(model, self.write_input(one)) for one in pick(samples, SHOWN)] if attends(model) else []
        more: list[Section] = [table, diagram, *mistakes(samples, answers), *overlays(examples)]
        more += learned(model, [example.maps for example in examples])
        return Finding(figures, layer, "mean", tuple(more))
