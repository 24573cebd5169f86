"""Words and their tags: which words of a sentence name a person, a place or whatever else has been marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.collate import stack
from heedful.data.data_spec import DataSpec
from heedful.data.formats.conll import GOES_ON, OUTSIDE, Span, Tagged, spans, tagged
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking.page import Confusion, Figures, Samples
from heedful.results import Tags
from heedful.tasks.asking import Tagging, first_tokens
from heedful.tasks.fitted import Asked, Fitted, last_layer
from heedful.tokenizers import Joined
from heedful.views.finding import Finding

NAMED = 12  # kinds that are told one by one


class Tag(Tagging, Fitted):
    """Gives each word a tag, by its first token; scored by F1 over whole spans, as CoNLL's program does."""

    name: ClassVar[str] = "tag"
    watch: ClassVar[str] = "f1"

    @classmethod
    def opened(cls, data: DataSpec, seed: int) -> Splits[Tagged]:
        return tagged(data, seed)

    def learn(self, samples: Sequence[Tagged]) -> None:
        found = {tag for sample in samples for tag in sample.tags}
        self.labels = [OUTSIDE, *sorted(found - {OUTSIDE}, key=lambda tag: tag.partition("-")[::-1])]
        if len(self.labels) < 2:
            raise Refusal("no word to learn from has a tag but O; tag some of them B-kind, and I-kind where it goes on")

    def judge(self, sample: Tagged, joined: Joined) -> list[int]:
        """One more than the number of the tag, at the first token of each word; 0 elsewhere."""
        made = [0] * len(joined.ids)
        for word, at in first_tokens(joined).items():
            tag = sample.tags[word]
            if tag not in self.labels:
                raise Refusal(f"{sample.place}: tag {tag!r} is none that is trained on; train on it or drop it")
            made[at] = self.labels.index(tag) + 1
        return made

    def numbers(self) -> dict[str, Any]:
        return {"classes": len(self.labels), "labels": list(self.labels)}

    def noted(self, splits: Splits[Asked]) -> str:
        words = sum(len(sample.read.words) for sample in splits.train)
        counts = Counter(kind for sample in splits.train for kind, _, _ in spans(sample.read.tags)).most_common()
        said = [f"{kind} {count:,}" for kind, count in counts[:NAMED]]
        more = f" and {len(counts) - NAMED:,} more" if len(counts) > NAMED else ""
        return f"spans     {', '.join(said)}{more}, among {words:,} words"

    def answers_of(self, samples: Sequence[Asked]) -> Tensor:
        return stack([sample.answer for sample in samples])

    # ------------------------------------------------------------------ answering

    def answer(self, joined: Joined, given: Tensor) -> Tags:
        """The likeliest row of tags in which no span goes on that was not begun (Viterbi, 1967)."""
        places = first_tokens(joined)
        chances = given.double().log_softmax(-1).cpu().numpy()[list(places.values())]
        row = dict(zip(places, likeliest(chances, follows(self.labels)), strict=True))
        words = tuple(joined.texts[0].split())
        return Tags(words, tuple(self.labels[row[at]] if at in row else OUTSIDE for at in range(len(words))))

    def tagged(self, model: nn.Module, samples: Sequence[Asked]) -> list[tuple[str, ...]]:
        """The tags of each sample's words."""
        given = self.given(model, [sample.joined for sample in samples])
        return [self.answer(one.joined, scores).tags for one, scores in zip(samples, given, strict=True)]

    def score(self, model: nn.Module, samples: Sequence[Asked]) -> dict[str, float]:
        said = [spans(tags) for tags in self.tagged(model, samples)]
        hit, wrong, missed = counted([spans(one.read.tags) for one in samples], said)
        made = scores(sum(hit.values()), sum(wrong.values()), sum(missed.values()))
        return dict(zip(("precision", "recall", "f1"), made, strict=True))

    def show(self, model: nn.Module, samples: Sequence[Asked]) -> Samples:
        told = self.tagged(model, samples)
        rows = tuple(
            (one.read.texts[0], named(one.read, one.read.tags), named(one.read, tags))
            for one, tags in zip(samples, told, strict=True)
        )
        right = tuple(truth == said for _, truth, said in rows)
        return Samples("Sentences it never saw", ("text", "spans", "said"), rows, right)

    def finding(self, model: nn.Module, samples: Sequence[Asked]) -> Finding | None:
        said = self.tagged(model, samples)
        hit, wrong, missed = counted([spans(one.read.tags) for one in samples], [spans(tags) for tags in said])
        kinds = sorted({*hit, *wrong, *missed}, key=lambda kind: -hit[kind] - missed[kind])[:NAMED]
        cards = []
        for kind in kinds:
            precision, recall, f1 = scores(hit[kind], wrong[kind], missed[kind])
            note = f"F1; precision {100 * precision:.1f} %, recall {100 * recall:.1f} % of {hit[kind] + missed[kind]:,}"
            cards.append((kind, f"{100 * f1:.1f} %", note))
        table = Confusion("What was taken for what, word by word", *self.confused(samples, said))
        more = self.alone(model, samples)
        return Finding(Figures("Kind by kind", tuple(cards)), last_layer(model), "mean", (*more, table))

    def confused(
        self, samples: Sequence[Asked], said: Sequence[Sequence[str]]
    ) -> tuple[tuple[str, ...], list[list[int]]]:
        """The kinds of words, and how often each (a row) was taken for each (a column)."""
        kinds = list(dict.fromkeys(tag.partition("-")[2] or OUTSIDE for tag in self.labels))
        counts = np.zeros((len(kinds), len(kinds)), dtype=np.int64)
        for one, tags in zip(samples, said, strict=True):
            for pair in zip(one.read.tags, tags, strict=True):
                truth, told = (kinds.index(tag.partition("-")[2] or OUTSIDE) for tag in pair)
                counts[truth, told] += 1
        return tuple(kinds), counts.tolist()

    # ------------------------------------------------------------------ keeping

    def state(self) -> dict[str, Any]:
        return {"labels": list(self.labels)}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        return cls.labelled(folder, state)


