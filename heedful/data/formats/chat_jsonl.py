"""Conversations: JSON lines of messages, each with who speaks and what is said; or small talk made on the fly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from heedful.data import line_files
from heedful.data.line_files import object_of
from heedful.data.parallel_sample import Sides
from heedful.errors import Refusal

HOW = '{"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}'
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
GREETINGS = ("hello , i am", "it is me ,", "this is", "good day from", "here is")
FIRST, LAST = ("an", "be", "do", "em", "gre", "hu", "jo", "li"), ("na", "ra", "lo", "ta", "mi", "go", "sa")
OPPOSITES = {"big": "small", "hot": "cold", "old": "new", "dark": "light", "fast": "slow", "wet": "dry", "up": "down"}


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation: the turns of a user and the answers, and where it was read."""

    turns: tuple[tuple[str, str], ...]
    path: str = ""
    line: int = 0

    @property
    def opening(self) -> str:
        """What the user says first; who was asked the same before knows the answer."""
        return self.turns[0][0]

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.path}, line {self.line}" if self.line else "a sample"


def read_dialogues(place: str | Sides) -> list[Dialogue]:
    """The conversations of a file."""
    if isinstance(place, Sides):
        raise Refusal("conversations are read from one file, not from a source and a target; give data=FILE")
    path = Path(place)
    lines = [(number, line) for number, line in enumerate(line_files.lines(path), 1) if line.strip()]
    return [
        Dialogue(turns(object_of(line, path, number), f"{path}, line {number}"), str(path), number)
        for number, line in lines
    ]


def turns(row: dict[str, Any], where: str) -> tuple[tuple[str, str], ...]:
    """The turns of an object that stands somewhere; what a system says stands before what the user says first."""
    said = row.get("messages")
    whole = isinstance(said, list) and all(isinstance(one, dict) for one in said)
    parts: list[Any] = [(one.get("role"), one.get("content")) for one in said or ()] if whole else []
    if not parts or not all(isinstance(text, str) and text.strip() for _, text in parts):
        raise Refusal(f"{where}: write {HOW}")
    if parts[0][0] == "system" and len(parts) > 1:
        parts = [(parts[1][0], f"{parts[0][1]}\n{parts[1][1]}"), *parts[2:]]
    for at, (role, _) in enumerate(parts):
        wanted = ("user", "assistant")[at % 2]
        if role != wanted:
            raise Refusal(f"{where}: message {at + 1} is of {role!r} and should be of {wanted!r}; mend it")
    if len(parts) % 2:
        raise Refusal(f"{where}: the last message has no answer; add one or drop it")
    return tuple((parts[at][1], parts[at + 1][1]) for at in range(0, len(parts), 2))


def smalltalk(random: Random) -> Dialogue:
    """A conversation of one to three turns."""
    return Dialogue(tuple(turn(random) for _ in range(random.randint(1, 3))))


def turn(random: Random) -> tuple[str, str]:
    """A question of somebody, and the answer."""
    who, kind = f"{random.choice(FIRST)}{random.choice(LAST)}", random.randrange(3)
    asked, said = question(random, kind)
    return f"{random.choice(GREETINGS)} {who} , {asked} ?", f"{said} , {who} ."


def question(random: Random, kind: int) -> tuple[str, str]:
    """A small sum, an opposite or what comes next, and its answer."""
    if kind == 0:
        one, two = random.randint(0, 5), random.randint(0, 5)
        return f"how much is {NUMBERS[one]} and {NUMBERS[two]}", f"it is {NUMBERS[one + two]}"
    if kind == 1:
        word, other = random.choice(sorted(OPPOSITES.items()))
        return f"what is not {word}", f"what is {other}"
    at = random.randint(1, 9)
    return f"what comes after {NUMBERS[at]}", f"then comes {NUMBERS[at + 1]}"
