"""`heedful align`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.arguments import Device, Folder, warn_of
from heedful.cli.predict_verb import lines_of_input
from heedful.errors import Refusal
from heedful.terminal import note, say

if TYPE_CHECKING:
    from heedful.data.parallel_sample import Links
    from heedful.looking.alignment import Alignment

Asked = tuple[str, str | None]  # a source, and its target where that is given


def align(
    folder: Folder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT]...",
            help="A source, a tab and its target, or a source alone, which is translated first; if nothing is given, "
            "each line of standard input.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also draw a picture: .html (to explore), .png, .svg or .json (exact numbers)."
        ),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Links made by people to compare with, one line for each pair.")
    ] = None,
    first: Annotated[int, typer.Option(min=0, max=1, help="The number of the first word in that file.")] = 0,
    device: Device = None,
) -> None:
    """See which words of a source and its target belong together, by where the model looks.

    Each pair gives one line, in order: `0-0 1-2` links source word 0 to target word 0, and 1 to 2. With --gold, the
    last line is one JSON object: precision, recall and alignment error rate.
    """
    from heedful.data.formats import pharaoh
    from heedful.looking import draw
    from heedful.training import run

    if out is not None:
        draw.check_path(out)
    given = pharaoh.read_links(gold, first) if gold is not None else None
    model, task = run.load_trained(folder)
    asked = [pair(text, number, gold is not None) for number, text in enumerate(inputs or lines_of_input(), 1)]
    if not asked:
        raise Refusal("standard input is empty; give a source, a tab and its target, one pair a line")
    if given is not None and len(given) != len(asked):
        raise Refusal(f"{gold} has {len(given)} lines for {len(asked)} pairs; give each pair its line of links")
    warn_of(task, [source for source, _ in asked])
    found = []
    for number, one in enumerate(task.align(model.to(run.device(device)), asked), 1):
        say(pharaoh.write(one.links))
        found.append(compare_with_gold(one, given, f"{gold}", number))
    if out is not None:
        write(found, out)
    if given is not None:
        tell(found)


def pair(text: str, number: int, complete: bool) -> Asked:
    """The source and the target of an input."""
    fields = text.split("\t")
    if len(fields) > 2:
        raise Refusal(f"input {number}: {len(fields)} fields; write a source, a tab and its target, or a source alone")
    for side, field in zip(("source", "target"), fields, strict=False):
        if not field.strip():
            raise Refusal(f"input {number}: the {side} is empty; fill it or drop the line")
    if complete and len(fields) == 1:
        raise Refusal(f"input {number}: there is no target to compare; write a source, a tab and its target")
    return fields[0], fields[1] if len(fields) == 2 else None


def compare_with_gold(one: Alignment, given: list[Links] | None, path: str, number: int) -> Alignment:
    """An alignment with what people say of it, where that is given."""
    from heedful.data.formats import pharaoh

    if given is None:
        return one
    pharaoh.check(given[number - 1], one.source, one.target, path, number)
    return replace(one, gold=given[number - 1])


def tell(found: Sequence[Alignment]) -> None:
    """Says how well alignments agree with what people gave."""
    from heedful.looking.alignment import agreement

    gold = [one.gold for one in found if one.gold is not None]
    scores = asdict(agreement([one.links for one in found], [one.sure for one in gold], [one.possible for one in gold]))
    for name, value in scores.items():
        note(f"{name:20s} {value:.4f}   on {len(found):,} pairs")
    say(json.dumps({"pairs": len(found), **scores}))


def write(found: Sequence[Alignment], out: Path) -> None:
    """Writes alignments as a picture, as exact numbers or as a page to explore; the ending says which."""
    from heedful.looking import draw, page
    from heedful.looking.alignment import write_json

    shown = [one for one in found if one.target]
    if not shown and out.suffix.lower() != ".json":
        raise Refusal(f"{out}: the model wrote no word that could be shown; give the target too")
    if out.suffix.lower() == ".json":
        write_json(found, out)
    elif out.suffix.lower() == ".html":
        maps = tuple(page.Example(" ".join(one.source), (one.map,)) for one in shown)
        words, weights = page.Alignment("Words", tuple(shown)), page.Attention("Where each word looks", maps)
        page.write(out, "Which words belong together", [words, weights])
    else:
        pictures = enumerate(shown, 1)
        draw.alignments([(replace(one.map, path=f"alignment {n}"), one.links, one.given) for n, one in pictures], out)