def named(sample: Tagged, tags: Sequence[str]) -> str:
    """The spans of a sentence as people read them."""
    return "; ".join(f"{kind}: {' '.join(sample.words[first:last])}" for kind, first, last in spans(tags)) or "none"


def counted(truth: Sequence[list[Span]], said: Sequence[list[Span]]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How many spans of each kind were found to the word, were said and are none, and were missed."""
    hit: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for right, told in zip(truth, said, strict=True):
        hit.update(kind for kind, _, _ in {*right} & {*told})
        wrong.update(kind for kind, _, _ in {*told} - {*right})
        missed.update(kind for kind, _, _ in {*right} - {*told})
    return hit, wrong, missed


def scores(hit: int, wrong: int, missed: int) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean, F1."""
    both = 2 * hit + wrong + missed
    return hit / max(1, hit + wrong), hit / max(1, hit + missed), 2 * hit / max(1, both)


def follows(labels: Sequence[str]) -> NDArray[np.bool_]:
    """Whether a tag (a column) may follow another (a row); the last row is what a sentence begins with."""
    parts = [label.partition("-") for label in (*labels, OUTSIDE)]
    goes_on = np.array([how in GOES_ON for how, _, _ in parts[:-1]])
    inside = np.array([[one[0] in ("B", "I") and one[2] == two[2] for two in parts[:-1]] for one in parts])
    begun = np.array([any(how == "B" and kind == own for how, _, kind in parts) for _, _, own in parts[:-1]])
    return inside | ~goes_on[None, :] | ~begun[None, :]  # where files have no B at all, I may begin a span


def likeliest(chances: NDArray[np.float64], allowed: NDArray[np.bool_]) -> list[int]:
    """The likeliest row of tags, of log-chances of each word's (T C) and of who may follow whom (C + 1, C)."""
    if not len(chances):
        return []
    barred = np.where(allowed, 0.0, -np.inf)
    best, back = chances[0] + barred[-1], []
    for row in chances[1:]:
        ways = best[:, None] + barred[:-1]
        back.append(ways.argmax(0))
        best = ways.max(0) + row
    made = [int(best.argmax())]
    for step in reversed(back):
        made.append(int(step[made[-1]]))
    return made[::-1]
