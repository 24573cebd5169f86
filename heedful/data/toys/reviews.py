"""Invented opinions of films: sentences that praise, blame or do neither, with words that turn others around."""

from __future__ import annotations

from random import Random
from typing import Any

from heedful.data.splits import Splits
from heedful.data.toys.distinct import unlike

GOOD = ["brilliant", "funny", "moving", "clever", "charming", "warm", "gripping", "lovely", "witty", "honest"]
BAD = ["dull", "clumsy", "boring", "silly", "hollow", "noisy", "shallow", "tired", "bland", "messy"]
PLAIN = ["long", "short", "recent", "french", "quiet", "black-and-white", "animated", "local", "silent", "two-part"]
THINGS = ["film", "plot", "script", "ending", "music", "acting", "story", "cast", "dialogue", "picture"]
BEFORE = ("", "i think", "to my mind", "as expected ,", "in the end", "say what you will ,")
TURNS = ("not", "never", "hardly", "anything but")
MORE = ("really", "rather", "quite", "very", "simply")
CLASSES = ("negative", "neutral", "positive")


def opinions(data: Any, seed: int) -> Splits[tuple[str, ...]]:
    """Sentences and their classes, no two alike; fewer are neutral than good or bad."""
    return unlike(opinion, lambda one: one[0], data, seed)


def questions_on_reviews(data: Any, seed: int) -> Splits[tuple[str, ...]]:
    """Such sentences, what is asked of each and the answer: the opinion, what it is of, and whether it is over."""
    return unlike(question, lambda one: one[0], data, seed)


def question(random: Random) -> tuple[str, ...]:
    """One sentence of a single clause, an answer, and to what."""
    words, sign = clause(random)
    answers = {"opinion": CLASSES[sign + 1], "subject": words[1], "time": {"is": "now", "was": "then"}[words[2]]}
    task = random.choice(list(answers))
    return " ".join(f"{random.choice(BEFORE)} {' '.join(words)} .".split()), answers[task], task


def opinion(random: Random) -> tuple[str, str]:
    """One sentence and its class: of two clauses joined by `but` the second says what is meant."""
    words, sign = clause(random)
    if random.random() < 0.4:
        word, (more, other) = random.choice(("but", "and")), clause(random)
        words, sign = [*words, word, *more], other if word == "but" else other or sign
    return " ".join(f"{random.choice(BEFORE)} {' '.join(words)} .".split()), CLASSES[sign + 1]


def clause(random: Random) -> tuple[list[str], int]:
    """A few words on something, and whether they praise (1), blame (-1) or do neither."""
    sign = random.choices((-1, 0, 1), (5, 2, 4))[0]
    said = random.choice((BAD, PLAIN, GOOD)[sign + 1])
    turned = random.random() < 0.3
    how = [random.choice(TURNS)] if turned else [random.choice(MORE)] if random.random() < 0.5 else []
    return ["the", random.choice(THINGS), random.choice(("is", "was")), *how, said], -sign if turned else sign
