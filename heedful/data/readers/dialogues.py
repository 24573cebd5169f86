"""Readers of conversations: small talk made on the fly, and a user's JSON lines."""

from __future__ import annotations

from typing import Any

from heedful.data.formats import chat_jsonl
from heedful.data.formats.chat_jsonl import Dialogue
from heedful.data.readers.reader import FILES, Bounded, Made, Reader, SampleFiles, Tokenized
from heedful.data.splits import Splits, divide_samples, open_splits
from heedful.data.toys.distinct import unlike

SMALLTALK = "smalltalk"


class SmallTalk(Bounded, Tokenized, Made):
    """Conversations of small sums and opposites, no two of which begin alike."""

    def read(self, seed: int) -> Splits[Dialogue]:
        return unlike(chat_jsonl.smalltalk, lambda one: one.turns[0], self, seed)


class Dialogues(Bounded, Tokenized, SampleFiles):
    """Your own conversations: JSONL with a list of messages, each with its role and content, on each line."""

    def sample(self, given: Any) -> Dialogue:
        """A conversation: messages, each with its role and content, or what is said and answered, turn by turn."""
        if isinstance(given, Dialogue):
            return given
        found = given["messages"] if isinstance(given, dict) else list(given)
        if all(isinstance(one, dict) for one in found):
            return Dialogue(chat_jsonl.turns({"messages": found}, "a conversation in memory"))
        if not all(isinstance(turn, tuple | list) and len(turn) == 2 for turn in found):
            raise ValueError("a turn is what is said and what is answered")
        return Dialogue(tuple(map(tuple, found)))

    def read(self, seed: int) -> Splits[Dialogue]:
        def divide(found: list[Dialogue], what: str) -> Splits[Dialogue]:
            return divide_samples(found, lambda one: one.turns, what, self.cut, lambda one: one.opening)

        return open_splits(self, chat_jsonl.read_dialogues, divide, (SMALLTALK,))


READERS: dict[str, type[Reader]] = {SMALLTALK: SmallTalk, FILES: Dialogues}
