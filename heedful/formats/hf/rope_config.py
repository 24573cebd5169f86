"""Rotary positions as configs say them, in older files and in newer ones."""

from __future__ import annotations

from typing import Any

from heedful.formats.foreign_config import Config
from heedful.models.part_tables import ROTARY
from heedful.models.part_words import arguments, parse

BY_PARTS = {  # our arguments, and what Llama 3's configs call them
    "stretch": "factor",
    "slow": "low_freq_factor",
    "fast": "high_freq_factor",
    "length": "original_max_position_embeddings",
}
KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "default": ("rotary", {}),
    "linear": ("rotary", {"stretch": "factor"}),
    "llama3": ("rotary_by_parts", BY_PARTS),
}


def position(config: Config) -> str:
    """The word of the position: of `rope_parameters`, or of `rope_theta` and `rope_scaling`."""
    config.only("partial_rotary_factor", 1.0)
    theta, scaling = config.number("rope_theta", 10_000.0), config.take("rope_scaling", None)
    told = config.take("rope_parameters", None) or scaling or {}
    key = "rope_parameters" if config.values.get("rope_parameters") else "rope_scaling"
    if not isinstance(told, dict):
        raise config.refusal(key, "it should be an object")
    said = Config({"rope_theta": theta, **told}, f"{config.where}: {key}")
    kind = said.take("rope_type", None) or said.take("type", "default")
    word, names = said.among("type" if "rope_type" not in told else "rope_type", KINDS, kind)
    given = {"base": said.number("rope_theta")}
    given |= {ours: said.number(theirs) for ours, theirs in names.items() if ours != "length"}
    if "length" in names:
        given["length"] = said.whole(names["length"])
    said.harmless("type")
    said.only("partial_rotary_factor", 1.0)
    said.finish()
    return f"{word}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def rope(word: str) -> dict[str, Any]:
    """`rope_theta` and `rope_scaling`, which old and new readers know; other positions have none."""
    name, given = parse(word)
    if name not in ROTARY:
        return {"rope_theta": 10_000.0, "rope_scaling": None}
    told = {key: one.default for key, one in arguments(ROTARY[name]).items()} | given
    if name == "rotary" and told["stretch"] == 1.0:
        return {"rope_theta": told["base"], "rope_scaling": None}
    kind = "linear" if name == "rotary" else "llama3"
    scaling = {theirs: told[ours] for ours, theirs in KINDS[kind][1].items()}
    return {"rope_theta": told["base"], "rope_scaling": {"rope_type": kind, **scaling}}
