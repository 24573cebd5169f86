"""What pydantic finds wrong with a spec, as one sentence that names the key and the cure."""

from __future__ import annotations

import re
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from heedful.errors import Refusal, nearest
from heedful.models.former_keys import renames_of
from heedful.models.specs import SHARED, Spec

FITTING = {  # what pydantic found, as the end of "it should be ..."
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a word",
    "bool_type": "true or false",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "list_type": "a list",
    "too_short": "a longer list",
    "too_long": "a shorter list",
}


def refusal(error: ValidationError, where: str, kind: type[BaseModel]) -> Refusal:
    """What pydantic found wrong, as one sentence about the first thing that is."""
    fault = worst(error)
    path, inner = locate(kind, fault["loc"])
    key = ".".join([where, *path]).strip(".")
    if fault["type"] == "extra_forbidden":
        return unknown_key(key, inner)
    if fault["type"] == "invalid_key" or fault["loc"][-1:] == ("[key]",):
        return Refusal(f"{key}: the key {fault['input']!r} is no word; leave it out")
    if fault["type"] == "missing":
        return Refusal(f"{key} is not given; add {key}=...")
    if fault["type"] == "value_error":
        said = str(fault["ctx"]["error"])
        return Refusal(said.replace("model.", f"{where}.") if where.startswith("model.") else said)
    said = FITTING.get(fault["type"]) or fault["msg"].removeprefix("Input should be ")
    said = re.sub(r"greater than or equal to (\S+)", r"\1 or more", said)
    meant = nearest(str(fault["input"]), re.findall("'(.+?)'", said))
    return Refusal(f"{key}={str(fault['input'])[:60]} does not fit: it should be {said}{meant}")


def worst(error: ValidationError) -> ErrorDetails:
    """The first fault; where a value can be read in several ways, of the way that came furthest."""
    faults = error.errors()
    same = [fault for fault in faults if fault["loc"][:1] == faults[0]["loc"][:1]]
    return max(same, key=lambda fault: (len(fault["loc"]), fault["type"] == "extra_forbidden"))


def locate(kind: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[list[str], type[BaseModel]]:
    """The keys on the way to a fault, without pydantic's own, and the spec in which the last of them stands."""
    path: list[str] = []
    for at, part in enumerate(loc):
        if part in kind.model_fields:
            path.append(str(part))
            kind = (spec_within(kind.model_fields[str(part)].annotation) or kind) if at < len(loc) - 1 else kind
        elif at == len(loc) - 1 and part not in ("str", kind.__name__) and "[" not in str(part):
            path.append(str(part))
    return path, kind


def spec_within(annotation: Any) -> type[BaseModel] | None:
    """The spec that a field holds, where it holds one."""
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def unknown_key(key: str, kind: type[BaseModel]) -> Refusal:
    """Refuse a key that is not known, with the nearest one, or with its home: `steps` is `training.steps`."""
    *above, last = key.split(".")
    if issubclass(kind, Spec):
        family = kind.model_fields["family"].default
        if (names := renames_of(family)).get(last) in kind.model_fields:
            return Refusal(f"{key} is called {'.'.join((*above, names[last]))} now; write that")
        if last in SHARED:
            if parts := [name for name, field in kind.model_fields.items() if spec_within(field.annotation) is Spec]:
                cure = " or ".join(".".join((*above, part, last)) for part in parts)
                return Refusal(f"the family {family} has no {key}, but its parts may; give {cure}")
            return Refusal(f"the family {family} has nothing that {key} could change; leave it out")
    known = [".".join((*above, name)) for name in kind.model_fields]
    inner = {name: spec_within(field.annotation) for name, field in kind.model_fields.items()}
    homes = {name: frozenset(spec.model_fields) for name, spec in inner.items() if spec}
    homes |= {"model": SHARED | {"family"}} if "model" in kind.model_fields else {}
    home = [f"{name}.{last}" for name, fields in homes.items() if last in fields]
    near = nearest(last, kind.model_fields).replace("mean '", f"mean '{'.'.join((*above, ''))}")
    meant = f"; did you mean {home[0]!r}?" if home else near or ";"
    return Refusal(f"unknown key {key!r}{meant} known: {', '.join(sorted(known))}")
