"""Answers told: printed as they come or written to a file, with a bar; inputs that could not be read are named."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import Failure, Refusal
from heedful.terminal import Bars, is_terminal, note, progress, say

if TYPE_CHECKING:
    from torch import nn

    from heedful.decoding import Decoding
    from heedful.pipelines.answer_files import AnswerForm
    from heedful.pipelines.asked_files import Inputs
    from heedful.pipelines.use import Use
    from heedful.results import Result, Unread


@contextmanager
def answer_bar(count: int, shown: bool = True) -> Iterator[Any]:
    """A bar for so many answers, on a terminal, and elsewhere a line every few seconds; gives what moves it."""
    if not shown or not is_terminal(sys.stderr):
        with progress("answering", count) as heard:
            yield heard
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    # what is redirected would go where the bar is
    with Progress(*columns, console=Bars(), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("answering", total=count)
        yield lambda more: bar.advance(task, more)


def tell(answers: Iterable[Sequence[Result]], inputs: Inputs, form: AnswerForm, out: Path | None) -> None:
    """Prints the answers to each input, or writes them to a file; those that could not be read are told at the end."""
    from heedful.pipelines.answer_files import answer_file
    from heedful.safe import outfile

    unread = Unreads(inputs)
    with answer_bar(len(inputs.given), out is not None or not is_terminal(sys.stdout)) as heard:
        found = unread.heard(answers, heard)
        if out is None:
            for lines in unread.held_back(found, form):
                say("\n".join(lines))
        else:
            text = answer_file(out, inputs, found, form)
    if out is not None and unread.some:
        outfile.write(out, text)
        note(f"{out}: {unread.read:,} answers")
    unread.leave()


class Unreads:
    """The inputs that could not be read: named as they come, and counted at the end."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs, self.read, self.faults = inputs, 0, list[str]()

    @property
    def some(self) -> bool:
        """Whether any input could be read."""
        return self.read > 0

    def heard(self, answers: Iterable[Sequence[Result]], heard: Any) -> Iterator[Sequence[Result]]:
        """The answers themselves; of an input that could not be read it is said why."""
        from heedful.results import Unread

        for place, found in zip(self.inputs.places, answers, strict=True):
            if isinstance(found[0], Unread):
                self.add(place, found[0])
            else:
                self.read += 1
            yield found
            heard(1)

    def add(self, place: str, unread: Unread) -> None:
        """Names an input; where it is the only one, that is left to the end."""
        self.faults.append(f"{place}: {unread.why}")
        if len(self.inputs.given) > 1:
            note(f"heedful: {self.faults[-1]}")

    def held_back(self, answers: Iterable[Sequence[Result]], form: AnswerForm) -> Iterator[list[str]]:
        """The lines of answers; nothing is said before the first input that could be read."""
        waiting = []
        for found in answers:
            waiting.append(form.lines(found))
            if self.some:
                yield from waiting
                waiting = []

    def leave(self) -> None:
        """Refuses where no input could be read, and fails where some could not be."""
        count = len(self.inputs.given)
        if self.faults and not self.some:
            raise Refusal(self.faults[0] if count == 1 else f"none of {count:,} inputs could be read; see above")
        if self.faults:
            raise Failure(f"{len(self.faults):,} of {count:,} inputs could not be read; the others are answered")


def tell_pieces(task: Use, model: nn.Module, inputs: Inputs, decoding: Decoding, seed: int) -> None:
    """Prints each answer piece by piece, as it is written."""
    from heedful.results import Unread

    unread = Unreads(inputs)
    read = [task.attempt(model, one) for one in inputs.given]
    list(unread.heard(([one] for one in read), lambda more: None))
    for at, one in enumerate(read if unread.some else ()):
        for piece in () if isinstance(one, Unread) else task.stream(model, inputs.given[at], decoding, seed, at):
            say(piece, end="", flush=True)
        say(flush=True)
    unread.leave()
