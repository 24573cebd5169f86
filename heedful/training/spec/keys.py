"""Keys (configuration reference): every key of a task's data, model, objective and training, and what it means.

All of it is made from the specs themselves; what a key means is said by the docstring below its field.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from heedful.data.readers import READERS
from heedful.decoding.search_spec import Decoding
from heedful.models import FAMILIES
from heedful.models.encoder_protocol import Encoder
from heedful.models.specs import Spec
from heedful.models.writer import Decoder
from heedful.objectives import OBJECTIVES
from heedful.objectives.head_terms import HeadTerms
from heedful.objectives.objective import numbers_of
from heedful.tasks import TASKS, task_of
from heedful.tasks.task import Task
from heedful.training.spec.run_spec import RunSpec
from heedful.training.spec.training_spec import TrainingSpec

PLAIN = {int: "integer", float: "number", str: "word", bool: "true or false", type(None): "null", Any: "anything"}
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
LARGE = 1_000_000  # of a bound: who stays below need not know it
WITHIN = ("data", "model", "training", "objective", "decoding", "expected")  # keys of a run that have keys of their own


class Key(NamedTuple):
    """One key: how it is written, which values it takes, what it is where nobody sets it, and what it means."""

    key: str
    type: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Group:
    """The keys of one part of a run: of a reader, a family, an objective, or of training."""

    part: str  # data, model, objective, training, decoding or run
    names: tuple[str, ...]  # of the readers, the family or the objective
    about: str
    keys: tuple[Key, ...]

    @property
    def title(self) -> str:
        """What the group is called above its keys."""
        return f"{self.part}: {', '.join(self.names)}" if self.names else self.part

    def to_json(self) -> dict[str, Any]:
        """The group as JSON's own types."""
        return {"part": self.part, "names": self.names, "keys": [key._asdict() for key in self.keys]}


def keys_of_task(name: str) -> list[Group]:
    """All keys that a run of a task may have, in groups: run, data, model, objective, training and decoding."""
    task = task_of(name)
    return [run_keys(), *reader_keys(task), *family_keys(task), *objective_keys(task), training_keys(), decoding_keys()]


def every_key() -> list[Group]:
    """The keys of all tasks; a group that several tasks share stands there once."""
    return list(dict.fromkeys(group for name in TASKS for group in keys_of_task(name)))


def matching(groups: Iterable[Group], word: str) -> list[Group]:
    """The keys in whose name or meaning a word stands."""
    found = (replace(one, keys=tuple(key for key in one.keys if word.lower() in key_text(key))) for one in groups)
    return [group for group in found if group.keys]


def key_text(key: Key) -> str:
    """What is searched of a key."""
    return f"{key.key} {key.meaning}".lower()


def run_keys() -> Group:
    """The keys at the top of a recipe, beside those that have keys of their own."""
    return Group("run", (), "What a run is, and what it begins with.", rows(RunSpec, "", left_out=WITHIN))


def training_keys() -> Group:
    """The keys of training."""
    return Group("training", (), first_line(TrainingSpec), rows(TrainingSpec, "training."))


def decoding_keys() -> Group:
    """The keys of decoding."""
    return Group("decoding", (), first_line(Decoding), rows(Decoding, "decoding."))


def reader_keys(task: Task) -> Iterator[Group]:
    """The keys of each reader of a task's data; sets that one reader reads share a group."""
    outside = {name: kind for name, kind in READERS.items() if task.name in kind.tasks}
    readers = {**task.readers, **outside}
    for kind in dict.fromkeys(readers.values()):
        names = tuple(name for name in readers if readers[name] is kind)
        found = (key._replace(default=names[0]) if key.key == "data.name" else key for key in rows(kind, "data."))
        yield Group("data", names, first_line(kind), tuple(found))


def family_keys(task: Task) -> Iterator[Group]:
    """The keys of each family of models that learns a task."""
    others = [name for name in FAMILIES if task.name in FAMILIES[name].tasks]
    for name in dict.fromkeys((*task.families, *others)):
        yield model_keys(name, name, "model.")
    if task.wants is not None:
        yield from composite_keys(task)


