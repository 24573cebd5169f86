"""Options of how answers are searched for, as a spec: for models that write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from heedful.errors import Refusal

if TYPE_CHECKING:
    from heedful.decoding import Decoding
    from heedful.pipelines.use import Use


def search_spec(task: Use, given: dict[str, Any], also: dict[str, Any], best: int | None) -> Decoding:
    """How answers are searched for, where the model writes: as the task says, and otherwise where options say so."""
    if not task.writes:
        for key in (*given, *also):
            raise Refusal(f"{option(key)} is for models that write, and this one's task is {task.name}; leave it out")
        return task.decoding
    try:
        decoding = task.decoding.but(**given)
    except Refusal as refused:
        raise Refusal(re.sub(r"\b([a-z_]+)=", lambda key: f"{option(key[1])} ", str(refused))) from None
    if fault := contradiction(decoding, given, also, best):
        raise Refusal(fault)
    return decoding


def contradiction(decoding: Decoding, given: dict[str, Any], also: dict[str, Any], best: int | None) -> str | None:
    """What options ask for that cannot be had together, and which to leave out."""
    beams = decoding.beams
    if "stream" in also and best is not None:
        return f"--stream prints one answer as it is written and --best {best} asks for more; leave one of them out"
    if "stream" in also and beams > 1:
        return f"--stream prints what is written at once and {beams} beams choose at the end; give --beams 1"
    if "seed" in also and not decoding.temperature:
        return "--seed is for answers drawn by chance; give --temperature too, or leave it out"
    if "length_penalty" in given and beams == 1:
        return "--length-penalty compares what several beams find; give --beams 2 or more, or leave it out"
    if best is not None and best > beams and not decoding.temperature:
        return f"--best {best} needs at least as many --beams; give --beams {best}"
    return None


def option(key: str) -> str:
    """A key as it is written on the command line."""
    return f"--{key.replace('_', '-')}"
