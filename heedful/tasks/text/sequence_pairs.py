"""Sequence pairs: from one sequence to another, as reversing, sorting and any pairs of a user's own."""

from __future__ import annotations

from functools import partial

from heedful.data.readers.parallel_pairs import READERS
from heedful.metrics.exact_match import ExactMatch
from heedful.models.writer import Writer
from heedful.objectives.seq2seq import TeacherForcing
from heedful.pipelines.choose_tokenizer import tokenizer_of
from heedful.pipelines.pairs_learned import KnownText, PairCollate, PairsLearned, as_ids
from heedful.pipelines.seq2seq_pipeline import Seq2Seq
from heedful.tasks.task import Task
from heedful.views.antidiagonal import reversing
from heedful.views.written_samples import WrittenSamples

TASK = Task(
    name="pairs",
    readers=READERS,
    fit=partial(PairsLearned.fit, tokenizer_of),
    learned=PairsLearned,
    encode=as_ids,
    collate=PairCollate(),
    objective=TeacherForcing(),
    metrics=(ExactMatch(),),
    watch="exact",
    pipeline=Seq2Seq("a sequence of characters", KnownText()),
    table=WrittenSamples("Samples it never saw", judged=True),
    views=(reversing,),
    families=("transformer",),
    wants=Writer,
    reads=frozenset({"source"}),
)
