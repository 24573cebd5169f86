"""`heedful sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.arguments import Device
from heedful.terminal import note, say


def sweep(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name, or a YAML file.")],
    changes: Annotated[
        list[str], typer.Argument(metavar="KEY=A,B,C", help="Keys with several values (a,b,c or 1..5), or with one.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of all runs; sweeps/RECIPE where not given.")
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Runs at once; one a GPU or a core where not given.")] = 0,
    stop_behind: Annotated[
        int, typer.Option(metavar="N", help="From N scores on, stop runs below the middle of the others.")
    ] = 0,
    device: Device = None,
) -> None:
    """Train a recipe with every combination of some values, side by side, and set the scores in one table.

    `training.rate=0.001,0.003 seed=1..5` makes ten runs, and gives the mean and the spread over seeds for each rate.
    The same command goes on with runs that were stopped, and leaves those that are finished.
    """
    import os

    from heedful.errors import Failure
    from heedful.safe import outfile
    from heedful.training.sweep import Sweep, gpus, table_of, trials, watched_score
    from heedful.training.table import markdown

    folder = out or Path("sweeps") / Path(recipe).stem
    fixed, made = trials(recipe, changes, folder)
    room = len(gpus()) if device != "cpu" else 0
    together = min(len(made), jobs or room or os.cpu_count() or 1)
    Sweep(recipe, fixed, made, device, together, stop_behind, note).run()
    header, lines = table_of(made, watched_score(recipe))
    outfile.write(folder / "table.md", markdown(header, lines))
    say(markdown(header, lines), end="")
    if faults := [one for one in made if one.fault]:
        raise Failure(f"{len(faults)} of {len(made)} runs failed, first {faults[0].folder.name}: {faults[0].fault}")
