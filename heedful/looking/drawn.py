"""Attention maps drawn for people: `heedful.draw(seen, tokens)`, shown in a notebook or written to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import Refusal
from heedful.looking import draw as pictures
from heedful.looking import notebook
from heedful.looking.look import Seen
from heedful.looking.maps import Map, maps_of_seen, visible
from heedful.looking.page import Example, Section

Words = Sequence[str]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Drawn attention maps: a page to explore in a notebook, and `save` for a file of any ending that `look` writes."""

    name: str
    maps: tuple[Map, ...]
    before: tuple[Section, ...] = ()  # what else there is to see, such as weights over an image

    def save(self, path: str | Path) -> Path:
        """Writes .html (to explore), .png, .svg or .json (exact numbers), as the ending says."""
        pictures.write(self.maps, path, self.name, self.before)
        return Path(path)

    def _repr_html_(self) -> str:
        return notebook.frame(self.name, [*self.before, pictures.explore(self.maps, self.name)])

    def __repr__(self) -> str:
        return f"{self.name}: {len(self.maps)} attention maps, {', '.join(map.title for map in self.maps)}"


def draw(seen: Seen | Example, tokens: Words | None = None, source: Words | None = None, item: int = 0) -> Drawn:
    """Draws attention: `with heedful.look(model) as seen: model(x)`, then `heedful.draw(seen, tokens)`.

    `tokens` are the words of one sequence of the batch, that at `item`; of a model that reads and writes those that it
    writes, and `source` those that it reads. Without words, places are numbered.
    """
    if isinstance(seen, Example):
        return Drawn(seen.name, seen.maps, seen.sections)
    if not seen.paths:
        raise Refusal("nothing was seen; call the model within `with heedful.look(model) as seen:`")

    def words_of(path: str) -> tuple[Words, Words]:
        _, q, k, _ = seen.asked(path)  # B H T D and B H S D
        if not -len(q) <= item < len(q):
            raise Refusal(f"item {item} is not in a batch of {len(q)}; choose one from 0 to {len(q) - 1}")
        reads, crosses = path.startswith("encoder"), path.endswith("cross")
        rows = source if reads and source else tokens
        columns = source if (reads or crosses) and source else tokens
        return words_or_numbers(rows, q.shape[-2]), words_or_numbers(columns, k.shape[-2])

    maps = maps_of_seen(seen, words_of, item)
    check_used(maps, {"tokens": tokens, "source": source})
    said = [" ".join(map(visible, words)) for words in (source, tokens) if words]
    return Drawn(" → ".join(said) or "What was seen", maps)


def words_or_numbers(words: Words | None, count: int) -> Words:
    """The words, or places where there are none."""
    return [str(at) for at in range(count)] if words is None else words


def check_used(maps: Sequence[Map], given: dict[str, Words | None]) -> None:
    """Refuses words of which there are more or fewer than places in every map."""
    sizes = sorted({len(words) for map in maps for words in (map.rows, map.columns)})
    for name, words in given.items():
        if words is not None and len(words) not in sizes:
            known = " or ".join(map(str, sizes))
            raise Refusal(f"{name} has {len(words)} words, and attention was over {known}; give a word for each place")
