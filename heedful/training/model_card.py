"""Model card (Mitchell et al., 2019): what a model is, its data, its scores and their spread, and whose weights it had.

It is a page for people, README.md beside the weights, and may be edited: the manifest has no sum of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.data.parallel_sample import Sides
from heedful.errors import Refusal
from heedful.formats import CARD, native
from heedful.metrics.metric import Metric, metric_of, score_text
from heedful.safe.opening import content, inside
from heedful.training.checkpoint import Progress
from heedful.training.prepare import Ready
from heedful.training.spec.run_spec import RunSpec

LARGEST = 1 << 20  # bytes of a card that is read
LICENCE = re.compile(r"license: *[\"']?([\w.+-]{1,60})[\"']? *")
SURE = 1.96  # deviations within which 95 of 100 lie
STRANGER = "and nothing says under which licence; ask whoever made them before you pass this model on"


def model_card(ready: Ready, scores: Mapping[str, float], progress: Progress) -> str:
    """The card of a model that has learned, as Markdown with the front matter of public hubs."""
    run, weights = ready.run, sum(one.numel() for one in ready.model.parameters())
    starts = [(name, licence_of(folder)) for name, folder in started_with(run)]
    licences = sorted({licence for _, licence in starts if licence})
    front = ["library_name: heedful", *(f"license: {licence}" for licence in licences[:1]), f"tags: [{run.task}]"]
    family = run.model.get("family", type(ready.model).__name__)
    parts = [
        "\n".join(["---", *front, "---"]),
        f"# {run.about.split(':')[0].rstrip('.') or run.task}",
        f"A model of the family {family} with {weights:,} weights, for the task `{run.task}`.",
        "## Data\n\n" + "\n".join(data_of(ready)),
        "## Scores\n\n" + "\n".join(score_rows(scores, len(ready.splits.test), ready.task.metrics, run.seed)),
        "## Weights that it began with\n\n" + "\n".join(map(of_start, starts) if starts else ["- By chance."]),
        "## How it was trained\n\n" + "\n".join(training_of(run, progress)),
        "Written by heedful. This page may be edited: the sums in `manifest.json` leave it out.",
    ]
    return "\n\n".join(parts) + "\n"


def data_of(ready: Ready) -> Iterator[str]:
    """What it learned from, by name and not by path, and what of that it was tested on too."""
    data, splits = ready.run.data, ready.splits
    places = [place for name in ("train", "valid", "test") if (place := getattr(data, name, None))]
    files = [name for place in places for name in file_names(place)]
    yield f"- {Path(data.name).name}" + f" ({', '.join(files)})" * bool(files)
    sizes = (("to learn from", splits.train), ("to choose by", splits.valid), ("to test on", splits.test))
    yield "- " + ", ".join(f"{len(some):,} samples {what}" for what, some in sizes)
    for one in ready.overlaps:
        yield f"- {one}: near-duplicates of what it learned from, so that the scores say less"


def file_names(place: str | Sides) -> list[str]:
    """The names of the file of a split, or of the two that belong together line by line."""
    paths = (place.source, place.target) if isinstance(place, Sides) else (place,)
    return [Path(path).name for path in paths]


def score_rows(scores: Mapping[str, float], count: int, metrics: Sequence[Metric[Any]], seed: int) -> Iterator[str]:
    """The scores as a table, each with its spread where that follows from the number of samples."""
    yield "| score | on unseen samples | 95 % interval of as many samples |\n| --- | --- | --- |"
    for name, value in scores.items():
        found = metric_of(name, metrics)
        counted = found is not None and name in found.counts_right
        between = [score_text(name, end, metrics) for end in interval(value, count)] if counted else []
        spread = " to ".join(between) or "not known"
        yield f"| {name.replace('_', ' ')} | {score_text(name, value, metrics)} | {spread} |"
    yield f"\nTested on {count:,} samples, after one run with seed {seed}: how much other seeds differ is not known."


def interval(share: float, count: int) -> tuple[float, float]:
    """Wilson's interval (1927) of a share of so many samples."""
    whole = 1 + SURE**2 / count
    middle = (share + SURE**2 / (2 * count)) / whole
    half = SURE * math.sqrt(share * (1 - share) / count + SURE**2 / (4 * count**2)) / whole
    return max(0.0, middle - half), min(1.0, middle + half)


def training_of(run: RunSpec, progress: Progress) -> Iterator[str]:
    """The numbers by which it learned."""
    told = run.training
    batch = f"{told.tokens:,} tokens" if told.tokens else f"{told.batch:,} samples"
    yield f"- {progress.step:,} steps of {batch}; the weights are those of step {progress.best_step:,}, the best of all"
    yield f"- {told.optimiser} at a rate of {told.rate:g}, {told.schedule}, weight decay {told.weight_decay:g}"
    if changes := getattr(run.data, "augment", None):
        yield f"- augmented by {', '.join(map(str, changes))}"
    if told.lora is not None or told.freeze:
        how = "by LoRA" if told.lora is not None else f"all but {', '.join(told.freeze)}"
        yield f"- part of the weights learned: {how}"
    yield "- model: " + ", ".join(f"{key}={value}" for key, value in run.model.items() if is_short(value))


def is_short(value: Any) -> bool:
    """Whether a key of a model is told in a line."""
    return isinstance(value, int | float | str) and len(str(value)) < 40


def started_with(run: RunSpec) -> Iterator[tuple[str, str]]:
    """The folders whose weights a run began with or was taught by: what each was for, and where it lies."""
    yield from run.part_starts.items()
    yield from (
        (what, folder) for what, folder in (("the whole", run.whole_start), ("its teacher", run.teacher)) if folder
    )


def of_start(start: tuple[str, str | None]) -> str:
    """A line of the weights that a run began with."""
    name, licence = start
    return f"- {name}: {f'under the licence {licence}' if licence else f'weights of others, {STRANGER}'}"


def licence_of(folder: str) -> str | None:
    """The licence that the card of a model's folder names; none where it has no card, or the card names none."""
    try:
        text = content(inside(native.model_folder(folder) / CARD), LARGEST).decode("utf-8")
    except (OSError, ValueError, Refusal):
        return None
    first, *lines = text.splitlines() or [""]
    if first != "---" or "---" not in lines:
        return None
    named = (LICENCE.fullmatch(line) for line in lines[: lines.index("---")])
    return next((one[1] for one in named if one), None)
