"""The reference of the documentation: the command line from its own help, and every key from the specs."""

from collections.abc import Iterable, Iterator

import typer

from heedful.cli import app
from heedful.cli.examples import EXAMPLES
from heedful.tasks import TASKS
from heedful.training.spec import keys

PARTS = {  # a page, what it says first, and the parts of a run that stand there
    "keys.md": (
        "Keys of a run and of training",
        "A recipe is a YAML file of keys, and every one of them can be set on the command line as `KEY=VALUE`: "
        "`heedful train classify data=reviews.csv training.steps=1000`. Keys of [the data](keys_data.md), of "
        "[the model](keys_models.md) and of [the objective](keys_objectives.md) have pages of their own. "
        "`heedful keys TASK` prints the same in a terminal.",
        ("run", "training", "decoding"),
    ),
    "keys_data.md": (
        "Keys of data",
        "Each task reads its data with one of these readers: `data=NAME` chooses a built-in or public set, and "
        "`data=FILE` or `data.train=FILE` your own (`files`). What the files should hold is said in "
        "[file formats](file_formats.md).",
        ("data",),
    ),
    "keys_models.md": (
        "Keys of models",
        "A model belongs to a family, `model.family=NAME`, which has the keys below. What is *from the data* is filled "
        "in when a run begins.",
        ("model",),
    ),
    "keys_objectives.md": (
        "Keys of objectives",
        "An objective is what a model is trained to minimise: each task has its own. The last four keys of every "
        "objective are losses on attention heads.",
        ("objective",),
    ),
}

VALUES = {int: "N", float: "X"}  # of options that have no word for it themselves


def reference() -> dict[str, str]:
    """The pages that are made, by their names."""
    groups = [(task, group) for task in TASKS for group in keys.keys_of_task(task)]
    pages = {f"reference/{page}": "".join(key_page(*told, groups)) for page, told in PARTS.items()}
    return {**pages, "reference/cli.md": "".join(command_line())}


def key_page(title: str, about: str, parts: Iterable[str], groups: list[tuple[str, keys.Group]]) -> Iterator[str]:
    """One page of keys: a table for each group, under the tasks that it belongs to."""
    yield f"# {title}\n\n{about}\n"
    tasks: dict[keys.Group, list[str]] = {}
    for task, group in groups:
        if group.part in parts:
            tasks.setdefault(group, []).append(task)
    for group, served in tasks.items():
        words = " ".join(f"`{name}`" for name in group.names) or group.part.capitalize()
        yield f"\n## {words}{heading_of(group, served)}\n\n{group.about}\n\n"
        if group.part in ("data", "model"):
            yield f"Tasks: {', '.join(f'`{task}`' for task in served)}.\n\n"
        yield "| key | values | default | meaning |\n| --- | --- | --- | --- |\n"
        yield "".join(row(key) for key in group.keys)


def heading_of(group: keys.Group, served: list[str]) -> str:
    """What tells the headings of files apart, of which each task has others."""
    return f" of {', '.join(served)}" if group.part == "data" else ""


def row(key: keys.Key) -> str:
    """A key as a row of a table."""
    plain = key.default in ("required", "from the data")
    default = key.default if plain else f"`{key.default}`" if key.default else "unset"
    cells = (f"`{key.key}`", key.type, default, key.meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def command_line() -> Iterator[str]:
    """The page of the command line: every verb with its help, arguments, options and examples."""
    yield "# Command line\n\nEvery verb, as its own `--help` has it. Bad input ends with status 2 and one line that "
    yield "says what to do, a failure with 1, and Ctrl-C with 130.\n"
    for name, command in sorted(verbs()):
        yield f"\n## heedful {name}\n\n{paragraphs(command.help or '')}\n\n"
        yield f"```text\n{usage(name, command)}\n```\n\n"
        yield "| argument or option | what it does |\n| --- | --- |\n" + "".join(map(parameter, command.params))
        yield "\n```text\n" + "\n".join(EXAMPLES[name]) + "\n```\n"


def verbs() -> Iterator[tuple[str, typer.core.TyperCommand]]:
    """Every verb, those within a group by both names."""
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        if isinstance(command, typer.core.TyperGroup):
            yield from ((f"{name} {inner}", one) for inner, one in command.commands.items())  # type: ignore[misc]
        else:
            yield name, command


def paragraphs(text: str) -> str:
    """Help as paragraphs of a page."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def usage(name: str, command: typer.core.TyperCommand) -> str:
    """How a verb is called."""
    words = [str(one.metavar or one.name) for one in command.params if one.param_type_name == "argument"]
    return " ".join(["heedful", name, "[OPTIONS]", *words])


def parameter(one: typer.core.TyperOption) -> str:
    """An argument or an option as a row of a table."""
    if one.param_type_name == "argument":
        name = str(one.metavar or one.name)
    else:
        name = ", ".join(one.opts) + ("" if one.is_flag else f" {one.metavar or VALUES.get(one.bare_type, 'TEXT')}")
    return f"| `{name}` | {' '.join((one.help or '').split())} |\n"
