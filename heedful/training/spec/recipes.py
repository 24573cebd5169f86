"""Recipes: one YAML per result, with the score and the time to expect; and the keys by which it can be changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from heedful.errors import Refusal
from heedful.models import FAMILIES
from heedful.models.specs import Spec
from heedful.registry import Registry
from heedful.safe.plain_data import Twice, yaml_of
from heedful.tasks import task_of
from heedful.training.spec.run_spec import RunSpec, is_yaml, read_yaml, reader_of, validate_spec

HOME = Path(__file__).parents[2] / "recipes"
TOY = ("data", "toy")
SPLITS = ("train", "valid", "test")
FILES = tuple(f"data.{split}" for split in SPLITS)
FIRST = ("start", *FILES)  # keys that put others aside
PUBLIC = ("languages", "form", "bleu", "channels", "pixels")  # what a recipe says of its own set, and not of another
OWN = ("held_out",)  # the same, and not of a user's own
KEPT = ("dropout", "output")  # of what a recipe says of its model, where `start` says the rest
SIZED = ("width", "depth", "heads", "hidden")  # what a named size says


class Recipe(BaseModel):
    """A run's spec, and the versions that a recipe has of other data."""

    model_config = ConfigDict(strict=True, extra="allow")

    task: str
    data: dict[str, Any] | str
    model: dict[str, Any]
    toy: dict[str, Any] | None = None
    sets: dict[str, dict[str, Any]] = {}
    others: dict[str, Any] = {}


class Recipes(Registry[Path]):
    """Recipes by name: the YAML files of heedful, and those that installed packages bring, which are read as data.

    A package's entry point names its file, `my-recipe = "my_package:my_recipe.yaml"`; nothing of the package is run.
    """

    def brought(self, one: EntryPoint) -> Path:
        try:
            top, *folders = one.module.split(".")
            homes = getattr(find_spec(top), "submodule_search_locations", None) or []
        except (ImportError, ValueError):
            homes = []
        found = [Path(home, *folders, one.attr) for home in homes if Path(home, *folders, one.attr).is_file()]
        if not found:
            raise Refusal(f"recipe {one.name!r} should be in the package {one.module} as {one.attr}; mend the package")
        return found[0]


RECIPES = Recipes("recipe", "heedful.recipes", {path.stem: path for path in sorted(HOME.glob("*.yaml"))})


def names() -> list[str]:
    """The recipes that come with heedful and with installed packages."""
    return sorted(RECIPES)


def values(recipe: str) -> dict[str, Any]:
    """The values of a recipe by name, or of a YAML file."""
    path = Path(recipe) if is_yaml(recipe) else RECIPES.named(recipe)
    return whole(read_yaml(path), f"{path}: ")


def whole(values: dict[str, Any], where: str) -> dict[str, Any]:
    """The values of a recipe, where they have the shape of one; what is in each part is the spec's to say."""
    try:
        Recipe.model_validate(values)
    except ValidationError as error:
        from heedful.models.refusals import refusal

        raise Refusal(f"{where}{refusal(error, '', Recipe)}") from None
    return values


def sets(recipe: str) -> list[str]:
    """The known sets of which a recipe has a version, beside its toy."""
    return list(values(recipe).get("sets", {}))


def resolve(recipe: str, changes: Iterable[str] = ()) -> RunSpec:
    """The run of a recipe with `key=value` changes; `data=toy` takes the recipe's own small version.

    Of other known sets it may have a version too, with what they want and the score to expect, and one for all others.
    """
    base = values(recipe)
    toy, versions, others = base.pop("toy", None), base.pop("sets", {}), base.pop("others", {})
    pairs = [parse(change) for change in changes]
    known = next((pair for pair in pairs if pair == TOY or (pair[0] == "data" and str(pair[1]) in versions)), None)
    if known is not None:
        version = toy if known == TOY else versions[known[1]]
        if not isinstance(version, dict):
            raise Refusal(f"{recipe} has no toy version; give it data of your own: data=FILE")
        if known != TOY:
            put(base, *known)
        base = with_version({**base, "expected": None}, version)
    elif others and any(
        key.startswith(FILES) or (key == "data" and value != data_name(base["data"])) for key, value in pairs
    ):
        base = with_version(base, others)
    whole(base, f"{recipe}: ")
    if any(pair != known for pair in pairs):
        base.pop("expected", None)  # it was measured without these changes
    for key, value in sorted((pair for pair in pairs if pair != known), key=lambda pair: rank(pair[0])):
        put(base, key, value)
    run = validate_spec(base, "" if pairs or recipe in names() else recipe)
    if run.whole_start and task_of(run.task).inherits and "tokenizer" not in run.data.model_fields_set:
        return run.model_copy(update={"data": run.data.with_tokens_of(run.whole_start)})
    return run


def toy_data(name: str) -> dict[str, Any] | None:
    """The small version of a set that is made on the fly, as the recipe that makes it says."""
    for base in map(values, names()):
        if base["data"]["name"] == name:
            return dict(with_version(base, base["toy"])["data"])
    return None


