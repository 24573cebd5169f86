"""`heedful bench`."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator
from importlib import import_module, metadata, util
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from heedful.bench.measure import is_installed, lacking
from heedful.errors import Refusal, unknown_word
from heedful.safe import outfile
from heedful.terminal import Bars, say


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="What to measure; some take KEY=VALUE too.")
    ] = None,
    rounds: Annotated[int, typer.Option(metavar="N", min=1, help="How often each of them runs.")] = 7,
    file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the times of every round to this file.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw how times grow with length, for `bench attention`: .png or .svg."),
    ] = None,
) -> None:
    """Measure heedful and its peers side by side on this machine; without a name, list what can be measured.

    They take turns, so that slow moments of the machine hit all of them alike; ratios are medians over the rounds.
    """
    known = measurable()
    changes = [name for name in names or () if "=" in name]
    names = [name for name in names or () if "=" not in name]
    for name in names:
        if name not in known:
            raise unknown_word("bench", name, known)
        if changes and "changes" not in known[name].takes:
            raise Refusal(f"bench {name} takes no changes; leave {changes[0]} out")
    if file is not None:
        if not names:
            raise Refusal(f"--json {file}: nothing is measured; name {', '.join(known)}, or leave --json out")
        outfile.check(file, "--json")
    if not names:
        for name, bench in known.items():
            say(f"{name:10s} {bench.about}")
        return
    import torch

    if plot is not None:
        if plot.suffix not in (".png", ".svg") or "attention" not in names:
            raise Refusal(f"--plot {plot} cannot be drawn; name a .png or .svg, for bench attention")
        outfile.check(plot, "--plot")
    cases = [(name, *one) for name in names for one in measure_cases(name, rounds, changes)]
    found = [{"bench": name, **told} for name, _, told in cases]
    if plot is not None:
        draw_growth([case for _, case, _ in cases], plot)
    if file is not None:
        where = {"threads": torch.get_num_threads(), "versions": versions(names)}
        outfile.write(file, json.dumps({**where, "cases": found}, indent=1) + "\n")


class Bench(NamedTuple):
    """What a module of cases says of itself, and what its cases take."""

    about: str
    takes: tuple[str, ...]


def measurable() -> dict[str, Bench]:
    """What can be measured; modules are read and not imported, which takes long."""
    [folder] = util.find_spec("heedful.bench").submodule_search_locations  # type: ignore[union-attr, misc]
    trees = {
        path.stem.removesuffix("_bench"): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(Path(folder).glob("*_bench.py"))
    }
    return {name: found for name, tree in trees.items() if (found := bench_of(tree)) is not None}


def bench_of(module: ast.Module) -> Bench | None:
    """What a module offers, where it has cases to measure."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == "cases":
            about = (ast.get_docstring(module) or "").split("\n")[0]
            return Bench(about, tuple(argument.arg for argument in node.args.args))
    return None


def peers(name: str) -> tuple[str, ...]:
    """The packages beside which a bench measures heedful, where they are installed."""
    found: tuple[str, ...] = getattr(import_module(f"heedful.bench.{name}_bench"), "PEERS", ())
    return found


def versions(names: list[str]) -> dict[str, str]:
    """Which versions took part."""
    packages = sorted({"heedful", "torch", *(peer for name in names for peer in peers(name))})
    return {package: metadata.version(package) for package in packages if is_installed(package)}


def draw_growth(cases: list[Any], path: Path) -> None:
    """How times grow, of the cases that say it, side by side in one picture."""
    from matplotlib.figure import Figure

    from heedful.bench.growth import Growth

    cases = [case for case in cases if isinstance(case, Growth)]
    figure = Figure(figsize=(8 * len(cases), 6), layout="constrained")
    for axes, case in zip(figure.subplots(1, len(cases), squeeze=False)[0], cases, strict=True):
        case.draw(axes)
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:], dpi=120)
    outfile.write(path, picture.getvalue())
    say(path)


def measure_cases(name: str, rounds: int, changes: list[str]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Each case, and the same as JSON, when its table is printed; a bar moves on a terminal meanwhile."""
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    for peer in peers(name):
        if lacks := lacking(peer):
            without = "is not installed and" if lacks[0] == peer else f"does not start without {lacks[0]} and"
            say(f"{peer} {without} is left out; to measure it too: pip install {' '.join(lacks)}")
    columns = SpinnerColumn(), "{task.description}: {task.completed} calls", TimeElapsedColumn()
    console = Bars()
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal, redirect_stdout=False)
    task = bar.add_task(name, total=None)
    more = [changes] if "changes" in measurable()[name].takes else []
    cases = import_module(f"heedful.bench.{name}_bench").cases(rounds, lambda: bar.advance(task), *more)
    while True:
        with bar:
            case, base = next(cases, (None, ""))
        if case is None:
            return
        say(case.table(base))
        yield case, case.to_json(base)
