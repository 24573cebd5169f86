"""Pictures of attention maps: one head, or every head of every layer in one grid.

matplotlib is imported when something is drawn: it was a sixth of what every verb waited for that loads torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from heedful.data.parallel_sample import Link
from heedful.errors import Refusal
from heedful.looking import page
from heedful.looking.figure_style import save, style
from heedful.looking.heatmap_rows import LARGE, SMALL, Band, Linked, Told
from heedful.looking.maps import Map, span_of, visible, write_json
from heedful.safe import outfile

MOST = 40  # alignments in one picture


def draw_heads(maps: Sequence[Map], what: str, path: str | Path) -> None:
    """Draws maps of one head each below each other as .png or .svg, in the same colours, with what each shows below."""
    over = span_of(maps)
    _draw([[Told(map, (0,), LARGE, what, over=over) for map in maps]], path)


def alignment(map: Map, links: Iterable[Link], path: str | Path, gold: Iterable[Link] = ()) -> None:
    """Draws the mean of a map's heads as .png or .svg: source words along the columns, target words along the rows."""
    mean = replace(map, weights=map.weights.mean(0, keepdim=True))
    alignments([(mean, links, gold)], path)


def alignments(examples: Sequence[tuple[Map, Iterable[Link], Iterable[Link]]], path: str | Path) -> None:
    """Draws alignments, each a map of one head, what was linked and what was given, below each other: .png or .svg."""
    if len(examples) > MOST:
        raise Refusal(f"{path}: {len(examples)} alignments are too many for a picture; choose {MOST}, or write .html")
    over = span_of([map for map, _, _ in examples])
    _draw([[Linked(map, (0,), LARGE, tuple(links), tuple(gold), over=over) for map, links, gold in examples]], path)


def grid(maps: Sequence[Map], path: str | Path, together: bool = False) -> None:
    """Draws all heads of all maps as .png or .svg: a row of pictures for a map, maps below and beside each other.

    The heads of a map have one scale of colours, and all maps that are compared (`together`).
    """
    over = span_of(maps) if together else None
    _draw(_shelves([Band(m, tuple(range(m.heads)), SMALL, over=over) for m in maps]), path)


def check_path(path: str | Path, endings: Iterable[str] = ()) -> None:
    """Refuses a path whose ending is none of those that can be written, or at which no file can be made."""
    ending, endings = Path(path).suffix.lower(), tuple(endings or WRITERS)
    if ending not in endings:
        raise Refusal(f"{path}: the ending {ending or '(none)'} is not known; use one of {', '.join(endings)}")
    outfile.check(path)


def write(
    maps: Sequence[Map],
    path: str | Path,
    name: str = "",
    before: Sequence[page.Section] = (),
    together: bool = False,
) -> None:
    """Writes the maps as a picture, as exact numbers or as a page to explore; the ending of `path` says which.

    A page is headed by `name`, what was asked and answered, and opens at the last cross-attention where there is one;
    sections that come `before` the maps stand on a page alone. Maps that are compared have one scale (`together`).
    """
    check_path(path)
    if not maps:
        raise Refusal(f"{path}: there is no map to write; look at a model that attends")
    ending = Path(path).suffix.lower()
    if ending == ".html":
        page.write(path, "Where the model looks", [*before, explore(maps, name, together)])
    elif ending == ".json":
        write_json(maps, path)
    else:
        grid(maps, path, together)


def explore(maps: Sequence[Map], name: str = "", together: bool = False) -> page.Attention:
    """The viewer of maps, headed by what was asked and answered, or by the words that are looked at."""
    name = name or " ".join(visible(word) for word in maps[0].columns)
    return page.Attention(name, (page.Example(name, tuple(maps)),), together=together)


WRITERS = (".png", ".svg", ".json", ".html")


def _shelves(bands: Sequence[Band]) -> list[list[Band]]:
    """Bands below each other, in as many shelves side by side as make the whole about as wide as tall."""
    height = sum(band.height for band in bands)
    strip = height / max(band.width for band in bands)
    count = int((1 + (1 + 4 * strip) ** 0.5) / 2)  # two from twice as tall as wide on, three from six times
    shelves: list[list[Band]] = [[]]
    for band in bands:
        full = sum(one.height for one in shelves[-1]) + band.height / 2 > height / count
        if full and shelves[-1] and len(shelves) < count:
            shelves.append([])
        shelves[-1].append(band)
    return shelves


def _draw(shelves: Sequence[Sequence[Band]], path: str | Path) -> None:
    from matplotlib.figure import Figure

    lefts = [max(band.left for band in bands) for bands in shelves]
    widths = [max(left - b.left + b.width for b in bands) for left, bands in zip(lefts, shelves, strict=True)]
    height, across = max(sum(band.height for band in bands) for bands in shelves), 0.0
    with style():
        figure = Figure(figsize=(sum(widths), height))
        for bands, left, width in zip(shelves, lefts, widths, strict=True):
            drawn = 0.0
            for band in bands:
                band.draw(figure, across + left, height - drawn)
                drawn += band.height
            across += width
        save(figure, path)
