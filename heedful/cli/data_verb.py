"""`heedful data`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.arguments import Verb
from heedful.terminal import Bars, note, say

app = typer.Typer(help="List and fetch data sets.", no_args_is_help=True)
MADE = {
    "reverse": "sequences of digits and letters, and the same backwards",
    "sort": "sequences of digits and letters, and the same in order",
    "invented": "captions in English and in an invented language, with their alignments",
    "captions": "captions in English, each a text of its own",
    "clouds": "sets of points in one to four heaps, and how many heaps there are",
    "listops": "nested lists of operations on digits, and what each comes to (Long Range Arena)",
    "waves": "a series of two channels with a daily and a weekly wave",
    "opinions": "sentences on films that praise, blame or do neither",
    "asked-of-opinions": "such sentences, each with one of three questions and its answer",
    "invented-names": "names of three invented languages, each with its language",
    "mentions": "messages with names of persons, places and firms in them",
    "facts": "who lives, works and was born where, and questions about it",
    "news": "reports of a few things that happened, and a headline for what matters most",
    "maps": "linear maps by chance, each told by examples of what it does",
    "shapes": "pictures of circles, crosses, rings, squares and triangles",
    "smalltalk": "conversations of small sums and opposites",
    "toy": "of each recipe, a small version of its data",
}


@app.command("list", cls=Verb)
def list_sets(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the built-in sets, which are made on the fly, and the public ones that can be fetched."""
    from heedful.data.public import catalogue, download

    if as_json:
        rows = [{"name": name, "what": what, "made": True} for name, what in MADE.items()]
        rows += [
            {"name": s.name, "what": s.what, "licence": s.licence, "found": str(download.find(s.name) or "")}
            for s in catalogue.PUBLIC.values()
        ]
        say(json.dumps(rows, indent=1))
        return
    say("made on the fly, nothing to download:")
    for name, what in MADE.items():
        say(f"  {name:16s} {what}")
    say("public, fetched by `heedful data get NAME`:")
    for s in catalogue.PUBLIC.values():
        found = download.find(s.name)
        say(f"  {s.name:16s} {s.what} ({s.licence}){f'; found in {found}' if found else ''}")


@app.command("get", cls=Verb)
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of a public set.")],
    into: Annotated[Path, typer.Option(metavar="DIR", help="The folder to put it in.")] = Path("data"),
) -> None:
    """Fetch a public set and check its SHA-256: from the folder HEEDFUL_DATA if it is there, or from its publisher."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    from heedful.data.public import download

    public = download.find_set(name)
    columns = "{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn()
    console = Bars()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=public.bytes)
        said: list[str] = []
        place = download.get(name, into, lambda count: bar.update(task, advance=count), said.append)
    for line in said:
        note(line)
    say(place)
