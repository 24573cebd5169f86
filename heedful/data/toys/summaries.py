"""Invented news: a few reports, one of them marked as what matters, and a headline that says just that."""

from __future__ import annotations

from random import Random
from typing import Any

from heedful.data.parallel_sample import Pair
from heedful.data.splits import Splits
from heedful.data.toys.distinct import unlike

WHO = ("anna", "ben", "carla", "dora", "emil", "finn", "greta", "hugo")
DID = ("bought", "sold", "lost", "found", "painted", "repaired")
HOW = ("a small", "an old", "a red", "a very nice", "another")
WHAT = ("boat", "house", "bicycle", "piano", "bridge", "kite", "garden", "radio")
WHEN = ("on monday", "last week", "in the morning", "as planned", "before noon")
MARK = "most of all ,"


def news(data: Any, seed: int) -> Splits[Pair]:
    """Reports and their headlines, no two reports alike."""
    return unlike(report, lambda one: one.source, data, seed)


def report(random: Random) -> Pair:
    """Two or three things that happened, and a headline for the one that is marked."""
    many = random.randint(2, 3)
    marked, sentences, headline = random.randrange(many), [], ""
    for at in range(many):
        who, did, what = random.choice(WHO), random.choice(DID), random.choice(WHAT)
        said = f"{who} {did} {random.choice(HOW)} {what} {random.choice(WHEN)} ."
        sentences.append(f"{MARK} {said}" if at == marked else said)
        headline = f"{who} {did} {what}" if at == marked else headline
    return Pair(" ".join(sentences), headline)
