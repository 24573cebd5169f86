"""`heedful verify-resume`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from heedful.cli.arguments import Changes, Device
from heedful.terminal import Bars, note, say


def verify_resume(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A recipe's name (see `heedful recipes`), or a YAML file.")
    ],
    changes: Changes = None,
    cuts: Annotated[int, typer.Option(min=1, max=1000, help="How often the run is killed.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Another seed kills at other places.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A new folder to keep both runs in; without it they are deleted.")
    ] = None,
    device: Device = None,
) -> None:
    """Prove that a run which is killed goes on to the same bits.

    It trains once without a break, and once killed with `kill -9` by turns at a random step and inside a save, and
    resumed each time; then it compares every byte of both runs. That takes twice the time of the run and a few seconds
    for each kill: `data=toy` and a small training.steps make it short. Status 0 if all is equal, and 1 if not.
    """
    from heedful.errors import Failure, Refusal
    from heedful.training import run
    from heedful.training.resume_proof import choose_cuts, verify
    from heedful.training.spec import recipes

    spec = recipes.resolve(recipe, changes or [])
    if spec.training.minutes is not None:
        raise Refusal("training.minutes asks the clock, which never says the same twice; give training.steps")
    place = run.device(device)
    if out is not None and out.exists():
        raise Refusal(f"{out} exists; choose another --out")
    console = Bars()
    where = choose_cuts(cuts, spec.training.steps, seed)
    with TemporaryDirectory() as spare, console.status("training"):
        words = [recipe, *(changes or []), "--device", place.type]
        differs = verify(words, out or Path(spare), where, note)
    if differs:
        raise Failure(f"not bit-equal: {differs}")
    say("bit-equal")
