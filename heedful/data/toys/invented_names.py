"""Invented names: of which language a name is, is told by the sound it begins with, however long it goes on."""

from __future__ import annotations

from random import Random
from typing import Any

from heedful.data.splits import Splits
from heedful.data.toys.distinct import unlike

BEGIN = {"Alvish": ("al", "el", "or"), "Brunic": ("br", "gr", "dr"), "Cintan": ("ci", "za", "xi")}
SOUNDS = ("ba", "do", "fi", "ka", "lu", "me", "no", "pe", "ri", "so", "tu", "va")


def invented_names(data: Any, seed: int) -> Splits[tuple[str, str]]:
    """Names of one to four syllables behind their first sound, each with its language."""
    return unlike(invent_name, lambda one: one[0], data, seed)


def invent_name(random: Random) -> tuple[str, str]:
    """One of them."""
    language = random.choice(list(BEGIN))
    rest = "".join(random.choice(SOUNDS) for _ in range(random.randint(1, 4)))
    return (random.choice(BEGIN[language]) + rest).capitalize(), language
