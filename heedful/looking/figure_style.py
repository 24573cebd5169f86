"""Our own style of figures, their colours, and how they are written: the same bytes at any time."""

from __future__ import annotations

import functools
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.safe import outfile

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


INK, QUIET, LINE = "#1c2430", "#5d6878", "#c9d0d8"


MARK = "#f2711c"  # seen on every shade of the ramp


HEAT = "inferno"  # over photographs in grey: even in lightness, and no colour of it is a grey


STYLE = {
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so that pictures are the same everywhere
    "svg.fonttype": "none",  # text stays text: searchable, and drawn with the reader's own fonts
    "svg.hashsalt": "heedful",
    "savefig.dpi": 160,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}


@functools.cache
def ramp() -> Colormap:
    """Mako, from light to dark: even steps of lightness, told apart by every kind of colour vision."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("heed", ["#f4faf7", "#60ceac", "#3497a9", "#395d9c", "#382a54"])


def save(figure: Figure, path: str | Path) -> None:
    """Writes a figure as .png or .svg, the same bytes at any time."""
    form, drawn = Path(path).suffix.lower()[1:], io.BytesIO()
    nothing = {"Software": None} if form == "png" else {"Date": None, "Creator": None}
    figure.savefig(drawn, format=form, bbox_inches="tight", pad_inches=0.2, metadata=nothing)
    outfile.write(path, drawn.getvalue())


@contextmanager
def style() -> Iterator[None]:
    """Our own style, whatever the reader's; a font without some sign draws a box and says nothing."""
    import matplotlib.style

    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield
