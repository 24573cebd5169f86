"""Chat (conversations): a decoder learns to answer, turn by turn; what a user says is read and not learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import nn

from heedful.data.collate import Batch, Collate, alike, stack, to
from heedful.data.formats.chat_jsonl import Dialogue
from heedful.data.near_duplicates import Content
from heedful.data.readers.dialogues import READERS
from heedful.data.splits import Splits
from heedful.decoding.chat_template import KNOWN
from heedful.looking.page import Samples
from heedful.metrics.perplexity import LogLikelihood, Perplexity, TokenSums, WrittenTokens
from heedful.models.numerics import device_of
from heedful.objectives.cross_entropy import cross_entropy
from heedful.objectives.next_token import NONE, AnswerTokens
from heedful.pipelines.chat_pipeline import ChatLearned, Chatting, Spoken
from heedful.pipelines.choose_tokenizer import tokenizer_for
from heedful.pipelines.pipeline import Heard
from heedful.results import Text
from heedful.tasks.task import Task

ROOM = 8192  # tokens that are read at once


def fit(splits: Splits[Dialogue], reader: Any, seed: int) -> ChatLearned:
    """Learns of conversations how they become tokens."""
    said = (text for one in splits.train for turn in one.turns for text in turn)
    return ChatLearned.speaking(tokenizer_for(reader.tokenizer, said, tuple(KNOWN[0].names)))


def encode_dialogues(splits: Splits[Dialogue], learned: ChatLearned) -> Splits[Spoken]:
    """Conversations as tokens; as long as the model reads, where it is known."""
    made = ([tokens_of(one, learned) for one in part] for part in (splits.train, splits.valid, splits.test))
    if not learned.longest:
        return Splits(*made)
    return Splits(*([COLLATE.shortened(one, learned.longest, learned) for one in part] for part in made))


def tokens_of(dialogue: Dialogue, learned: ChatLearned) -> Spoken:
    """A conversation as tokens, those of answers marked, and the one with which each of them ends."""
    script = learned.script
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


@dataclass(frozen=True)
class ChatCollate(Collate[ChatLearned]):
    """Conversations, and for each of their tokens the next one where that is an answer's."""

    filled: ClassVar[bool] = True

    def length(self, sample: Spoken, learned: ChatLearned) -> int:
        return len(sample.ids) - 1

    def batch(self, samples: Sequence[Spoken], learned: ChatLearned) -> Batch:
        return {
            "tokens": stack([one.ids[:-1] for one in samples]),
            "answer": stack([one.answer[1:] for one in samples]),
        }

    def shortened(self, sample: Spoken, longest: int, learned: ChatLearned) -> Spoken:
        """The end of a conversation that is longer, behind what all begin with: there the answers are."""
        over, begun = len(sample.ids) - longest - 1, len(learned.script.begun)
        if over <= 0:
            return sample
        ids, answer = ([*row[:begun], *row[begun + over :]] for row in (sample.ids, sample.answer))
        return replace(sample, ids=ids, answer=answer)

    def contents(self, sample: Spoken) -> dict[str, Content]:
        return {"openings": sample.read.opening}

    def source_of(self, sample: Spoken) -> str:
        return sample.read.place

    def as_input(self, sample: Spoken, learned: ChatLearned) -> str:
        return sample.read.opening


COLLATE = ChatCollate()


@torch.no_grad()
def judge(model: nn.Module, samples: Sequence[Spoken], learned: ChatLearned, heard: Heard) -> TokenSums:
    """The losses of the tokens of answers, and of how many the likeliest one is right."""
    model.eval()
    sums = TokenSums()
    for places in alike([COLLATE.length(one, learned) for one in samples], ROOM):
        batch = to(COLLATE.batch([samples[at] for at in places], learned), device_of(model))
        answer, scores = batch["answer"].flatten() - 1, model(batch["tokens"]).flatten(0, 1)
        right, count = int((scores.argmax(-1) == answer).sum()), int((answer != NONE).sum())
        sums += TokenSums(float(cross_entropy(scores, answer, NONE)), count, right, count)
        heard(len(places))
    return sums


def table(samples: Sequence[Spoken], results: Sequence[Text], learned: ChatLearned) -> Samples:
    """What users say first, the answers, and what was written."""
    rows = tuple((*one.read.turns[0], said.text) for one, said in zip(samples, results, strict=True))
    return Samples("Questions it never saw", ("said", "answer", "written"), rows)


TASK = Task(
    name="chat",
    readers=READERS,
    fit=fit,
    learned=ChatLearned,
    encode=encode_dialogues,
    collate=COLLATE,
    objective=AnswerTokens(),
    metrics=(LogLikelihood(source=judge), Perplexity(source=judge), WrittenTokens(source=judge)),
    watch="log_likelihood",
    pipeline=Chatting(),
    table=table,
    families=("gpt", "llama"),
    inherits=True,
    shown=1,
)