def composite_keys(task: Task) -> Iterator[Group]:
    """The keys of a model of two parts, and those of each encoder that reads what a task reads, and of each decoder."""
    from heedful.models.multimodal.composite import is_a

    yield model_keys("composite", "composite", "model.")
    for part, wanted in (("encoder", Encoder), ("decoder", Decoder)):
        for name in filter(partial(is_a, wanted), FAMILIES):
            kind: Any = FAMILIES[name].model
            if part == "decoder" or kind.reads <= task.reads:
                yield model_keys(name, f"{part} {name}", f"model.{part}.")


def model_keys(family: str, title: str, prefix: str) -> Group:
    """The keys of a family of models."""
    found = FAMILIES[family]
    return Group("model", (title,), first_line(found.model), rows(found.spec, prefix, required="from the data"))


def objective_keys(task: Task) -> Iterator[Group]:
    """The keys of a task's objective, which losses on heads are added to, and of those that may take its place."""
    own = type(task.objective)
    for name, kind in {"": own, **OBJECTIVES}.items():
        numbers = numbers_of(kind, HeadTerms)
        found = rows(numbers, "objective.", (kind, HeadTerms))
        yield Group("objective", (name or task.name,), first_line(kind), found)


def rows(
    spec: type[BaseModel],
    prefix: str,
    said_by: Iterable[type] = (),
    left_out: Iterable[str] = (),
    required: str = "required",
) -> tuple[Key, ...]:
    """The keys of a spec, and of the specs within it."""
    found: list[Key] = []
    for name, field in spec.model_fields.items():
        if name in left_out:
            continue
        kind = type_in_words(field.annotation, field.metadata)
        default = required if field.is_required() else default_in_words(field)
        found.append(Key(prefix + name, kind, default, field.description or meaning((spec, *said_by), name)))
        for inner in specs_within(field.annotation):
            found += rows(inner, f"{prefix}{name}.")
    return tuple(found)


def meaning(kinds: Iterable[type], name: str) -> str:
    """What a field means: the docstring below it, in its class or in the class that it is inherited from."""
    found = (field_docstrings(base).get(name) for kind in kinds for base in kind.__mro__)
    return next(filter(None, found), NAMED if name == "name" else "")


NAMED = "The name of the objective, where it is not the task's own."  # this field is of no class


@cache
def field_docstrings(kind: type) -> Mapping[str, str]:
    """The docstrings below the fields of a class; none of a class that was made while the program runs."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(str(ast.literal_eval(said.value)))
        for field, said in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant)
    }


def specs_within(annotation: Any) -> Iterator[type[BaseModel]]:
    """The specs that stand within a field; those of models have a family, and a group of their own."""
    for one in (annotation, *get_args(annotation)):
        if isinstance(one, type) and issubclass(one, BaseModel) and not issubclass(one, Spec):
            yield one


def type_in_words(annotation: Any, limits: Iterable[Any] = ()) -> str:
    """The values that a field takes, in words."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_in_words(inner[0], [*limits, *inner[1:]])
    if origin is Literal:
        return " | ".join(map(str, inner))
    if origin in (Union, UnionType):
        return " or ".join(type_in_words(one, limits) for one in inner if one is not type(None))
    if origin is list:
        return f"list: {type_in_words(inner[0])}"
    if annotation not in PLAIN:
        return "keys"
    bounds = ", ".join(bound for limit in limits for bound in bounds_in_words(limit))
    return f"{PLAIN[annotation]} {bounds}".rstrip()


def bounds_in_words(limit: Any) -> Iterator[str]:
    """The bounds of a number, in signs."""
    for one in limit.metadata if isinstance(limit, FieldInfo) else [limit]:
        for name, sign in BOUNDS.items():
            bound = getattr(one, name, None)
            if bound is not None and abs(bound) < LARGE:
                yield f"{sign} {bound:g}"


def default_in_words(field: FieldInfo) -> str:
    """What a key is where nobody sets it, as YAML would have it."""
    follows = field.default_factory_takes_validated_data  # from other keys, as its meaning says
    default = None if follows else field.get_default(call_default_factory=True)
    if default is None or isinstance(default, BaseModel):
        return ""
    return default if isinstance(default, str) else json.dumps(default)


def first_line(kind: type) -> str:
    """The first line of what a class says of itself."""
    return (inspect.getdoc(kind) or "").partition("\n")[0]
