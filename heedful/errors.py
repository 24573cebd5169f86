"""The two ways in which heedful stops: it refuses what it was asked, or it fails at what it was doing."""

import difflib
import re
from collections.abc import Iterable
from typing import ClassVar

SHORT = "out of memory|allocate memory|not enough memory|ALLOC_FAILED"  # as torch says it
LONGEST = 1000  # characters of a refusal
RECODED = "iconv -f latin1 -t UTF-8"  # how a text becomes one that can be read, for instance


class Refusal(ValueError):
    """An error that a user can cause and cure: one sentence that names the cure, shown without a traceback."""

    status: ClassVar[int] = 2

    def __init__(self, line: str) -> None:
        short = line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 4 :]}"
        plain = "".join(sign if sign.isprintable() else "\n" for sign in short)  # which could be meant for the terminal
        super().__init__(re.sub("\n+", " ", plain))


class Failure(RuntimeError):
    """A run that could not go on, through no fault of what was asked: one sentence, shown without a traceback."""

    status: ClassVar[int] = 1


def nearest(word: str, known: Iterable[str]) -> str:
    """Say which known word was likely meant, as the end of a sentence; nothing where none is near."""
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word[:100].casefold(), folded, n=1)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""


def unknown_word(what: str, word: str, known: Iterable[str]) -> Refusal:
    """Refuse a word that is not known, with the nearest one and all of them."""
    names = sorted(known)
    meant = nearest(word, names) or ";"
    return Refusal(f"unknown {what} {word!r}{meant} known: {', '.join(names) or 'none'}")


def short_of_memory(error: BaseException) -> bool:
    """Whether an error says that there is not enough memory."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(re.search(SHORT, str(error))))
