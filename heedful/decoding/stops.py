"""Stop strings: an answer ends before the first of them, wherever its tokens begin and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from heedful.errors import Refusal


class Stops:
    """Texts at which an answer ends; they are no part of it. `decode` makes the text of tokens."""

    def __init__(self, strings: Sequence[str], decode: Callable[[Sequence[int]], str]) -> None:
        if not all(strings):
            raise Refusal("a stop string of no characters would stop everything; give each at least one")
        self.strings, self.decode = tuple(strings), decode

    def __call__(self, tokens: Sequence[int]) -> bool:
        """Whether the text of these tokens has come to a stop."""
        text = self.decode(tokens)
        return any(string in text for string in self.strings)

    def before(self, text: str) -> str:
        """The part of a text before its first stop."""
        return text[: min((at for string in self.strings if (at := text.find(string)) >= 0), default=len(text))]

    def pieces(self, pieces: Iterator[str]) -> Iterator[str]:
        """The same of a text that comes in pieces; what may be the beginning of a stop is kept until it is known."""
        kept = ""
        for piece in pieces:
            kept += piece
            if len(said := self.before(kept)) < len(kept):
                yield from filter(None, [said])
                return
            sure = len(kept) - self.begun(kept)
            if sure:
                yield kept[:sure]
                kept = kept[sure:]
        yield from filter(None, [kept])

    def begun(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a stop."""
        longest = max(map(len, self.strings), default=1) - 1
        ends = (text[-count:] for count in range(min(longest, len(text)), 0, -1))
        return next((len(end) for end in ends if any(string.startswith(end) for string in self.strings)), 0)
