"""Accuracy against compute: vision transformers, hybrids and ResNets of several sizes, each trained for one budget.

As the lectures plot it (Dosovitskiy et al., 2021). On a GPU on CIFAR-10, else on shapes that are drawn here; each run
is kept under runs/vision, and one that is finished there is not trained again. The picture is runs/vision/vision.png.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.training import run, run_folder
from heedful.training.spec import recipes

OUT = Path("runs") / "vision"
STEPS = {"cuda": 1500, "cpu": 150}
LARGE = [  # what else CIFAR-10 wants, the recipes know
    *("data=cifar10", "data.augment=[flip, crop(padding=4), trivial]", "training.batch=512", "training.threads=0"),
    *("training.average=0.99", "training.evaluate_every=500", "training.save_every=1500", "training.log_every=250"),
]
SMALL = [
    *(
        "data=toy",
        "training.average=0.99",
        "training.warmup=50",
        "objective.smoothing=0.1",
        "training.weight_decay=0.05",
    ),
    "training.evaluate_every=75",
]
WIDTHS: dict[str, dict[str, tuple[int, ...]]] = {
    "cuda": {"vit": (128, 256, 384), "resnet": (16, 32, 64)},
    "cpu": {"vit": (24, 48), "resnet": (6, 12)},
}


@dataclass(frozen=True)
class Point:
    """One network: its kind, its name, its weights, what learning cost, and what it came to."""

    kind: str
    name: str
    weights: int
    operations: float
    accuracy: float


@dataclass(frozen=True)
class Plot:
    """All networks, as a table for people, as JSON and as a picture."""

    points: tuple[Point, ...]
    picture: Path

    def table(self, base: str) -> str:
        """A line each, the cheapest first."""
        lines = [f"accuracy against training FLOPs; drawn in {self.picture}"]
        for one in sorted(self.points, key=lambda one: one.operations):
            lines.append(
                f"  {one.name:24s} {one.weights:12,} weights {one.operations:10.2e} FLOPs  {100 * one.accuracy:6.2f} %"
            )
        return "\n".join(lines)

    def to_json(self, base: str) -> dict[str, Any]:
        """The same as JSON's own types."""
        return {"case": "accuracy against compute", "points": [vars(one) for one in self.points]}

    def draw(self) -> None:
        """A line for each kind of network."""
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullLocator

        from heedful.looking.figure_style import style

        with style():
            figure = Figure(figsize=(5.2, 3.6))
            axes = figure.subplots()
            for kind in dict.fromkeys(one.kind for one in self.points):
                some = sorted((one for one in self.points if one.kind == kind), key=lambda one: one.operations)
                axes.plot([one.operations for one in some], [100 * one.accuracy for one in some], "o-", label=kind)
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=(9, 9)))  # label all of them
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlabel("training FLOPs")
            axes.set_ylabel("test images right, %")
            axes.legend(frameon=False)
            figure.savefig(self.picture, bbox_inches="tight", metadata={"Software": None})


def networks(place: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """The kind, the name, the recipe and its changes, of every network."""
    heads = {24: 2, 48: 4, 128: 4, 256: 4, 384: 6}
    for width in WIDTHS[place]["vit"]:
        sizes = [f"model.width={width}", f"model.heads={heads[width]}", f"model.hidden={2 * width}", "model.pool=mean"]
        more = ["model.depth=6", "training.graphs=true"] if place == "cuda" else ["training.optimiser=muon"]
        for kind, stem in (("vit", "convolution"), ("hybrid", "resnet")):
            yield kind, f"{kind}-{width}", "vit", [*sizes, *more, f"model.stem={stem}"]
    for width in WIDTHS[place]["resnet"]:
        more = [] if place == "cuda" else ["training.rate=0.005"]
        yield "resnet", f"resnet-{width}", "resnet", [f"model.width={width}", *more]


def cases(rounds: int, said: Callable[[], object]) -> Iterator[tuple[Plot, str]]:
    """One plot of all networks; how often is not asked, for each is trained once."""
    place = run.device()
    changes = [*(LARGE if place.type == "cuda" else SMALL), f"training.steps={STEPS[place.type]}"]
    points = []
    for kind, name, recipe, sizes in networks(place.type):
        out = OUT / name
        found = run.train(recipes.resolve(recipe, [*changes, *sizes]), out, (out / run_folder.SPEC).exists(), place)
        score = found["scores"]["accuracy"]
        points.append(Point(kind, name, found["weights"], float(found["operations"]), score))
        said()
    plot = Plot(tuple(points), OUT / "vision.png")
    plot.draw()
    yield plot, ""
