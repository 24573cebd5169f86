"""What a temperature does to the chances of the next token: a chart of bars for each, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from heedful.looking.figure_style import INK, LINE, QUIET, ramp, save, style
from heedful.looking.maps import visible
from heedful.safe import outfile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 12  # tokens that have a bar of their own, the likeliest of all
BAR, PANEL = 0.26, 2.1  # inches: the height of a bar, the width of a chart
ENDINGS = (".png", ".svg", ".json")


def write(words: Sequence[str], chances: Mapping[float, Tensor], path: str | Path, title: str) -> None:
    """Writes the chances (V) of the next word at each temperature as a picture, or as exact numbers (.json).

    The likeliest words stand below each other, in the same order everywhere; what is left of the chances is the last
    bar.
    """
    order = next(iter(chances.values())).argsort(descending=True, stable=True)[:SHOWN].tolist()
    shown = {at: [(words[word], float(all[word])) for word in order] for at, all in chances.items()}
    if Path(path).suffix.lower() == ".json":
        rows = [{"temperature": at, "chances": dict(bars)} for at, bars in shown.items()]
        outfile.write(path, json.dumps({"text": title, "temperatures": rows}, indent=1, ensure_ascii=False) + "\n")
        return
    with style():
        figure = draw(shown, title)
        save(figure, path)


def draw(shown: Mapping[float, Sequence[tuple[str, float]]], title: str) -> Figure:
    """A chart for each temperature, of bars from the likeliest word down to all others together."""
    from matplotlib.figure import Figure

    bars = len(next(iter(shown.values()))) + 1
    figure = Figure(figsize=(PANEL * len(shown) + 1.0, BAR * bars + 0.9))
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for at, (axes, (temperature, words)) in enumerate(zip(panels, shown.items(), strict=True)):
        heights = [chance for _, chance in words]
        heights.append(max(0.0, 1.0 - sum(heights)))
        colours = [ramp()(0.65)] * len(words) + [LINE]
        axes.barh(range(bars), heights, color=colours, height=0.72)
        for place, height in enumerate(heights):
            axes.text(height + 0.02, place, percent(height), va="center", fontsize=7, color=QUIET)
        axes.set(xlim=(0.0, 1.22), ylim=(bars - 0.4, -0.6), xticks=[])
        axes.set_title(f"temperature {temperature:g}", fontsize=9, color=INK, loc="left")
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.tick_params(length=0)
        if at == 0:
            names = [*(visible(word) for word, _ in words), "all others"]
            axes.set_yticks(range(bars), names, fontsize=8, parse_math=False)
    figure.suptitle(title, fontsize=10, fontweight="bold", x=0.02, ha="left", parse_math=False)
    figure.tight_layout()
    return figure


def percent(share: float) -> str:
    """A share as it is read: 34 %, 0.2 %, or less than that."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %" if share >= 0.0005 else "< 0.1 %"
