"""Invented messages with names in them: who, where and which firm is told by what stands around."""

from __future__ import annotations

from random import Random
from typing import Any

from heedful.data.splits import Splits
from heedful.data.toys.distinct import unlike

Row = tuple[tuple[str, ...], tuple[str, ...]]  # words, and the tag of each
STARTS, MIDDLES = ("ka", "mo", "ri", "ta", "ve", "zu", "lo", "be"), ("na", "ri", "lo", "ma", "di")
ENDS = ("n", "r", "s", "l", "x")
AROUND = {  # what stands before and behind a name
    "person": (("says", "mr", "dear", "with"), ("said", "smiled", "sings", "wrote")),
    "place": (("in", "near", "to", "from"), ("today", "tonight", ",", "again")),
    "firm": (("by", "at", "buys", "sells"), ("shares", "inc", "products", "stores")),
}
FILLING = (
    "i",
    "we",
    "they",
    "saw",
    "heard",
    "the",
    "news",
    "about",
    "a",
    "new",
    "song",
    "and",
    "then",
    "it",
    "was",
    "so",
)


def mentions(data: Any, seed: int) -> Splits[Row]:
    """Messages no two of which are alike, so that most names to be found were never seen."""
    return unlike(message, lambda one: one, data, seed)


def message(random: Random) -> Row:
    """One message: words that mean little, and one to three names among them."""
    words, tags = [random.choice(FILLING)], ["O"]
    for _ in range(random.randint(1, 3)):
        kind = random.choice(sorted(AROUND))
        before, behind = AROUND[kind]
        named = [name(random) for _ in range(random.randint(1, 2))]
        words += [random.choice(before), *named, random.choice(behind)]
        tags += ["O", f"B-{kind}", *[f"I-{kind}"] * (len(named) - 1), "O"]
        for _ in range(random.randint(0, 3)):
            words, tags = [*words, random.choice(FILLING)], [*tags, "O"]
    return tuple(words), tuple(tags)


def name(random: Random) -> str:
    """A name of two or three syllables."""
    return random.choice(STARTS) + "".join(random.choices(MIDDLES, k=random.randint(1, 2))) + random.choice(ENDS)
