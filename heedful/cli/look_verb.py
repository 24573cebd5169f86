"""`heedful look`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.arguments import Device, Folder, warn_of
from heedful.terminal import say


def look(
    folder: Folder,
    text: Annotated[str, typer.Argument(metavar="INPUT", help="What the model is asked, as in `heedful predict`.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The file to write: .html (to explore), .png, .svg or .json (exact numbers)."
        ),
    ],
    layer: Annotated[
        str | None, typer.Option(metavar="PATH", help="Only this layer, such as decoder.blocks.1.cross.")
    ] = None,
    rollout: Annotated[
        bool,
        typer.Option(
            "--rollout", help="Also what each token holds in the end, through all layers (attention rollout)."
        ),
    ] = False,
    discard: Annotated[
        float,
        typer.Option(
            min=0, max=0.99, help="With --rollout: the share of the smallest weights of each layer that is dropped."
        ),
    ] = 0.0,
    word: Annotated[
        str | None,
        typer.Option(
            metavar="WORD", help="Only what this word looks at: a row for each layer, or for each head of --layer."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="INPUT", help="With --word: the same word in another input, below the first."),
    ] = None,
    temperatures: Annotated[
        str | None,
        typer.Option(metavar="0.2,0.7,1,2", help="Instead: draw how likely the next tokens are at these temperatures."),
    ] = None,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="Of an image, as .png or .svg: weights go over into each other.")
    ] = False,
    device: Device = None,
) -> None:
    """See where every layer and head looks while the model answers one input.

    For an image, it draws over the photograph where the class token looks, head by head, and what it holds in the end;
    if the model reads no class token, the mean over all patches.
    """
    from heedful.errors import Refusal
    from heedful.looking import draw
    from heedful.training import run

    if discard and not rollout:
        raise Refusal("--discard is of a rollout; add --rollout, or leave it out")
    if against is not None and word is None:
        raise Refusal("--against shows where one word looks in two inputs; give --word too, or leave it out")
    if temperatures is not None:
        if word is not None:
            raise Refusal("--temperatures draws what comes next, and no layer; leave --word out")
        if layer is not None or rollout:
            raise Refusal("--temperatures draws what comes next, and no layer; leave --layer and --rollout out")
        return heat(folder, text, out, numbers(temperatures), device)
    draw.check_path(out)
    model, task = run.usable(folder)
    warn_of(task, [text])
    model.to(run.device(device))
    if word is not None:
        return one_word(model, task, [text, *([] if against is None else [against])], word, layer, out)
    all_layers(model, task, text, layer, discard if rollout else None, smooth, out)


def all_layers(
    model: Any, task: Any, text: str, layer: str | None, discard: float | None, smooth: bool, out: Path
) -> None:
    """Draws what all layers look at, or one; and rollouts that drop a share of the weights, where one is given."""
    from heedful.errors import Refusal, unknown_word
    from heedful.looking import draw, overlay_figure, page
    from heedful.looking.rollout import roll_out
    from heedful.views.rollout_over_image import rolled_over

    seen = task.look(model, text)
    paths = [map.path for map in seen.maps]
    if layer is not None and layer not in paths:
        raise unknown_word("layer", layer, paths)
    shown = [map for map in seen.maps if layer in (None, map.path)]
    over: list[Any] = list(seen.sections) if layer is None else []
    if discard is not None:
        held = roll_out(seen.maps, discard)
        if not held:
            raise Refusal("--rollout wants layers in which the same tokens look at each other; leave it out here")
        shown = [*held, *shown]
        over = [*rolled_over(seen.maps, discard, over, model), *over]
    words = [page.Alignment("Words", (seen.words,))] if seen.words and layer is None else []
    if over and out.suffix.lower() in (".png", ".svg"):
        overlay_figure.draw(over, out, smooth)
    else:
        draw.write(shown, out, seen.name, [*words, *over])
    say(f"{seen.name}\n{out}")


def one_word(model: Any, task: Any, texts: list[str], word: str, layer: str | None, out: Path) -> None:
    """Draws what a word looks at in one input, or in two below each other."""
    from heedful.looking import draw
    from heedful.looking.attention_of_a_word import gaze

    seen = [task.look(model, text) for text in texts]
    maps = [gaze(one.maps, word, text, layer) for one, text in zip(seen, texts, strict=True)]
    if out.suffix.lower() in (".png", ".svg"):
        draw.draw_heads(maps, f"what {word} looks at, {'head by head' if layer else 'mean of heads'}", out)
    else:
        draw.write(maps, out, f"What {word} looks at", together=True)
    say("\n".join([*(one.name for one in seen), str(out)]))


def numbers(text: str) -> list[float]:
    """Temperatures, as they are written: 0.2,0.7,1."""
    from heedful.errors import Refusal

    try:
        found = [float(one) for one in text.split(",")]
    except ValueError:
        found = []
    if not 1 <= len(found) <= 6 or not all(0 < one < float("inf") for one in found):
        raise Refusal(f"--temperatures {text}: give one to six numbers above 0, such as 0.2,0.7,1,2")
    return found


def heat(folder: Path, text: str, out: Path, temperatures: list[float], device: str | None) -> None:
    """Draws how likely the next tokens are, at each temperature."""
    from heedful.decoding.scoring import following
    from heedful.decoding.truncation import apply_temperature
    from heedful.formats import native
    from heedful.looking import draw
    from heedful.looking import temperatures as pictures
    from heedful.training import run

    draw.check_path(out, pictures.ENDINGS)
    model = native.load(folder).to(run.device(device))
    chances = following(model, text).cpu().double()
    tokenizer: Any = model.tokenizer
    words = tokenizer.pieces(range(len(tokenizer)))
    words += [f"<{at}>" for at in range(len(words), len(chances))]  # a table may have more rows than there are tokens
    pictures.write(words, {at: apply_temperature(chances, at).softmax(-1) for at in temperatures}, out, text)
    say(f"{text}\n{out}")
