"""Plots for chapters and notebooks: colours that every reader can tell apart, and heat maps with numbers in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from heedful.looking.figure_style import STYLE, ramp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage

# Okabe and Ito's, told apart by every kind of colour vision, and seen on white as on black.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
PAPER = "#fefefe"  # what figures are drawn on: near white, so that it can be told from white in a picture

PLOTS = {
    **STYLE,
    "svg.fonttype": "path",  # so that a page looks the same whatever fonts its reader has
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "axes.facecolor": "none",
    "axes.labelcolor": STYLE["text.color"],
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 2.0,
    "figure.constrained_layout.use": True,
}


def heatmap(
    axes: Axes,
    values: Tensor,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    limits: tuple[float, float] | None = None,
    numbers: str = "",
    colours: Colormap | str | None = None,
) -> AxesImage:
    """Heat map of a matrix with words on both axes; `numbers`, such as ".2f", writes each value into its cell.

    Maps that are compared are given the same `limits`; without them a map spans its own values.
    """
    values = values.detach().float().cpu()
    low, high = limits or (float(values.min()), float(values.max()))
    image = axes.imshow(values.numpy(), ramp() if colours is None else colours, vmin=low, vmax=high)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if numbers:
        write_numbers(axes, image, values, numbers)
    return image


def write_numbers(axes: Axes, image: AxesImage, values: Tensor, form: str) -> None:
    """Writes each value into its cell, black on what is light and white on what is dark."""
    for row, line in enumerate(values.tolist()):
        for column, value in enumerate(line):
            red, green, blue, _ = image.cmap(image.norm(value))
            ink = "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "white"
            shown = float(format(value, form)) + 0.0  # so that no zero has a sign
            axes.text(column, row, format(shown, form), ha="center", va="center", fontsize=8, color=ink)
