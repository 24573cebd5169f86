"""`heedful attention`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.arguments import Verb
from heedful.terminal import say

if TYPE_CHECKING:
    from heedful.looking.maps import Map
    from heedful.models.attention_kinds import Kind

NAMED = {"cpu": "cpu", "cuda": "gpu"}

app = typer.Typer(help="List the kinds of attention, and have one explained.", no_args_is_help=True)


@app.command("list", cls=Verb)
def list_kinds(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List every kind of attention: its name, cost in the length T of a sequence, whether it can hide the future.

    Then come the length from which it is faster than full attention in training, if that was measured, and its paper.
    """
    from heedful.bench import recorded
    from heedful.tasks import kinds

    found = kinds.every().values()
    if as_json:
        every = [{**kind.to_json(), "overtakes": recorded.crossings(kind.name)} for kind in found]
        say(json.dumps(every, indent=1))
        return
    wide = max(len(kind.name) for kind in found)
    say(f"{'name':{wide}s} kind      tier  year  {'cost':21s}causal  {'overtakes softmax at T':34s}  paper")
    for kind in found:
        card = kind.card
        over = ", ".join(f"{NAMED[at]} {length_in_words(recorded.crossing(kind.name, at))}" for at in recorded.DEVICES)
        say(
            f"{kind.name:{wide}s} {kind.role:9s} {card.tier:4s}  {card.year}  {card.cost:21s}"
            f"{'yes' if card.causal else 'no':6s}  {over:34s}  {card.paper}"
        )


@app.command("explain", cls=Verb)
def explain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of a kind, as in `heedful attention list`.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw its weights beside those of softmax: .html, .png, .svg or .json."),
    ] = None,
) -> None:
    """Explain a kind of attention: what it is and costs, what it cannot do, when it pays, and how to train with it."""
    from heedful.looking import draw
    from heedful.tasks import kinds

    kind = kinds.kind_named(name)
    if out is not None:
        draw.check_path(out)
        kind.can_be_drawn()
    card = kind.card
    say(f"{kind.name}: {card.paper}\n\n{kind.about}\n")
    say(f"kind    {kind.role}, tier {card.tier}")
    say(f"cost    {card.cost}, in the length T of a sequence")
    say(f"causal  {'yes: it can hide the future' if card.causal else 'no: it needs the whole sequence'}")
    say(f"limits  {card.limits}")
    say(f"pays    {paying(kind)}")
    word = kind.said or f'{kind.key}="{kind.word()}"'
    say(f"use     heedful train {'sets' if kind.role == 'pool' else 'RECIPE'} {word}")
    if out is not None:
        draw_kind(kind, out)
        say(f"{out}: words of a sentence, whose vectors are by chance; nothing here was trained")


def length_in_words(length: int | str) -> str:
    """A length as people write it, or the word that stands in its place."""
    return length if isinstance(length, str) else f"{length:,}"


def paying(kind: Kind) -> str:
    """From which length on a kind is faster than full attention, by what was measured on each device."""
    from heedful.attention import MultiHead
    from heedful.bench import recorded

    if kind.part is MultiHead:
        return "in memory: fewer keys and values are made, and remembered while writing; not in time of learning"
    if kind.role == "join":
        return "not in time: it is work beside the mechanism's; if at all, in what it learns"
    if kind.card.cost == "T^2" and kind.name != "softmax":
        return "not in time: it costs as much as full attention or more; if at all, in what it learns"
    said = []
    for device, found in recorded.crossings(kind.name).items():
        never = f"never up to T = {recorded.longest(device):,}"
        each = [
            f"{never if over == 'never' else f'from T = {over:,} up, not below'}, {way}" for way, over in found.items()
        ]
        said.append(f"{NAMED[device]}: {'; '.join(each) or 'not measured'}")
    return "; ".join(said) if kind.name != "softmax" else "it is what the others are measured against"


def draw_kind(kind: Kind, out: Path) -> None:
    """The weights of a kind and of softmax, on the same words of a sentence."""
    from heedful.looking import draw

    draw.write([*maps_of_kind(kind)], out, f"{kind.name} beside softmax", together=True)


def maps_of_kind(kind: Kind) -> Iterator[Map]:
    """The maps of a kind, then of softmax: of one attention, or of all in a small model where layers work together."""
    from heedful.looking.look import look
    from heedful.looking.maps import Map
    from heedful.models import attention_kinds

    if kind.role in attention_kinds.DRAWN:
        for name in dict.fromkeys((kind.name, "softmax")):
            weights = attention_kinds.kind_named(name).weights()
            yield Map(name, weights.contiguous(), sentence_words(weights.shape[1]), sentence_words(weights.shape[2]))
        return
    for name, model in (kind.name, kind.model()), ("softmax", attention_kinds.kind_named("softmax").model()):
        with look(model) as found:
            model(attention_kinds.tokens())
        for path in found.paths:
            weights = found.weights(path)[0].detach()
            yield Map(
                f"{name}: {path}",
                weights.contiguous(),
                sentence_words(weights.shape[1]),
                sentence_words(weights.shape[2]),
            )


def sentence_words(count: int) -> tuple[str, ...]:
    """The words of the sentence, behind nodes where there are more of them; fewer are what it was gathered into."""
    from heedful.models import attention_kinds

    spoken = attention_kinds.SENTENCE.split()
    more = count - len(spoken)
    return (*(f"({n + 1})" for n in range(more if more >= 0 else count)), *(spoken if more >= 0 else ()))
