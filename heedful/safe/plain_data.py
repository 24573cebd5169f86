"""JSON and YAML as plain data: no key twice, no number that is none, nothing that stands for something else."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import yaml


def json_of(text: str) -> Any:
    """The value of a JSON text; a ValueError where it says a thing twice, or holds a number that is none."""
    return json.loads(text, object_pairs_hook=once, parse_constant=no_number, parse_float=number)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, where no key of it stands there twice: readers would differ in which of the two they take."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"key {twice[:60]!r} stands there twice")
    return made


def no_number(word: str) -> float:
    """Refuses NaN and Infinity, which are no JSON."""
    raise ValueError(f"{word} is no number")


def number(digits: str) -> float:
    """A number that a float can hold."""
    made = float(digits)
    if math.isinf(made):
        raise ValueError(f"{digits[:30]} is no number that can be held")
    return made


def yaml_of(text: str) -> Any:
    """The value of a YAML text of plain values."""
    loader = Plain(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


class Twice(yaml.YAMLError):
    """A key that stands twice in one mapping: readers would differ in which of the two they take."""


class Plain(yaml.SafeLoader):
    """Reads YAML without aliases: ten lines of those that repeat each other stand for more than any memory holds.

    A value that is not what its tag says (`!!int x`) is a YAMLError, as all is that cannot be read.
    """

    def compose_node(self, parent: Any, index: Any) -> Any:
        """A part of the text, where it is no alias."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has an alias (*name), which is not read; write out what that stands for")
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a part, where it is what its tag says."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            kind = node.tag.rpartition(":")[2]
            said = f"{str(node.value)[:60]!r} is no {kind}: {error}, line {node.start_mark.line + 1}"
            raise yaml.YAMLError(said) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Keys with values, where none of them stands there twice."""
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(made) < len(node.value):
            twice = Counter(str(key.value) for key, _ in node.value).most_common(1)[0][0]
            raise Twice(f"key {twice[:60]!r} stands there twice, line {node.start_mark.line + 1}")
        return made

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Leaves `<<` alone, so that it is refused: it is for aliases."""


def whole(loader: Plain, node: yaml.ScalarNode) -> int:
    """A whole number that can be written again."""
    made = yaml.SafeLoader.construct_yaml_int(loader, node)
    if made.bit_length() > 1000:
        raise yaml.YAMLError("a number has far too many digits")
    return int(made)


Plain.add_constructor("tag:yaml.org,2002:int", whole)
