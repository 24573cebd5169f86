"""Tagging (named entities): which words of a sentence name a person, a place or whatever else has been marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor

from heedful.data.collate import stack
from heedful.data.encoded_text import EncodedText
from heedful.data.formats.conll import OUTSIDE, Tagged, spans
from heedful.data.readers.tagged_words import WNUT17, Mentions, TaggedWords
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.metrics.span_f1 import SpanF1
from heedful.objectives.text_answers import TextAnswers
from heedful.pipelines.token_classification import WordTags, first_tokens
from heedful.pipelines.viterbi_tags import ViterbiTags
from heedful.tasks.task import Task
from heedful.tasks.text.fine_tuning import FAMILIES, Labelled, TextCollate
from heedful.tokenizers import Joined
from heedful.views.members_worth import MembersWorth
from heedful.views.spans_by_kind import NAMED, spans_by_kind, tagged_sentences


@dataclass(frozen=True)
class TagsOfWords(Labelled, WordTags):
    """The tags of words to learn from: that of no span first."""

    @classmethod
    def fit(cls, splits: Splits[Tagged], reader: Any, seed: int) -> Self:
        """Learns of the sentences to learn from."""
        found = {tag for sample in splits.train for tag in sample.tags} - {OUTSIDE}
        if not found:
            raise Refusal("no word to learn from has a tag but O; tag some of them B-kind, and I-kind where it goes on")
        labels = (OUTSIDE, *sorted(found, key=lambda tag: tag.partition("-")[::-1]))
        return cls.of_texts(splits, reader, seed, labels=labels)

    def describe_data(self, splits: Splits[EncodedText]) -> str:
        words = sum(len(sample.read.words) for sample in splits.train)
        counts = Counter(kind for sample in splits.train for kind, _, _ in spans(sample.read.tags)).most_common()
        said = [f"{kind} {count:,}" for kind, count in counts[:NAMED]]
        more = f" and {len(counts) - NAMED:,} more" if len(counts) > NAMED else ""
        return f"spans     {', '.join(said)}{more}, among {words:,} words"


@dataclass(frozen=True)
class TagCollate(TextCollate[TagsOfWords]):
    """Sentences with the tag of each word, at its first token."""

    def judge(self, read: Tagged, joined: Joined, learned: TagsOfWords) -> list[int]:
        """One more than the number of the tag, at the first token of each word; 0 elsewhere."""
        made = [0] * len(joined.ids)
        for word, at in first_tokens(joined).items():
            tag = read.tags[word]
            if tag not in learned.labels:
                raise Refusal(f"{read.place}: tag {tag!r} is not in the training data; train on it or drop it")
            made[at] = learned.labels.index(tag) + 1
        return made

    def answers(self, samples: Sequence[EncodedText]) -> Tensor:
        return stack([sample.answer for sample in samples])


COLLATE = TagCollate()
PIPELINE = ViterbiTags()
METRICS = (SpanF1(),)
TASK = Task(
    name="tag",
    readers={"mentions": Mentions, "wnut17": WNUT17, "files": TaggedWords},
    fit=TagsOfWords.fit,
    learned=TagsOfWords,
    encode=COLLATE.encoded,
    collate=COLLATE,
    objective=TextAnswers(),
    metrics=METRICS,
    watch="f1",
    pipeline=PIPELINE,
    table=tagged_sentences,
    views=(spans_by_kind, MembersWorth(PIPELINE, METRICS, "f1")),
    families=FAMILIES,
    inherits=True,
)
