"""`heedful chat`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.arguments import Device, Folder
from heedful.cli.predict_verb import lines_of_input
from heedful.errors import Refusal
from heedful.terminal import is_terminal, note, say

if TYPE_CHECKING:
    from heedful.decoding.chat_template import Chat

HELP = "/reset forgets the conversation, /exit ends it, /help says this; anything else is said to the model"


def chat(
    folder: Folder,
    temperature: Annotated[
        float, typer.Option(min=0, help="0 takes the likeliest token; 1 draws as the model predicts.")
    ] = 0.7,
    top_k: Annotated[int, typer.Option(min=0, help="Draw among the K likeliest tokens; 0 for all.")] = 0,
    top_p: Annotated[
        float, typer.Option(max=1, help="Draw among the likeliest that together have this probability.")
    ] = 0.9,
    repetition_penalty: Annotated[
        float, typer.Option(help="Above 1, tokens that were said before are less likely.")
    ] = 1.0,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="The longest answer, in tokens.")] = 256,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other answers.")] = 0,
    weights: Annotated[
        str,
        typer.Option(
            metavar="float32|float16", help="float16 rounds the matrices, and is about twice as fast on a CPU."
        ),
    ] = "float32",
    device: Device = None,
) -> None:
    """Talk with a model that learned from conversations: answers appear as they are written.

    The conversation is kept in mind as far back as the model can read. /help lists commands. If standard input is a
    file, it is answered line by line.
    """
    from heedful.decoding import Decoding
    from heedful.decoding.chat_template import Chat
    from heedful.formats import native
    from heedful.training import run

    words: dict[str, Any] = {"top_k": top_k, "top_p": top_p} if temperature else {}
    words |= {"repetition_penalty": repetition_penalty, "max_new_tokens": max_new_tokens, "weights": weights}
    decoding = Decoding().but(temperature=temperature, **words)
    model = native.load(folder).to(run.device(device))
    for text in talk(Chat(model, decoding), typed_lines(), seed):
        say(text, end="", flush=True)


def typed_lines() -> Iterator[str]:
    """What is typed, or the lines of standard input."""
    if not is_terminal(sys.stdin):
        yield from lines_of_input()
        return
    note(HELP)
    while True:
        try:
            yield input("> ")
        except EOFError:
            return


def talk(chat: Chat, said: Iterator[str], seed: int) -> Iterator[str]:
    """What is printed: the pieces of each answer, and a line's end behind it."""
    for text in said:
        if text.strip() == "/exit":
            return
        if text.strip() == "/reset":
            chat.reset()
        elif text.strip().startswith("/"):
            known = text.strip() == "/help"
            yield HELP + "\n" if known else f"{text.strip().split()[0]} is not known: {HELP}\n"
        elif text.strip():
            try:
                yield from chat.say(text.strip(), seed)
            except Refusal as refused:
                yield str(refused)
            yield "\n"
