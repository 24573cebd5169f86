"""Inputs of a pipeline: all of them are read before the first is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from heedful.errors import Refusal

Read = TypeVar("Read")
Given = TypeVar("Given")


def nonempty(text: str, what: str) -> str:
    """The input itself, or a refusal where it is empty."""
    if not text.strip():
        raise Refusal(f"the input is empty; give {what}")
    return text


def read_all(inputs: Iterable[Given], read: Callable[[Given], Read]) -> list[Read]:
    """Every input as `read` takes it, before the first is answered; one that is refused is told by its number."""
    made: list[Read] = []
    for text in inputs:
        try:
            made.append(read(text))
        except Refusal as refused:
            raise Refusal(f"input {len(made) + 1}: {refused}") from None
    return made
