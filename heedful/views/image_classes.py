"""Confusion, calibration and mistakes of a classifier of images, and what it looks at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import nn

from heedful.attention import Attention
from heedful.data.collate import pick
from heedful.data.images import Picture
from heedful.data.images.decode import as_hwc
from heedful.looking import attends, confusion
from heedful.looking.calibration import bins
from heedful.looking.overlay import Pictures
from heedful.looking.page import Section
from heedful.pipelines.attention_over_image import overlays
from heedful.pipelines.image_preprocessing import ImageClasses
from heedful.pipelines.vision_pipeline import called_class, look_at
from heedful.results import Label
from heedful.views.finding import Finding
from heedful.views.labelled_samples import LabelledSamples
from heedful.views.learned_filters import learned_of

SHOWN = 3  # pictures of a report with what the model looks at
MISTAKES = "Images it never saw: what each is, what the model said of it, and how sure of that it was."
MOST = 24  # mistakes that are shown

CLASSES = LabelledSamples("Images it never saw", "image", lambda one, learned: one.called, digits=2)


def taken_for(model: nn.Module, samples: Sequence[Picture], results: Sequence[Label], learned: ImageClasses) -> Finding:
    """What was taken for what, how sure and how often right, the worst mistakes, and what the model looks at."""
    counts = np.zeros((len(learned.labels), len(learned.labels)), dtype=np.int64)
    for one, said in zip(samples, results, strict=True):
        counts[learned.number[one.label], learned.number[said.name]] += 1
    right = [one.label == said.name for one, said in zip(samples, results, strict=True)]
    figures, table, diagram = confusion.sections(learned.labels, counts, bins([said.chance for said in results], right))
    layer = ([""] + [path for path, part in model.named_modules() if isinstance(part, Attention)])[-1]
    some = pick(list(zip(samples, results, strict=True)), SHOWN) if attends(model) else []
    examples = [look_at(model, one.as_input, learned, called_class(said)) for one, said in some]
    more: list[Section] = [table, diagram, *mistakes(samples, results), *overlays(examples)]
    more += learned_of(model, [example.maps for example in examples])
    return Finding(figures, layer, "mean", tuple(more))


def mistakes(samples: Sequence[Picture], answers: Sequence[Label]) -> tuple[Pictures, ...]:
    """The pictures of which the model was most sure and wrong, where there are some."""
    wrong = [(one, said) for one, said in zip(samples, answers, strict=True) if one.label != said.name]
    worst = sorted(wrong, key=lambda mistake: -mistake[1].chance)[:MOST]
    shown = tuple(
        (f"{one.label}, said {said.name} ({100 * said.chance:.0f} %)", as_hwc(one.pixels)) for one, said in worst
    )
    return (Pictures("Where it was most sure and wrong", shown, MISTAKES),) if shown else ()
