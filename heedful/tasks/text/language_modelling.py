"""Language modelling: a decoder learns what comes next, token by token, and so to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import nn

from heedful.data.collate import Batch, several, to
from heedful.data.readers.corpus import Cropped, Noisy, readers_of_texts
from heedful.data.splits import Splits
from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import PAD, Crop
from heedful.decoding import Decoding, search
from heedful.looking.page import Samples
from heedful.metrics.perplexity import BitsPerCharacter, LogLikelihood, Perplexity, TokenSums
from heedful.models.numerics import device_of
from heedful.models.specs import UNKNOWN
from heedful.models.writer import Writer, language_model, longest
from heedful.objectives.cross_entropy import cross_entropy
from heedful.objectives.next_token import NextToken
from heedful.pipelines.pipeline import Heard
from heedful.pipelines.text_generation import One, TextGeneration
from heedful.results import Text as Written
from heedful.tasks.task import Task
from heedful.tasks.text.cropping import CropCollate, CropLearned, crop_texts, with_stride

SCORES = 1 << 26  # scores of tokens that are made at once where nothing is learned
GIVEN, AHEAD = 48, 48  # tokens of a text that are shown, and that are written then
LOOKED = 24  # tokens of a text that is looked into, and at most as many that are written


class Keys(Cropped, Noisy):
    """The keys of texts that a decoder learns to go on with."""

    apart: bool = True
    """Whether texts that are packed into one row are hidden from one another."""


def fit(splits: Splits[Text], reader: Any, seed: int) -> CropLearned:
    """Learns of texts how they become tokens."""
    own = {"noise": reader.noise or 0.0, "apart": reader.apart, "stride": reader.stride}
    return CropLearned.of_texts(splits, reader, seed, longest=reader.longest, **own)


def again(reader: Any, learned: CropLearned) -> tuple[Any, CropLearned]:
    """Other texts; apart or not where they say it, so that a kind can be scored that cannot keep texts apart."""
    apart = reader.apart if "apart" in reader.model_fields_set else learned.apart
    return with_stride(reader, replace(learned, apart=apart))


@dataclass(frozen=True)
class NextTokenCollate(CropCollate[CropLearned]):
    """Crops, and for each of their tokens the next one."""

    def batch(self, samples: Sequence[Crop], learned: CropLearned) -> Batch:
        made = self.rows(samples, learned.longest + 1, learned)
        whole = made["tokens"]
        made |= {"tokens": whole[:, :-1].contiguous(), "answer": whole[:, 1:].contiguous()}
        if "documents" in made:
            owners = made.pop("documents")
            made["answer"] = made["answer"].masked_fill(owners[:, 1:] != owners[:, :-1], PAD)  # BEGIN is not foreseen
            if learned.apart:
                made["documents"] = owners[:, :-1].contiguous()
        return made

    def as_input(self, sample: Crop, learned: CropLearned) -> str:
        return learned.text(sample, 0, min(given_of(learned), LOOKED))


COLLATE = NextTokenCollate()


@torch.no_grad()
def judge(model: nn.Module, samples: Sequence[Crop], learned: CropLearned, heard: Heard) -> TokenSums:
    """The losses of the tokens that crops judge, each given what stands before it."""
    model.eval()
    reader = language_model(model)
    sums = TokenSums()
    for size in sorted({one.judged for one in samples}):
        alike = [one for one in samples if one.judged == size]
        for some in several(alike, max(1, SCORES // (size * reader.spec.vocab))):
            batch = to(COLLATE.batch(some, learned), device_of(model))
            states = reader.read(batch["tokens"], documents=batch.get("documents"))
            answer = batch["answer"][:, -size:].flatten()
            loss = cross_entropy(reader.outputs(states[:, -size:]).flatten(0, 1), answer, PAD)
            sums += TokenSums(float(loss), int((answer != PAD).sum()))
            heard(len(some))
    return sums


def given_of(learned: CropLearned) -> int:
    """How many tokens of a crop are shown, so that as many can be written."""
    return max(1, min(GIVEN, learned.longest // 2))


def short(learned: CropLearned, ahead: int) -> Decoding:
    """How answers to be shown are searched for: of so many tokens, at most."""
    asked = learned.decoding.max_new_tokens or ahead
    return learned.decoding.but(max_new_tokens=max(1, min(asked, ahead, learned.longest - given_of(learned))))


@dataclass(frozen=True)
class Continuation(TextGeneration[CropLearned]):
    """Continuation: a text goes on; of a crop, which is shown, the beginning does, for a few tokens."""

    def results(self, model: nn.Module, samples: Sequence[Any], learned: CropLearned, heard: Heard) -> list[Written]:
        if not all(isinstance(one, Crop) for one in samples):
            return super().results(model, samples, learned, heard)
        model.eval()
        given = given_of(learned)
        ids = torch.stack([torch.from_numpy(one.stream.tokens(slice(one.start, one.start + given))) for one in samples])
        found = search(cast(Writer, model), {"prompt": ids.to(device_of(model))}, short(learned, AHEAD))
        heard(len(samples))
        return [Written(learned.tokenizer.decode(answer.tokens)) for [answer] in found]

    def looked_at(self, model: nn.Module, prompt: One, learned: CropLearned) -> Decoding:
        room = longest(model) - len(learned.tokenizer.encode(str(prompt)))  # a text may be cut anew, into more
        return short(learned, max(1, min(LOOKED, room)))

    def warning(self, given: str, learned: CropLearned) -> str | None:
        if learned.tokenizer.kind not in ("characters", "words"):
            return None
        parts = given if learned.tokenizer.kind == "characters" else given.split()
        never = sorted({part for part in parts if UNKNOWN in learned.tokenizer.encode(part)})
        return f"{given!r} holds what the model never saw: {' '.join(map(repr, never))}" if never else None


def table(samples: Sequence[Crop], results: Sequence[Written], learned: CropLearned) -> Samples:
    """Texts, how they go on, and what was written in that place."""
    given = given_of(learned)
    rows = tuple(
        (
            in_one_line(learned.text(one, 0, given)),
            in_one_line(learned.text(one, given, given + AHEAD)),
            in_one_line(written.text),
        )
        for one, written in zip(samples, results, strict=True)
    )
    return Samples("Texts it never saw", ("text", "goes on", "written"), rows)


def in_one_line(text: str) -> str:
    """A text in one line; ends of lines are signs, and so is that there is none."""
    return text.replace("\n", " ⏎ ").strip() or "∅"


TASK = Task(
    name="language-modelling",
    readers=readers_of_texts(Keys),
    fit=fit,
    learned=CropLearned,
    encode=crop_texts,
    again=again,
    collate=COLLATE,
    objective=NextToken(),
    metrics=(LogLikelihood(source=judge), Perplexity(source=judge), BitsPerCharacter(source=judge)),
    watch="log_likelihood",
    pipeline=Continuation(),
    table=table,
    families=("gpt", "llama"),
    shown=1,
)
