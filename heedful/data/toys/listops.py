"""ListOps: nested lists with an operation each, whose value is asked for, made to Long Range Arena's definition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.formats.labelled_line import Line
from heedful.data.lazy_samples import check_size
from heedful.data.splits import Splits
from heedful.errors import Refusal

DIGITS = 10
OPERATIONS = ("[MIN", "[MAX", "[MED", "[SM")  # least, greatest, middle, sum modulo 10
WORDS = (*map(str, range(DIGITS)), *OPERATIONS, "]")
CLOSE = len(WORDS) - 1
NESTED = 0.25  # the chance of a list where a number could stand
DEEPEST, FEWEST, MOST = 10, 2, 10  # lists within lists, the outermost counted; and the arguments of each
AT_ONCE = 40_000  # expressions that are drawn together; most are too short or too long
TRIES = 400  # such draws

Whole = NDArray[np.int64]


@dataclass
class Level:
    """All that stands at one depth of many expressions: whose, how many arguments (0: a number), which operation."""

    tree: Whole
    arguments: Whole
    code: Whole  # a digit, or the operation's place among the words

    def of(self, kept: NDArray[np.bool_]) -> Level:
        """The same of some expressions alone, which are numbered anew."""
        there, number = kept[self.tree], kept.cumsum() - 1
        return Level(number[self.tree[there]], self.arguments[there], self.code[there])

    @property
    def lists(self) -> NDArray[np.bool_]:
        """Which of them are lists."""
        return self.arguments > 0

    @property
    def starts(self) -> Whole:
        """Where the arguments of each list begin, one level down."""
        counts = self.arguments[self.lists]
        return counts.cumsum() - counts


def listops(data: Any, seed: int) -> Splits[Line]:
    """Expressions of `shortest` to `longest` signs and their values, each once (Nangia and Bowman, 2018).

    As Long Range Arena makes them (Tay et al., 2021), where lengths are 501 to 1,999: brackets are counted.
    """
    valid, test = max(data.held_out // 4, 1), data.held_out
    check_size(data, data.longest * (count := valid + test + data.samples))
    lines = make_lines(count, data.shortest, data.longest, seed)
    return Splits(lines[valid + test :], lines[:valid], lines[valid : valid + test])


@lru_cache(maxsize=1)  # a hundred thousand long ones take half a minute
def make_lines(count: int, shortest: int, longest: int, seed: int) -> tuple[Line, ...]:
    """So many expressions, no two alike."""
    random, found = np.random.default_rng([seed, 5]), dict[bytes, int]()
    for _ in range(TRIES):
        found |= {signs.tobytes(): value for signs, value in draw_expressions(random, shortest, longest)}
        if len(found) >= count:
            kept = islice(found.items(), count)
            return tuple(Line(np.frombuffer(signs, np.uint8), str(value)) for signs, value in kept)
    raise Refusal(
        f"only {len(found):,} expressions of {shortest} to {longest} signs were found, not {count:,}; "
        "widen data.shortest and data.longest, or lower data.samples and data.held_out"
    )


def draw_expressions(random: np.random.Generator, shortest: int, longest: int) -> list[tuple[NDArray[np.uint8], int]]:
    """Some expressions whose length fits, as places among the words, and their values."""
    levels, lengths = grow_expressions(random, longest)
    kept = (lengths >= shortest) & (lengths <= longest)
    levels = [level.of(kept) for level in levels]
    sizes, values = sizes_and_values(levels)
    signs, ends = laid_out(levels, sizes), sizes[0].cumsum()
    return list(zip(np.split(signs, ends[:-1]), values.tolist(), strict=True)) if len(ends) else []


def grow_expressions(random: np.random.Generator, longest: int) -> tuple[list[Level], Whole]:
    """Many expressions, level by level, and how long each is; one that is too long already grows no further."""
    lengths, levels = np.zeros(AT_ONCE, dtype=np.int64), list[Level]()
    tree = np.arange(AT_ONCE)
    for depth in range(1, DEEPEST + 1):
        nested = (random.random(len(tree)) < NESTED) & (depth < DEEPEST) & (lengths[tree] <= longest)
        arguments = np.where(nested, random.integers(FEWEST, MOST + 1, len(tree)), 0)
        operation = DIGITS + random.integers(0, len(OPERATIONS), len(tree))
        code = np.where(nested, operation, random.integers(0, DIGITS, len(tree)))
        levels.append(Level(tree, arguments, code))
        lengths += np.bincount(tree, 1 + nested, AT_ONCE).astype(np.int64)
        tree = np.repeat(tree, arguments)
    return levels, lengths


def sizes_and_values(levels: list[Level]) -> tuple[list[Whole], Whole]:
    """How many signs each part of the expressions takes, level by level, and the value of each expression."""
    sizes: list[Whole] = []
    below = np.zeros(0, dtype=np.int64)
    for level in reversed(levels):
        size, value = np.ones(len(level.tree), dtype=np.int64), level.code.copy()
        if level.lists.any():
            counts, starts = level.arguments[level.lists], level.starts
            size[level.lists] = 2 + np.add.reduceat(sizes[0], starts)
            value[level.lists] = worked_out(level.code[level.lists] - DIGITS, below, starts, counts)
        sizes, below = [size, *sizes], value
    return sizes, below


def worked_out(operation: Whole, arguments: Whole, starts: Whole, counts: Whole) -> Whole:
    """The value of each list: the median of an even number of them is the mean of two, rounded down."""
    order = np.lexsort((arguments, np.repeat(np.arange(len(counts)), counts)))
    inner = arguments[order]
    middle = (inner[starts + (counts - 1) // 2] + inner[starts + counts // 2]) // 2
    least, greatest = inner[starts], inner[starts + counts - 1]
    return np.choose(operation, (least, greatest, middle, np.add.reduceat(arguments, starts) % 10))


def laid_out(levels: list[Level], sizes: list[Whole]) -> NDArray[np.uint8]:
    """All expressions one behind the other, sign by sign."""
    signs = np.zeros(int(sizes[0].sum()), dtype=np.uint8)
    at = sizes[0].cumsum() - sizes[0]
    for depth, level in enumerate(levels):
        signs[at] = level.code
        signs[(at + sizes[depth] - 1)[level.lists]] = CLOSE
        if not level.lists.any():
            break
        inner = sizes[depth + 1]
        before = inner.cumsum() - inner  # of all that stand at this level, in one row
        counts = level.arguments[level.lists]
        at = np.repeat(at[level.lists] + 1 - before[level.starts], counts) + before
    return signs
