"""Answers that stand in a text: where the words begin and end that answer a question."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.data.data_spec import DataSpec
from heedful.data.formats.squad import Question, asked
from heedful.data.near_duplicates import Content
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking.page import Figures, Samples
from heedful.tasks.asking import Answering
from heedful.tasks.fitted import Asked, Fitted, last_layer
from heedful.tokenizers import Joined
from heedful.views.finding import Finding

HIDDEN = -1e4  # the score of a token that is none: as good as never, and no gradient is lost
ARTICLES = re.compile(r"\b(a|an|the)\b")
MARKS = str.maketrans("", "", string.punctuation)


class Answer(Answering, Fitted):
    """Finds the words of a text that answer a question; scored by how many are exact, and by F1 of their words."""

    name: ClassVar[str] = "answer"
    watch: ClassVar[str] = "f1"

    @classmethod
    def opened(cls, data: DataSpec, seed: int) -> Splits[Question]:
        return asked(data, seed)

    def learn(self, samples: Sequence[Question]) -> None:
        if not any(sample.answers for sample in samples):
            raise Refusal(
                "no question to learn from has an answer, so that there is nothing to find; add some that have"
            )
        self.always = all(sample.answers for sample in samples)

    def judge(self, sample: Question, joined: Joined) -> tuple[int, int]:
        """The first and the last token of the first answer; the first token of all where there is none, or no more."""
        for text, start in sample.answers[:1]:
            inside = [
                at
                for at, (side, (first, last)) in enumerate(zip(joined.sides, joined.spans, strict=True))
                if side == 1 and first < start + len(text) and last > start
            ]
            if inside and joined.spans[inside[-1]][1] >= start + len(text):
                return inside[0], inside[-1]
        return 0, 0

    def noted(self, splits: Splits[Asked]) -> str:
        without = sum(not sample.read.answers for sample in splits.train)
        lost = sum(bool(sample.read.answers) and sample.answer == (0, 0) for sample in splits.train)
        cut = f"; the answer of {lost:,} was cut off" if lost else ""
        return f"questions {100 * without / len(splits.train):.1f} % without an answer{cut}"

    def contents(self, sample: Asked) -> dict[str, Content]:
        return {"contexts": sample.read.context}

    # ------------------------------------------------------------------ learning

    def answers_of(self, samples: Sequence[Asked]) -> Tensor:
        return torch.tensor([sample.answer[0] + 1 for sample in samples])

    def batch(self, samples: Sequence[Asked]) -> Batch:
        return super().batch(samples) | {"last": torch.tensor([sample.answer[1] + 1 for sample in samples])}

    def wanted(self, batch: Batch) -> Tensor:
        return torch.stack((batch["answer"], batch["last"]), 1).flatten() - 1

    def scores(self, given: Tensor, batch: Batch) -> Tensor:
        there = torch.arange(given.shape[1], device=given.device) < batch["lengths"][:, None]
        return given.masked_fill(~there.unsqueeze(-1), HIDDEN).mT  # B 2 T

    # ------------------------------------------------------------------ answering

    def said(self, model: nn.Module, samples: Sequence[Asked]) -> list[str]:
        """The answer to each sample."""
        given = self.given(model, [sample.joined for sample in samples])
        return [self.answer(one.joined, scores).text for one, scores in zip(samples, given, strict=True)]

    def score(self, model: nn.Module, samples: Sequence[Asked]) -> dict[str, float]:
        pairs = [judged(one.read, said) for one, said in zip(samples, self.said(model, samples), strict=True)]
        exact, f1 = (sum(column) / max(1, len(pairs)) for column in zip(*pairs, strict=True))
        return {"exact": exact, "f1": f1}

    def show(self, model: nn.Module, samples: Sequence[Asked]) -> Samples:
        rows = tuple(
            (one.read.question, one.read.context, " | ".join(dict.fromkeys(text for text, _ in one.read.answers)), said)
            for one, said in zip(samples, self.said(model, samples), strict=True)
        )
        right = tuple(judged(one.read, said)[0] == 1 for one, (*_, said) in zip(samples, rows, strict=True))
        return Samples("Questions it never saw", ("question", "text", "answer", "said"), rows, right)

    def finding(self, model: nn.Module, samples: Sequence[Asked]) -> Finding | None:
        said, cards = self.said(model, samples), []
        right = [(bool(one.read.answers), judged(one.read, text)[0]) for one, text in zip(samples, said, strict=True)]
        for name, some in (("with an answer", True), ("without an answer", False)):
            exact = [hit for answered, hit in right if answered is some]
            if exact:
                cards.append((name, f"{100 * sum(exact) / len(exact):.1f} %", f"of {len(exact):,} questions exact"))
        return Finding(Figures("With an answer and without", tuple(cards)), last_layer(model), "mean")

    # ------------------------------------------------------------------ keeping

    def state(self) -> dict[str, Any]:
        return {"always": self.always}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        task = super().read(folder, {})
        task.always = bool(state["always"])
        return task


def plain(text: str) -> str:
    """An answer without case, punctuation and articles, as SQuAD's own program compares them."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(MARKS)).split())


def judged(question: Question, said: str) -> tuple[float, float]:
    """Whether what was said is exact, and its F1 by words, of the answer that it is nearest to."""
    known = [plain(text) for text, _ in question.answers]
    known = [text for text in known if text] or [""]
    return max(float(plain(said) == text) for text in known), max(overlap(plain(said), text) for text in known)


def overlap(said: str, known: str) -> float:
    """F1 of the words of two answers."""
    one, two = said.split(), known.split()
    if not one or not two:
        return float(one == two)
    shared = sum((Counter(one) & Counter(two)).values())
    return 2 * shared / (len(one) + len(two))
