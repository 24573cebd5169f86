"""Conversations: a decoder learns to answer, turn by turn; what a user says is read and not learned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, alike, several, stack, to
from heedful.data.data_spec import DataSpec
from heedful.data.formats.chat_jsonl import Dialogue, dialogues
from heedful.data.near_duplicates import Content
from heedful.data.splits import Splits
from heedful.decoding import Decoding, search, stream
from heedful.decoding.chat import KNOWN, Script, spoken_by
from heedful.decoding.prompts import Asked
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.maps_of_seen import maps
from heedful.looking.page import Example, Samples
from heedful.models import Spec
from heedful.models.numerics import device_of
from heedful.models.specs import LanguageSpec
from heedful.objectives.cross_entropy import cross_entropy
from heedful.pipelines.choose_tokenizer import tokenizer_for
from heedful.pipelines.reading_inputs import nonempty, read_all
from heedful.results import Text
from heedful.tasks.closed import PLAIN, Task, Terms
from heedful.tasks.continuing import AT_ONCE, Continuing
from heedful.tokenizers import Tokenizer, hf_folders

ROOM, SHOWN = 8192, 48  # tokens that are read at once, and of answers that are shown
NONE = -1  # what stands where nothing is learned


@dataclass(frozen=True, slots=True)
class Spoken:
    """A conversation, its tokens, and one more than each of them where it is an answer's, or ends one; else 0."""

    read: Dialogue
    ids: list[int]
    answer: list[int]