def parse(change: str) -> tuple[str, Any]:
    """The key and the value of "key=value"; the value is read as YAML, a plain number with a dot or an e as a float."""
    key, equals, text = change.partition("=")
    if not equals or not all(key.strip().split(".")) or not text.strip():
        raise Refusal(f"{change!r} is not a change; write key=value, for instance training.steps=500")
    try:
        value = yaml_of(text)
    except Twice as error:
        raise Refusal(f"{change[:200]!r} cannot be read: {error}; leave one of them out") from None
    except (ValueError, RecursionError, yaml.YAMLError):  # a date that is none, a number without end
        value = text
    if isinstance(value, str):
        try:
            value = float(value) if value[:1] in "+-.0123456789" else value  # YAML takes 1e-3 for a word
        except ValueError:
            value = text
    return key.strip(), value


def rank(key: str) -> int:
    """When a key is set: those that put others aside come first, a family before its size."""
    ranks = (key == "data" or key.startswith(FIRST), key.endswith(".family"), key.endswith(".size"))
    return ranks.index(True) if any(ranks) else len(ranks)


def data_name(data: Any) -> Any:
    """The name of data that are told by their name alone, or by keys."""
    return data.get("name") if isinstance(data, dict) else data


def put(base: dict[str, Any], key: str, value: Any) -> None:
    """Sets a dotted key; a set named as a whole, such as `data=pairs.tsv`, replaces what the recipe said of it."""
    place, (*path, last) = place_of(base, key), key.split(".")
    if key == "data" and not isinstance(value, dict):
        old = base["data"] if isinstance(base.get("data"), dict) else {}
        kind = reader_of(base["task"], str(value))
        kept = kind.model_fields.keys() - {*SPLITS, *PUBLIC, *(OWN if "train" in kind.model_fields else ())}
        value = {k: old[k] for k in old if k in kept} | {"name": str(value)}
    if key.startswith(FILES) and base["data"].get("name") != "files":
        for lost in base["data"].keys() - (reader_of(base["task"], {}).model_fields.keys() - {*PUBLIC, *OWN}):
            del base["data"][lost]
        base["data"]["name"] = "files"
    if key == "start" and task_of(base["task"]).inherits:
        start_from(base, str(value))
    if path[:1] == ["model"] and last in ("family", "size"):
        left = of_family(place, str(value), len(path) > 1) if last == "family" else of_size(place, str(value))
        place.clear()
        place |= left
    place[last] = value


def place_of(base: dict[str, Any], key: str) -> dict[str, Any]:
    """The values in which the last part of a dotted key stands; they are made where they are not there."""
    place, path = base, key.split(".")[:-1]
    for at, part in enumerate(path):
        inner = place.get(part)
        if not isinstance(inner, dict):
            if inner not in (None, "") and path[0] != "data":
                raise Refusal(f"{key} cannot be set, for {'.'.join(path[: at + 1])} is {inner}; leave one of them out")
            inner = place[part] = {} if inner in (None, "") or at else {"name": inner}
        place = inner
    return place


def start_from(base: dict[str, Any], start: str) -> None:
    """Leaves of a recipe's model what a trained one does not say itself, and takes that one's tokenizer."""
    if start and ":" not in start and not Path(start).is_dir():  # recipe:NAME and hub:NAME are no folders
        fault = "is a file" if Path(start).exists() else "does not exist"
        raise Refusal(f"{start} {fault}; name a run folder or the model/ in it")
    kept = [name for name in KEPT if name in base["model"] and not (name == "output" and asks_its_own_way(start))]
    base["model"] = {name: base["model"][name] for name in kept}
    base["data"] = base["data"] if isinstance(base["data"], dict) else {"name": base["data"]}
    base["data"] |= {"tokenizer": start}


def of_size(keys: Mapping[str, Any], size: str) -> dict[str, Any]:
    """The keys of a model that a named size leaves as they are."""
    sized = (*SIZED, "patch") if "/" in size else SIZED  # as in base/16
    return {name: value for name, value in keys.items() if name not in sized}


def of_family(keys: Mapping[str, Any], family: str, part: bool) -> dict[str, Any]:
    """The keys of a model that stay where it becomes one of another family: those that this has too; of a part none."""
    if keys.get("family", family) == family or family not in FAMILIES:
        return dict(keys)
    known = () if part else FAMILIES[family].spec.model_fields
    return {name: value for name, value in keys.items() if name in known}


def asks_its_own_way(folder: str) -> bool:
    """Whether a recipe's output is not for a folder: what decodes reads to its end, a public layout has its own."""
    try:
        from heedful.formats import native

        spec = native.load(folder, check=False).spec
        return isinstance(spec, Spec) and (spec.decodes or native.is_public(native.model_folder(folder)))
    except Refusal:  # which is told when the run begins
        return False


def with_version(base: dict[str, Any], version: dict[str, Any]) -> dict[str, Any]:
    """The values of a recipe with the version that it has of other data, which may not have all keys of the first."""
    made, data = merge_values(base, version), version.get("data")
    if isinstance(data, dict) and "name" in data:
        known = {*reader_of(base["task"], data).model_fields, *data}
        made["data"] = {key: value for key, value in made["data"].items() if key in known}
    return made


def merge_values(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Nested values laid over others."""
    made = dict(base)
    for key, value in over.items():
        old: Any = made.get(key)
        both = isinstance(value, dict) and isinstance(old, dict)  # of one family: another's keys say nothing of it
        both = both and old.get("family", value.get("family")) == value.get("family", old.get("family"))
        made[key] = merge_values(old, value) if both else value
    return made
