"""`heedful train`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.arguments import Changes, Device
from heedful.terminal import note, say


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A recipe's name (see `heedful recipes`), or a YAML file.")
    ],
    changes: Changes = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The run folder; runs/RECIPE by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an unfinished run, to the same bits.")] = False,
    device: Device = None,
) -> None:
    """Train a model by a recipe, on built-in data or on your own files.

    Any key of a recipe can be changed with KEY=VALUE, such as `model.width=128`; `heedful keys RECIPE` lists them. The
    run folder holds the report (`report.html`), the settings (`run.yaml`), the scores and the trained model.
    """
    from heedful.training import run, run_folder
    from heedful.training.distributed import ranks as parallel
    from heedful.training.loop import Interrupted
    from heedful.training.spec import recipes

    changes, folder = changes or [], out or Path("runs") / Path(recipe).stem
    already = (folder / run_folder.RESULT).exists()
    try:
        with parallel.join_processes(device == "cpu") as ranks:
            place = parallel.own_device(run.device(device))
            spec = recipes.resolve(recipe, changes)
            asked = [recipes.parse(change)[0] for change in changes] if recipe in recipes.names() else None
            run.train(spec, folder, resume or parallel.is_restarted(), place, asked, ranks)
    except Interrupted:
        if not ranks.first:
            raise typer.Exit(130) from None
        where = ["--out", str(folder), *(["--device", device] if device else [])]
        again = shlex.join(["heedful", "train", recipe, *changes, *where, "--resume"])
        note(f"heedful: stopped and saved; go on with: {again}")
        raise typer.Exit(130) from None
    if already and ranks.first:
        say(f"{folder} is finished; its report is {folder / 'report.html'}")