class Conversation(Continuing, Task):
    """Answers what a user says, by special tokens for who speaks; scored by how likely it finds the answers."""

    name: ClassVar[str] = "conversation"
    family: ClassVar[str] = "gpt"
    also: ClassVar[tuple[str, ...]] = ("llama",)
    watch: ClassVar[str] = "log_likelihood"
    ordered: ClassVar[bool] = True
    inherits: ClassVar[bool] = True
    filled: bool = True
    input: ClassVar[str] = "what a user says"
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing"})
    keys: ClassVar[frozenset[str]] = frozenset({"split_seed", "tokenizer", "too_long"})
    told: ClassVar[int] = 1
    longest = 0

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer if spoken_by(tokenizer) else tokenizer.with_special(KNOWN[0].names)

    @cached_property
    def script(self) -> Script:
        """How conversations are written as tokens."""
        return Script(self.tokenizer)

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Spoken]]:
        splits = dialogues(data, seed)
        if not len(splits.train):
            raise Refusal("data.train is not given; add data.train=...")
        said = (text for one in splits.train for turn in one.turns for text in turn)
        task = cls(tokenizer_for(data.tokenizer, said, tuple(KNOWN[0].names)))
        return task, task.encoded(splits)

    def reopen(self, data: DataSpec, seed: int) -> Splits[Spoken]:
        splits = self.encoded(dialogues(data, seed))
        parts = (splits.train, splits.valid, splits.test)
        return Splits(*([self.shortened(one, self.longest) for one in part] for part in parts))

    def encoded(self, splits: Splits[Dialogue]) -> Splits[Spoken]:
        """Conversations as tokens."""
        return Splits(*([self.spoken(one) for one in part] for part in (splits.train, splits.valid, splits.test)))

    def spoken(self, dialogue: Dialogue) -> Spoken:
        """A conversation as tokens, those of answers marked, and the one with which each of them ends."""
        script = self.script
        ids, wanted = list(script.begun), [False] * len(script.begun)
        for at, (user, said) in enumerate(dialogue.turns):
            asked, answer, ending = script.asked(user), script.plain(said), script.written(script.roles.end)
            ids += [*asked, *answer, *ending]
            # Without a token of its own, what ends an answer is the one with which the user's next turn begins.
            wanted += [bool(at) and not ending, *[False] * (len(asked) - 1), *[True] * len(answer)]
            wanted += [place == 0 for place in range(len(ending))]
        if not script.roles.end:
            ids, wanted = [*ids, *script.ends], [*wanted, True]
        return Spoken(dialogue, ids, [token + 1 if one else 0 for token, one in zip(ids, wanted, strict=True)])

    def shortened(self, sample: Spoken, longest: int) -> Spoken:
        """The end of a conversation that is longer, behind what all begin with: there the answers are."""
        over, begun = len(sample.ids) - longest - 1, len(self.script.begun)
        if over <= 0:
            return sample
        ids, answer = ([*row[:begun], *row[begun + over :]] for row in (sample.ids, sample.answer))
        return replace(sample, ids=ids, answer=answer)

    def defaults(self) -> dict[str, Any]:
        return {"vocab": len(self.tokenizer)}

    def grown(self, vocab: int) -> int:
        return max(vocab, len(self.tokenizer))

    def suits(self, spec: Spec) -> None:
        self.longest = spec.length
        if isinstance(spec, LanguageSpec) and len(self.tokenizer) > spec.vocab:
            raise Refusal(f"the tokenizer has {len(self.tokenizer)} tokens and the model {spec.vocab}; copy both again")

    def prepare(self, model: nn.Module) -> None:
        vars(model)["tokenizer"] = self.tokenizer  # as one that is loaded has it

    def contents(self, sample: Spoken) -> dict[str, Content]:
        return {"openings": sample.read.opening}

    def length(self, sample: Spoken) -> int:
        return len(sample.ids) - 1

    def place(self, sample: Spoken) -> str:
        return sample.read.place

    # ------------------------------------------------------------------ learning

    def batch(self, samples: Sequence[Spoken]) -> Batch:
        return {
            "tokens": stack([one.ids[:-1] for one in samples]),
            "answer": stack([one.answer[1:] for one in samples]),
        }

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        answer = batch["answer"].flatten() - 1
        total = cross_entropy(model(batch["tokens"]).flatten(0, 1), answer, NONE, terms.smoothing)
        return total, (answer != NONE).sum()

    @torch.no_grad()
    def score(self, model: nn.Module, samples: Sequence[Spoken]) -> dict[str, float]:
        """The mean log-likelihood of a token of an answer, its perplexity, and how many are the likeliest."""
        model.eval()
        total, count, right = 0.0, 0, 0
        for places in alike([self.length(one) for one in samples], ROOM):
            batch = to(self.batch([samples[at] for at in places]), device_of(model))
            answer, scores = batch["answer"].flatten() - 1, model(batch["tokens"]).flatten(0, 1)
            total += float(cross_entropy(scores, answer, NONE))
            right, count = right + int((scores.argmax(-1) == answer).sum()), count + int((answer != NONE).sum())
            self.tell(len(places))
        nats = total / max(1, count)
        return {"log_likelihood": -nats, "perplexity": math.exp(min(nats, 700.0)), "tokens": right / max(1, count)}

    # ------------------------------------------------------------------ answering

    def best(
        self, model: nn.Module, inputs: Iterable[str], decoding: Decoding, best: int = 1, seed: int = 0
    ) -> Iterator[list[Text]]:
        """The n best answers to what a user says, each without what was said before, with their scores."""
        prompts = read_all(inputs, lambda text: self.prompt(nonempty(text, self.input)))
        rules = replace(decoding.rules, also=self.script.ends)
        for first, group in enumerate(several(prompts, AT_ONCE)):
            asked = Asked(model, list(group))
            numbers = [AT_ONCE * first + at for at in range(len(group))]
            for answers in search(asked.writer, asked.batch, decoding, best, seed, numbers, rules=rules):
                yield [Text(self.tokenizer.decode(one.tokens), one.ranked(decoding.length_penalty)) for one in answers]

    def stream(self, model: nn.Module, text: str, decoding: Decoding, seed: int = 0, number: int = 0) -> Iterator[str]:
        """The answer in pieces, as they are written."""
        asked = Asked(model, self.prompt(nonempty(text, self.input)))
        rules = replace(decoding.rules, also=self.script.ends)
        return self.tokenizer.stream(stream(asked.writer, asked.batch, decoding, seed, number, rules))

    def prompt(self, text: str) -> list[int]:
        """What a user says, as a model reads it that is to answer."""
        return [*self.script.begun, *self.script.asked(text)]

    @property
    def shown(self) -> Decoding:
        """How answers are searched for that are shown: short ones."""
        most = min(self.decoding.max_new_tokens or SHOWN, SHOWN, max(1, self.longest // 2))
        return self.decoding.but(max_new_tokens=most)

    def show(self, model: nn.Module, samples: Sequence[Spoken]) -> Samples:
        model.eval()
        turns = [one.read.turns[0] for one in samples]
        said = [found[0].text for found in self.best(model, [user for user, _ in turns], self.shown)]
        rows = tuple((user, answer, one) for (user, answer), one in zip(turns, said, strict=True))
        return Samples("Questions it never saw", ("said", "answer", "written"), rows)

    @torch.no_grad()
    def look(self, model: nn.Module, text: str) -> Example:
        asked = Asked(model, self.prompt(nonempty(text, self.input)))
        rules = replace(self.shown.rules, also=self.script.ends)
        [[answer]] = search(asked.writer, asked.batch, self.shown, rules=rules)
        whole = torch.tensor([[*asked.rows[0], *answer.tokens]], device=asked.device)
        model.eval()
        with look(model) as seen:
            model(whole)
        words = self.tokenizer.pieces(whole[0].tolist())
        return Example(f"{text} → {self.tokenizer.decode(answer.tokens)}", maps(seen, lambda path: (words, words)))

    # ------------------------------------------------------------------ keeping

    def write_input(self, sample: Spoken) -> str:
        return sample.read.turns[0][0]

    def state(self) -> dict[str, Any]:
        return {"decoding": self.decoding.model_dump(exclude_none=True)}

    def write(self, folder: Path) -> None:
        super().write(folder)
        self.tokenizer.write(folder / "tokenizer.json")

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        task = cls(hf_folders.needed(folder))
        task.decoding = Decoding.model_validate(state.get("decoding", {}))
        return task
