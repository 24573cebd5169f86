"""A table of words and those nearest to them."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.looking.page import Samples
from heedful.pipelines.word_neighbours import HasWords, asked_of, names_of
from heedful.pipelines.written_text import WrittenText
from heedful.results import Neighbours


def nearest_words(samples: Sequence[HasWords], results: Sequence[Neighbours], learned: WrittenText) -> Samples:
    """A word of each sample, and those nearest to it."""
    names = names_of(learned.tokenizer)
    rows = tuple(
        (names[word], ", ".join(f"{name} {alike:.2f}" for name, alike in said.near))
        for [word], said in zip(asked_of(samples, names), results, strict=True)
    )
    return Samples("Words of texts it never saw", ("word", "nearest"), rows)
