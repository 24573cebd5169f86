"""Summarisation: a text is read and a shorter one written that says what matters (the lectures' abstractive kind)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from heedful.data.collate import Ids
from heedful.data.encoded_pairs import Encoded
from heedful.data.parallel_sample import Pair
from heedful.data.readers.parallel_pairs import READERS
from heedful.data.splits import Splits
from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.metrics.rouge import Rouge
from heedful.models import Spec
from heedful.models.text.encoder_decoder import WriterSpec
from heedful.models.writer import Writer
from heedful.objectives.seq2seq import TeacherForcing
from heedful.pipelines.choose_tokenizer import tokenizer_for
from heedful.pipelines.pairs_learned import KnownText, PairCollate, PairsLearned, as_ids
from heedful.pipelines.seq2seq_pipeline import Seq2Seq
from heedful.tasks.task import Task
from heedful.tokenizers import hf_folders
from heedful.views.lead_baseline import beside_first_words
from heedful.views.written_samples import WrittenSamples


@dataclass(frozen=True)
class SummaryLearned(PairsLearned):
    """The tokenizer of texts and summaries, perhaps that of the model which goes on learning."""

    def ids(self, texts: Sequence[str]) -> Sequence[Ids]:
        """The ids of texts, without the end that some tokenizers put there: it is put there anyway."""
        ends = {*self.tokenizer.special.values()}
        return [row[:-1] if row and row[-1] in ends else row for row in self.tokenizer.encode_all(texts)]

    def facts(self) -> dict[str, Any]:
        return {}

    def defaults(self) -> dict[str, Any]:
        return {"vocab": len(self.tokenizer)}

    def suited(self, spec: Spec) -> Self:
        known: int = getattr(spec, "source_vocab", None) or getattr(spec, "vocab", None) or 0
        if len(self.tokenizer) > known:
            raise Refusal(f"the tokenizer has {len(self.tokenizer)} tokens and the model {known}; use the model's own")
        special = spec.special if isinstance(spec, WriterSpec) else self.special
        return replace(self, special=special, longest=spec.longest)

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        return cls(hf_folders.read_needed(folder), search=Decoding.model_validate(state.get("decoding", {})))


@dataclass(frozen=True)
class SummaryCollate(PairCollate[SummaryLearned]):
    """Texts and summaries, which are cut where they are longer than a model reads."""

    def shortened(self, sample: Encoded, longest: int, learned: SummaryLearned) -> Encoded:
        return Encoded(sample.source[: longest - 1], sample.target[: longest - 1], sample.texts, sample.place)


COLLATE = SummaryCollate()


def encode(splits: Splits[Pair], learned: SummaryLearned) -> Splits[Encoded]:
    """Texts as ids, cut for the model where there is one already."""
    made = as_ids(splits, learned)
    if not learned.longest:
        return made
    parts = (made.train, made.valid, made.test)
    return Splits(*([COLLATE.shortened(one, learned.longest, learned) for one in part] for part in parts))


TASK = Task(
    name="summarisation",
    readers=READERS,
    fit=partial(SummaryLearned.fit, tokenizer_for),
    learned=SummaryLearned,
    encode=encode,
    collate=COLLATE,
    objective=TeacherForcing(),
    metrics=(Rouge(),),
    watch="rouge_l",
    pipeline=Seq2Seq("a text", KnownText()),
    table=WrittenSamples("Texts it never saw", "text", "summary"),
    views=(beside_first_words,),
    families=("transformer", "t5", "bart", "marian"),
    wants=Writer,
    reads=frozenset({"source"}),
    inherits=True,
    shown=1,
)
