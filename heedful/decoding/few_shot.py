"""A few examples in a prompt: a decoder that learned only to go on chooses the answer that goes on best (GPT-3)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain, takewhile, zip_longest
from typing import Any, cast

from torch import nn

from heedful.decoding.scoring import judge_answer
from heedful.errors import Refusal
from heedful.models.writer import longest, writes

Example = tuple[tuple[str, ...], str]  # one or two texts, and the answer


class Few:
    """Examples as they stand in a prompt, and the answers that there are among them."""

    def __init__(self, model: nn.Module, examples: Sequence[Example]) -> None:
        if not writes(model) or model.reads:
            family = getattr(getattr(model, "spec", None), "family", type(model).__name__)
            raise Refusal(f"--examples is for models that go on with a text, and this is a {family!r}; leave it out")
        self.model, self.examples = model, by_turns(examples)
        self.tokenizer: Any = getattr(model, "tokenizer", None)
        self.choices = sorted({answer for _, answer in self.examples})
        self.room = min(longest(model), cast(Any, model).spec.length)
        if len(self.choices) < 2:
            raise Refusal("the examples have one answer alone, so that there is nothing to choose; give another too")

    def chosen(self, texts: tuple[str, ...]) -> list[tuple[str, float]]:
        """The answers, the likeliest first, each with the log-probability of its being written next."""
        count = self.fitting(texts)
        found = [(choice, self.chance(texts, choice, count)) for choice in self.choices]
        return sorted(found, key=lambda one: -one[1])

    def fitting(self, texts: tuple[str, ...]) -> int:
        """How many of the last examples there is room for with any of the answers, so that all answers see the same."""
        most = 1
        while most < len(self.examples) and self.needed(texts, most) <= self.room:
            most *= 2
        counts = range(min(most, len(self.examples)) + 1)
        count = bisect_right(counts, self.room, key=lambda count: self.needed(texts, count)) - 1
        if count < 0:
            needed = self.needed(texts, 0)
            raise Refusal(f"{texts[0][:60]!r} and so on is {needed:,} tokens long; the model reads {self.room:,}")
        if not count:
            raise Refusal(
                f"no example has room before {texts[0][:60]!r} in the {self.room:,} tokens that the model reads; "
                "shorten the examples or what is asked"
            )
        return count

    def needed(self, texts: tuple[str, ...], count: int) -> int:
        """How many tokens a prompt with so many examples has, with the longest answer."""
        prompt = self.prompt(texts, count)
        return max(len(self.ids(f"{prompt} {choice}\n")) for choice in self.choices)

    def prompt(self, texts: tuple[str, ...], count: int) -> str:
        """The last examples, so many of them, and what is asked."""
        shown = self.examples[len(self.examples) - count :]
        return "".join(f"{example_text(*one)}\n\n" for one in shown) + example_text(texts)

    def chance(self, texts: tuple[str, ...], choice: str, count: int) -> float:
        """The log-probability of an answer and of the end of its line, behind so many examples."""
        prompt = self.prompt(texts, count)
        before, whole = (self.ids(text) for text in (prompt, f"{prompt} {choice}\n"))
        shared = alike(before, whole)
        return math.fsum(token.chance for token in judge_answer(self.model, whole[:shared], whole[shared:]))

    def ids(self, text: str) -> list[int]:
        """The ids of a text, without what a tokenizer puts behind it."""
        ids: list[int] = self.tokenizer.encode(text)
        silent = {*self.tokenizer.special.values()}
        return ids[:-1] if len(ids) > 1 and ids[-1] in silent else ids


def by_turns(examples: Sequence[Example]) -> list[Example]:
    """Examples such that the last of them, however many, are of each answer in turn, and the last ones of theirs."""
    of_each: dict[str, list[Example]] = {}
    for one in reversed(examples):
        of_each.setdefault(one[1], []).append(one)
    turns = chain.from_iterable(zip_longest(*of_each.values()))
    return [one for one in turns if one is not None][::-1]


def example_text(texts: tuple[str, ...], answer: str = "") -> str:
    """An example as it stands in a prompt, or what is asked, with no answer yet."""
    asked = "\n".join(f"Input: {' '.join(text.split())}" for text in texts)
    return f"{asked}\nAnswer: {answer}".rstrip()


def alike(one: Sequence[int], two: Sequence[int]) -> int:
    """With how many ids two rows begin alike: an answer may join with the sign before it to one token."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False))))
