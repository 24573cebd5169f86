"""`heedful bench listops`: kinds learn beside the paper's scores, for as many seconds or steps as asked for."""

import json

import pytest

from heedful.attention.card import Card
from heedful.bench import listops_bench
from heedful.cli import main
from heedful.data.readers.word_sequences import ListOps, Pixels
from heedful.errors import Failure, Refusal
from heedful.models import attention_kinds, part_tables

SMALL = ["data=toy", "data.samples=80", "data.held_out=12", "training.batch=8", "model.width=8", "model.heads=2"]


def test_kinds_learn_and_are_told_beside_the_paper_and_the_majority(tmp_path, capsys):
    asked = ["kinds=linear,performer(features=8)", "training.steps=3", *SMALL]
    with pytest.raises(SystemExit) as left:
        main(["bench", "listops", *asked, "--json", str(tmp_path / "found.json")])
    assert left.value.code == 0
    found = json.loads((tmp_path / "found.json").read_text())["cases"]
    assert [case["word"] for case in found] == ["linear", "performer(features=8)"]
    for case in found:
        assert case["steps"] == 3 and 0 <= case["accuracy"] <= 1 and 0 <= case["majority"] < 1
        assert case["paper"] is None  # of the toy it says nothing
    assert "linear" in capsys.readouterr().out


def test_seconds_end_a_run_and_what_it_came_to_is_scored(monkeypatch):
    ticks = iter(range(10_000))
    monkeypatch.setattr(listops_bench.time, "monotonic", lambda: float(next(ticks)))
    found = listops_bench.learn_kind("softmax", 30.0, [*SMALL, "training.steps=5000"])
    assert 0 < found.steps < 40 and found.accuracy is not None


def test_a_kind_that_cannot_learn_says_why(monkeypatch):
    def fail(*_):
        raise Failure("the loss is not finite at step 3")

    monkeypatch.setattr(listops_bench, "train_for", fail)
    found = listops_bench.learn_kind("softmax", 1.0, SMALL)
    assert found.accuracy is None and "none: the loss is not finite at step 3" in found.table("")


def test_every_fast_kind_is_asked_and_every_word_can_be_made():
    fast = {n for n, kind in attention_kinds.every().items() if kind.role != "bias" and kind.card.tier == "A"}
    assert fast - set(listops_bench.CHOSEN) <= {"dot", "scaled", "general", "local2d"}
    assert set(listops_bench.PAPER) <= set(listops_bench.CHOSEN)
    for word in listops_bench.select_words(None):
        assert part_tables.mask(word, 2) or part_tables.mechanism(word, 2, 8, 64)
    assert isinstance(attention_kinds.kind_named("softmax").card, Card)


def test_the_paper_is_told_of_its_own_data_alone():
    data = ListOps(name="listops", shortest=501, longest=1999)
    assert listops_bench.published_score("softmax", data) == 36.37
    assert listops_bench.published_score("softmax", Pixels(name="cifar10-pixels")) == 42.44
    assert listops_bench.published_score("softmax", data.model_copy(update={"longest": 99})) is None
    assert listops_bench.published_score("dpfp", data) is None


@pytest.mark.parametrize(("asked", "said"), [("0", "seconds=0 is no time"), ("soon", "seconds=soon is no time")])
def test_seconds_that_are_none_are_refused(asked, said):
    with pytest.raises(Refusal, match=said):
        listops_bench.seconds_of(asked)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["kinds=softmax", "model.mechanism=linear"], "write kinds=linear in the place of model.mechanism=linear"),
        (["kinds=softmax,luna"], "unknown kind of attention 'luna'"),
        (["kinds="], "'' cannot be read; write a word"),
    ],
)
def test_what_it_cannot_learn_with_is_refused_before_anything_learns(asked, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["bench", "listops", *asked])
    assert ended.value.code == 2 and said in capsys.readouterr().err
