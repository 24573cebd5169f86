"""Invented facts: texts of who lives, works and was born where, and questions that they answer."""

from __future__ import annotations

from random import Random

from heedful.data.formats.squad import Question

WHO = ("anna", "ben", "carla", "dora", "emil", "finn", "greta", "hugo", "ida", "jan")
DOES = {"lives in": "live", "works in": "work", "was born in": "come from"}
WHERE = ("aston", "bremen", "cairo", "dublin", "essen", "florence", "geneva", "hull", "izmir", "jena")


def fact(random: Random) -> Question:
    """One text and a question about it."""
    who, where, verbs = random.choice(WHO), random.sample(WHERE, len(DOES)), random.sample(sorted(DOES), len(DOES))
    context = " ".join(f"{who} {verb} {place} ." for verb, place in zip(verbs, where, strict=True))
    at = random.randrange(len(verbs))
    return Question(f"where does {who} {DOES[verbs[at]]} ?", context, ((where[at], context.index(where[at])),))
