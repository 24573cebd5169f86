"""Chat pipeline: what a user says becomes an answer, by special tokens for who speaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from torch import nn

from heedful.data.formats.chat_jsonl import Dialogue
from heedful.decoding import Decoding
from heedful.decoding.chat_template import KNOWN, Script, spoken_by
from heedful.decoding.logits_rules import Rules
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.models.specs import LanguageSpec
from heedful.pipelines.pipeline import Heard, nonempty
from heedful.pipelines.text_generation import DecoderLearned, One, TextGeneration
from heedful.results import Text
from heedful.tokenizers import Tokenizer

SHOWN = 48  # tokens of answers that are shown


@dataclass(frozen=True, slots=True)
class Spoken:
    """A conversation, its tokens, and one more than each of them where it is an answer's, or ends one; else 0."""

    read: Dialogue
    ids: list[int]
    answer: list[int]


@dataclass(frozen=True)
class ChatLearned(DecoderLearned):
    """A tokenizer with tokens for who speaks; where it has none, they are put behind all others."""

    @classmethod
    def speaking(cls, tokenizer: Tokenizer, **own: Any) -> Self:
        """What is kept of a tokenizer of any make."""
        return cls(tokenizer if spoken_by(tokenizer) else tokenizer.with_special(KNOWN[0].names), **own)

    @cached_property
    def script(self) -> Script:
        """How conversations are written as tokens."""
        return Script(self.tokenizer)

    def defaults(self) -> dict[str, Any]:
        return {"vocab": len(self.tokenizer)}

    def resize_vocab(self, vocab: int) -> int:
        return max(vocab, len(self.tokenizer))

    def suited(self, spec: Spec) -> Self:
        if isinstance(spec, LanguageSpec) and len(self.tokenizer) > spec.vocab:
            raise Refusal(f"the tokenizer has {len(self.tokenizer)} tokens and the model {spec.vocab}; copy both again")
        return replace(self, longest=spec.longest)

    @property
    def short(self) -> Decoding:
        """How answers are searched for that are shown: short ones."""
        most = min(self.decoding.max_new_tokens or SHOWN, SHOWN, max(1, self.longest // 2))
        return self.decoding.but(max_new_tokens=most)

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        kept = DecoderLearned.read(folder, state)
        return cls.speaking(kept.tokenizer, search=kept.search)


@dataclass(frozen=True)
class Chatting(TextGeneration[ChatLearned]):
    """Chat: an answer to what a user says, without what was said before; to a sample, which is shown, a short one."""

    input: str = "what a user says"

    def accepts(self, given: Any, learned: ChatLearned) -> list[int]:
        return prompt(nonempty(given, self.input), learned)

    def rules(self, decoding: Decoding, learned: ChatLearned) -> Rules:
        return replace(decoding.rules, also=learned.script.ends)

    def looked_at(self, model: nn.Module, prompt: One, learned: ChatLearned) -> Decoding:
        return learned.short

    def results(self, model: nn.Module, samples: Sequence[Any], learned: ChatLearned, heard: Heard) -> list[Text]:
        if not all(isinstance(one, Spoken) for one in samples):
            return super().results(model, samples, learned, heard)
        model.eval()
        prompts = [prompt(one.read.opening, learned) for one in samples]
        return [answers[0] for answers in self.written(model, prompts, learned, learned.short, heard=heard)]


def prompt(text: str, learned: ChatLearned) -> list[int]:
    """What a user says, as a model reads it that is to answer."""
    return [*learned.script.begun, *learned.script.asked(text)]
