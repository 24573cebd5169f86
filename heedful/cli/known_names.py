"""Names that a shell completes, read in our own source and recipes: importing them takes a second, reading a moment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

HOME = Path(__file__).parents[1]
OWNERS = {  # of keys: the prefix, the file, and its classes, whose annotated names they are (all where none is named)
    "training.": ("training/spec/training_spec.py", ("TrainingSpec",)),
    "": ("training/spec/run_spec.py", ("RunSpec",)),
    "decoding.": ("decoding/search_spec.py", ("Decoding",)),
    "model.": ("models/blueprint.py", ("Blueprint",)),
    "data.": ("data/readers/reader.py", ()),
}
TABLES = {  # of values: the key, the file of a registry, and its names
    "model.mechanism": ("models/part_tables.py", ("MECHANISMS", "MASKS", "PAIRS")),
    "model.bias": ("models/part_tables.py", ("BIASES",)),
    "model.position": ("models/part_tables.py", ("POSITIONS", "ROTARY", "GRIDS")),
    "model.stack": ("models/part_tables.py", ("STACKS",)),
    "model.family": ("models/__init__.py", ("FAMILIES",)),
    "training.loggers": ("training/callbacks.py", ("LOGGERS",)),
    "metrics": ("metrics/__init__.py", ("METRICS",)),
}
NOT_KEYS = {"model_config", "training", "decoding", "model", "expected", "kinds", "tasks"}


def recipes() -> list[str]:
    """The recipes that come with heedful and with installed packages."""
    return sorted({path.stem for path in (HOME / "recipes").glob("*.yaml")} | outside("heedful.recipes"))


def outside(group: str) -> set[str]:
    """The parts of a kind that installed packages bring."""
    return {one.name for one in entry_points(group=group)}


def keys(recipe: str) -> list[str]:
    """The keys of a run: those of its recipe, of training, decoding and readers, and those that most families have."""
    found = {f"{prefix}{name}" for prefix, (file, classes) in OWNERS.items() for name in annotations_of(file, classes)}
    return sorted({*found, *keys_of_recipe(recipe), "data"} - NOT_KEYS)


def keys_of_recipe(recipe: str) -> Iterator[str]:
    """The keys that a recipe gives."""
    path = HOME / "recipes" / f"{recipe}.yaml"
    if not path.is_file():
        return
    import yaml

    for name, value in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        if name in ("data", "model", "training", "objective", "decoding") and isinstance(value, dict):
            yield from (f"{name}.{key}" for key in value)


def values(key: str) -> list[str]:
    """The values of a key that are words: names of a registry, of public sets, or what its annotation allows."""
    if key == "data":
        from heedful.data.public.catalogue import PUBLIC

        return sorted({*PUBLIC, "toy"})
    if key in TABLES:
        file, names = TABLES[key]
        return sorted({word for name in names for word in table(file, name)})
    prefix, _, name = key.rpartition(".")
    file, classes = OWNERS.get(f"{prefix}." if prefix else "", ("", ()))
    return words_of(annotations_of(file, classes)[name]) if file and name in annotations_of(file, classes) else []


def annotations_of(file: str, classes: tuple[str, ...]) -> dict[str, ast.expr]:
    """The names that classes of a file annotate, with their annotations; class variables left out."""
    lines = (
        line
        for node in parse_file(file).body
        if isinstance(node, ast.ClassDef) and (node.name in classes or not classes)
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    )
    return {line.target.id: line.annotation for line in lines if "ClassVar" not in ast.dump(line.annotation)}  # type: ignore[union-attr]


def words_of(annotation: ast.expr) -> list[str]:
    """What a `Literal` allows, or a truth value."""
    if isinstance(annotation, ast.Name):
        return ["false", "true"] if annotation.id == "bool" else []
    inside = [node for node in ast.walk(annotation) if isinstance(node, ast.Subscript)]
    literals = [node.slice for node in inside if isinstance(node.value, ast.Name) and node.value.id == "Literal"]
    return sorted(n.value for one in literals for n in ast.walk(one) if isinstance(n, ast.Constant) and n.value)  # type: ignore[misc]


def table(file: str, registry: str) -> set[str]:
    """The names in the table of a registry, and those that packages bring."""
    for node in parse_file(file).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == registry:
            assert isinstance(node.value, ast.Call)
            _, group, names = node.value.args[:3]
            assert isinstance(group, ast.Constant) and isinstance(names, ast.Dict)
            return {key.value for key in names.keys if isinstance(key, ast.Constant)} | outside(str(group.value))  # type: ignore[return-value]
    raise LookupError(f"{file} has no registry {registry}")


def parse_file(file: str) -> ast.Module:
    """A file of ours, as its syntax tree."""
    return ast.parse((HOME / file).read_text(encoding="utf-8"))
