"""Words as parts are asked for by: `"window(size=128)"`, `"rotary"`. An unknown word lists the known ones."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from heedful.errors import Refusal, unknown_word

Part = Callable[..., Any]
Entry = TypeVar("Entry")


FITTING: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "bool": (bool,), "str": (str,)}
FILLED = ("width", "heads", "hidden", "attention", "blocks", "norm", "value", "tasks")  # in, by the model
MOST = 2**63  # and so much is beyond the whole numbers of tensors
NAMED = {"True": True, "true": True, "False": False, "false": False, "None": None}  # as Python and as YAML write them
WORD = re.compile(r"\s*([^\W\d]\w*)\s*(?:\((.*)\)\s*)?", re.DOTALL)
PAIR = re.compile(  # and what stands behind it: a comma, or the end
    r"\s*([^\W\d]\w*)\s*=\s*"
    r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[Tt]rue|[Ff]alse|None|'[^'\\]*'|\"[^\"\\]*\")\s*(?:,|\Z)"
)


def parse(word: str) -> tuple[str, dict[str, Any]]:
    """A word and its arguments: "window(size=128)" -> ("window", {"size": 128}). Nothing is executed, nor compiled."""
    wrong = Refusal(f"{word!r} cannot be read; write a word, or word(key=value, ...) with plain values")
    whole = WORD.fullmatch(word)
    if not whole:
        raise wrong
    rest, at = (whole[2] or "").strip(), 0
    given: dict[str, Any] = {}
    while at < len(rest):
        pair = PAIR.match(rest, at)
        if not pair or pair[1] in given:
            raise wrong
        try:
            given[pair[1]] = parse_value(pair[2])
        except ValueError:  # a number without end, or nearly
            raise wrong from None
        at = pair.end()
    return whole[1], given


def with_arguments(word: str, **more: Any) -> str:
    """The word with more arguments, where it does not say them itself."""
    name, given = parse(word)
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in (more | given).items())})"


def parse_value(text: str) -> Any:
    """The value that a text writes: a number, a quoted text, True, False or None."""
    if text[0] in "'\"":
        return text[1:-1]
    if text in NAMED:
        return NAMED[text]
    if text.lstrip("+-").isdecimal():
        if abs(number := int(text)) >= MOST:
            raise ValueError("a number that no computer counts to")
        return number
    return float(text)


def arguments(part: Part) -> dict[str, inspect.Parameter]:
    """What a part can be given by name; tensors, which no word can write, are left to Python."""
    every = inspect.signature(part).parameters.items()
    return {key: one for key, one in every if one.kind is one.POSITIONAL_OR_KEYWORD and "Tensor" not in kind_of(one)}


def kind_of(argument: inspect.Parameter) -> str:
    """The name of an argument's type, as it is written in the part: it is not evaluated."""
    return str(getattr(argument.annotation, "__name__", argument.annotation))


def entry_named(what: str, word: str, known: Mapping[str, Entry]) -> Entry:
    """The entry of a table that a plain word names."""
    if word not in known:
        raise unknown_word(what, word, known)
    return known[word]


def choose(what: str, word: str, known: Mapping[str, Part | None], **filled: Any) -> Any:
    """The part that a word names, built with the word's arguments and those of `filled` that it takes."""
    name, given = parse(word)
    part = entry_named(what, name, known)
    if part is None:
        return None
    takes = arguments(part)
    for key, value in given.items():
        if key not in takes:
            raise unknown_word(f"argument of {what} {name!r}:", key, takes)
        kind = kind_of(takes[key])
        fitting = FITTING.get(kind.removesuffix(" | None"), (type(value),))
        if type(value) not in fitting and not (value is None and kind.endswith(" | None")):
            raise Refusal(f"{what} {word!r}: {key} should be {kind.replace('|', 'or')}, not {value!r}")
        if key in FILLED and filled.get(key, value) != value:
            raise Refusal(f"{what} {word!r}: {key} is {filled[key]} in this model; leave it out")
    every = {key: value for key, value in filled.items() if key in takes} | given
    for key, argument in takes.items():
        if argument.default is argument.empty and key not in every:
            raise Refusal(f"{what} {name!r} needs {key}; write {name}({key}=...)")
    try:
        return part(**every)
    except ValueError as error:
        raise Refusal(f"{what} {word!r}: {error}") from None
