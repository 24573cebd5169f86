"""What a spec means: the same for every way to say it, so that two of them can be compared."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from heedful.models import part_tables, part_words
from heedful.models.blueprint import key
from heedful.models.specs import DECODER, Deep, Groups, Spec

POSITIONS = ChainMap[str, Any](part_tables.ROTARY, part_tables.POSITIONS, part_tables.GRIDS)  # type: ignore[arg-type]
WORDS: dict[str, Mapping[str, Any]] = {
    "mechanism": part_tables.ATTENTIONS,
    "join": part_tables.JOINS,
    "stack": part_tables.STACKS,
    "position": POSITIONS,
    "bias": part_tables.BIASES,
    "norm": part_tables.NORMS,
    "order": part_tables.BLOCKS,
    "feedforward": part_tables.FEEDFORWARDS,
}


def meaning(spec: Spec) -> dict[str, Any]:
    """Each key of a spec with what it stands for: numbers that are not given, and words without their arguments."""
    said = dict(spec)
    said |= {name: in_full(said[name], known) for name, known in WORDS.items() if name in said}
    if isinstance(spec, Deep):
        said["hidden"] = spec.hidden or 4 * spec.width
    if isinstance(spec, Groups):
        said |= {"key": key(spec.blueprint), "groups": spec.groups or spec.heads}
    if "input_dropout" in said:
        said["input_dropout"] = said["dropout"] if said["input_dropout"] is None else said["input_dropout"]
    if "merge_norm" in said:
        said["merge_norm"] = in_full(said["merge_norm"], part_tables.NORMS) if said["merge_norm"] else said["norm"]
    if "leading" in said:
        said["leading"] = spec.first  # type: ignore[attr-defined]
    return said | {name: said[name] or said[other] for name, other in DECODER.items() if name in said}


def in_full(word: str, known: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A word with all arguments of its part, those that it does not give by their defaults."""
    name, given = part_words.parse(word)
    takes = part_words.arguments(known[name]) if known.get(name) else {}
    defaults = {key: one.default for key, one in takes.items() if one.default is not one.empty}
    return name, defaults | given
