"""Chat template: turns between roles, written as the tokens that a model learned them by; and talking with a model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import nn

from heedful.decoding.sample import stream
from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.models.writer import longest, writes

NAME = r"<[^<>\s]+>"  # of a special token


@dataclass(frozen=True)
class Roles:
    """How turns are written: what stands before a user's, between the two, and behind an answer, which ends there."""

    user: str
    answer: str
    end: str = ""

    @property
    def names(self) -> list[str]:
        """The special tokens that it is written with."""
        return re.findall(NAME, self.user + self.answer + self.end)


# The first whose tokens a tokenizer has. A template that lies beside a model is a program, and is never run.
KNOWN = (
    Roles("<User:>", "<Assistant:>"),
    Roles("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n"),
    Roles(
        "<|start_header_id|>user<|end_header_id|>\n\n",
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|eot_id|>",
    ),
    Roles("<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n", "<end_of_turn>\n"),
    Roles("<|user|>\n", "<|end|>\n<|assistant|>\n", "<|end|>\n"),
)


def spoken_by(tokenizer: Any) -> Roles | None:
    """The roles whose special tokens a tokenizer has."""
    known = tokenizer.layout.known
    return next((roles for roles in KNOWN if all(name in known for name in roles.names)), None)


class Script:
    """How conversations are written as tokens: special ones say who speaks, and a text never speaks for another."""

    def __init__(self, tokenizer: Any) -> None:
        roles = spoken_by(tokenizer)
        if roles is None:
            raise Refusal(
                "the model's tokenizer has no tokens for who speaks, such as <User:> and <Assistant:>; "
                "chat with a model that learned from conversations"
            )
        self.tokenizer, self.roles = tokenizer, roles
        self.known: dict[str, int] = tokenizer.layout.known

    @property
    def begun(self) -> list[int]:
        """What stands before a conversation: what the tokenizer puts before every text."""
        silent = {*self.tokenizer.special.values()}
        return [at for at in self.tokenizer.encode("")[:1] if at in silent]

    def asked(self, text: str) -> list[int]:
        """The prompt of a user's turn, up to where the answer begins."""
        return [*self.written(self.roles.user), *self.plain(text), *self.written(self.roles.answer)]

    @property
    def ends(self) -> tuple[int, ...]:
        """The end of an answer: a token behind it, or the token that begins the user's next turn."""
        return (self.known[re.findall(NAME, self.roles.end or self.roles.user)[0]],)

    def written(self, text: str) -> list[int]:
        """The ids of what stands between turns: special tokens by their names, and plain text."""
        parts = [part for part in re.split(f"({NAME})", text) if part]
        return [at for part in parts for at in ([self.known[part]] if part in self.known else self.plain(part))]

    def plain(self, text: str) -> list[int]:
        """The ids of a text, in which nobody speaks for somebody else: special tokens are left out."""
        silent = {at for name, at in self.tokenizer.special.items() if "unk" not in name.casefold()}
        return [at for at in self.tokenizer.encode(text) if at not in silent]


class Chat(Script):
    """A conversation with a model: what was said is read again with every turn, as far back as there is room."""

    def __init__(self, model: nn.Module, decoding: Decoding) -> None:
        if not writes(model) or model.reads:
            family = getattr(getattr(model, "spec", None), "family", type(model).__name__)
            raise Refusal(f"a model of family {family!r} does not chat; ask it with `heedful predict`")
        if getattr(model, "tokenizer", None) is None:
            raise Refusal("the model has no tokenizer to chat with; load it from a folder that has one")
        super().__init__(model.tokenizer)
        self.writer, self.decoding = model, decoding
        self.device = next(model.parameters()).device
        self.turns: list[list[int]] = []

    def reset(self) -> None:
        """Forgets what was said."""
        self.turns = []

    def say(self, text: str, seed: int = 0) -> Iterator[str]:
        """The answer to what a user says, in pieces as it is written."""
        asked = self.asked(text)
        prompt = torch.tensor([self.fitted(asked)], device=self.device)
        rules, said = replace(self.decoding.rules, also=self.ends), list[int]()
        most = min(self.decoding.max_new_tokens or self.room, self.room - prompt.shape[1])
        batch, decoding = {"prompt": prompt}, self.decoding.but(max_new_tokens=most)
        tokens = stream(self.writer, batch, decoding, seed, len(self.turns), rules)
        yield from self.tokenizer.stream(keep_tokens(tokens, said))
        self.turns.append([*asked, *said, *self.written(self.roles.end)])

    @property
    def room(self) -> int:
        """How many tokens the model can have before it, its answer among them."""
        return min(longest(self.writer), cast(Any, self.writer).spec.length)

    def fitted(self, asked: list[int]) -> list[int]:
        """As many of the last turns as the model has room for, with what is asked now behind them."""
        begin = self.begun
        room = self.room - len(begin) - len(asked)
        if room < 1:
            raise Refusal(f"that is {len(asked)} tokens long, and the model has room for {self.room}; say less")
        room -= self.decoding.max_new_tokens or 1  # a long answer goes before old turns
        turns: list[int] = []
        for turn in reversed(self.turns):
            if len(turns) + len(turn) > room:
                break
            turns = turn + turns
        return begin + turns + asked


def keep_tokens(tokens: Iterator[int], said: list[int]) -> Iterator[int]:
    """Tokens as they come, each of them kept."""
    for token in tokens:
        said.append(token)
        yield token
