"""`heedful attention`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="List the kinds of attention, and have one explained.", no_args_is_help=True)


@app.command("list")
def listed(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List every kind of attention: its word, cost in the length T of a sequence, whether it can hide the future."""
    from heedful.models import kinds

    found = kinds.every().values()
    if as_json:
        typer.echo(json.dumps([kind.to_json() for kind in found], indent=1))
        return
    wide = max(len(kind.name) for kind in found)
    for kind in found:
        card = kind.card
        typer.echo(
            f"{kind.name:{wide}s} {kind.role:9s} {card.tier}  {card.year}  {card.cost:21s} "
            f"{'causal' if card.causal else '-':6s}  {card.paper}"
        )


@app.command("explain")
def explain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A kind's word, as `heedful attention list` has it.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A picture of its weights beside softmax: .html, .png, .svg or .json."),
    ] = None,
) -> None:
    """Say what a kind of attention is, what it costs, what it cannot do, and how a model is given it."""
    from heedful.looking import draw
    from heedful.models import kinds

    kind = kinds.known(name)
    if out is not None:
        draw.known(out)
    card = kind.card
    typer.echo(f"{kind.name}: {card.paper}\n\n{kind.about}\n")
    typer.echo(f"kind    {kind.role}, tier {card.tier}")
    typer.echo(f"cost    {card.cost}, in the length T of a sequence")
    typer.echo(f"causal  {'yes: it can hide the future' if card.causal else 'no: it needs the whole sequence'}")
    typer.echo(f"limits  {card.limits}")
    typer.echo(f'use     heedful train RECIPE {kind.key}="{kind.word()}"')
    if out is not None:
        drawn(kind.name, out)
        typer.echo(out)


def drawn(name: str, out: Path) -> None:
    """The weights of a kind and of softmax, on the same queries and keys of a sentence."""
    from heedful.errors import Refusal
    from heedful.looking import draw
    from heedful.looking.maps import Map
    from heedful.models import kinds

    spoken = tuple(kinds.SENTENCE.split())
    maps = [
        Map(one, kinds.known(one).weights().contiguous(), spoken, spoken) for one in dict.fromkeys((name, "softmax"))
    ]
    try:
        draw.write(maps, out, f"{name} beside softmax")
    except OSError as error:
        raise Refusal(f"{out} cannot be written: {error.strerror}; choose another --out") from None
