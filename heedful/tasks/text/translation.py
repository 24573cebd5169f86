"""Translation: sub-words in, sub-words out, scored by BLEU; and which word was translated by which."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import create_model

from heedful.data.parallel_sample import Pair
from heedful.data.readers.parallel_pairs import READERS, Scored
from heedful.data.readers.reader import Reader
from heedful.data.splits import Splits
from heedful.metrics.bleu import Bleu, ChrF
from heedful.metrics.perplexity import Perplexity
from heedful.models.writer import Writer
from heedful.objectives.seq2seq import TeacherForcing
from heedful.objectives.token_losses import TokenLosses
from heedful.objectives.translation import GuidedTranslation
from heedful.pipelines.choose_tokenizer import tokenizer_of
from heedful.pipelines.pairs_learned import KnownText, as_ids
from heedful.pipelines.translation_pipeline import Translating, TranslationCollate, TranslationLearned
from heedful.tasks.task import Task
from heedful.views.word_alignments import word_alignments
from heedful.views.written_samples import WrittenSamples

COLLATE = TranslationCollate()


def scored_reader(reader: type[Reader]) -> type[Reader]:
    """The reader of translations, which are scored by BLEU too."""
    bases: Any = (Scored, reader)
    made: type[Reader] = create_model(reader.__name__, __base__=bases, __doc__=reader.__doc__)
    return made


def fit(splits: Splits[Pair], reader: Any, seed: int) -> TranslationLearned:
    """What is learned of pairs, and how they will be scored."""
    return replace(TranslationLearned.fit(tokenizer_of, splits, reader, seed), bleu=reader.bleu)


def again(reader: Any, learned: TranslationLearned) -> tuple[Any, TranslationLearned]:
    """Other translations are scored as they say, and else as those that were learned from."""
    return reader, replace(learned, bleu=reader.bleu) if "bleu" in reader.model_fields_set else learned


TASK = Task(
    name="translation",
    readers={name: scored_reader(reader) for name, reader in READERS.items()},
    fit=fit,
    learned=TranslationLearned,
    encode=as_ids,
    again=again,
    collate=COLLATE,
    objective=GuidedTranslation(),
    metrics=(Bleu(), ChrF(), Perplexity(source=TokenLosses(TeacherForcing(), COLLATE))),
    watch="bleu",
    pipeline=Translating("a sentence", KnownText(blank=True)),
    table=WrittenSamples("Sentences it never saw", target="reference"),
    views=(word_alignments,),
    families=("transformer",),
    wants=Writer,
    reads=frozenset({"source"}),
    shown=2,
)
