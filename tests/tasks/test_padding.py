"""Batches of Multi30k hold little padding: below a tenth, as the log shows it."""

import os
from pathlib import Path

import numpy as np
import pytest

from heedful.data.splits import Plan
from heedful.tasks.text.translation import TASK

HOME = os.environ.get("HEEDFUL_DATA", "")
HERE = pytest.mark.skipif(
    not (HOME and (Path(HOME) / "multi30k" / "tok").is_dir()), reason="HEEDFUL_DATA holds no multi30k/tok"
)
TOKENS = 4096


@HERE
@pytest.mark.parametrize("languages", ["en-de", "en-fr"])
def test_less_than_a_tenth_of_multi30k_is_padding_with_and_without_merges_left_out(languages: str) -> None:
    data = TASK.reader("multi30k")(
        name="multi30k", languages=languages, form="tok", tokenizer="bpe(size=8000)", merge_dropout=0.05
    )
    task, splits = TASK.open(data, 1)
    whole = [(len(sample.source) + 1, len(sample.target) + 1) for sample in splits.train]
    for lengths in (np.asarray(task.lengths(splits.train, 0)), np.array(whole)):
        sides = [lengths]
        if languages == "en-de":  # de-en has the same tokenizer, and its sides the other way round
            sides.append(lengths[:, ::-1])
        for one in sides:
            plan = Plan(lambda epoch, one=one: one, 64, 1, TOKENS)
            assert plan.padding < 0.1
            assert 100 < plan.steps < 170  # of 29,000 captions; batches are full
