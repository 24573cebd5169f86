"""`heedful bench recurrence`: parts by name, what is done is kept, what was killed goes on."""

import json

import pytest

from heedful.bench import recurrence_bench, recurrence_runs, sequence_steps
from heedful.cli import main
from heedful.errors import Refusal
from heedful.training.loop import Interrupted

SMALL = ["data=toy", "data.samples=60", "data.held_out=12", "training.steps=2", "training.evaluate_every=1"]
FEW = ["seeds=3", *SMALL, "training.save_every=1"]


def asked(out, *words):
    found = recurrence_bench.cases(1, lambda: None, [f"out={out}", *words])
    return [case for case, _ in found]


def test_a_translator_is_measured_kept_and_read_again(tmp_path, monkeypatch):
    (found,) = asked(tmp_path, "parts=attention", *FEW)
    assert set(found.bleu) == {"greedy", "beam 5"} and found.seed == 3 and found.operations > 0
    assert [len(point) for point in found.reached] == [2, 2] and found.tokens_a_second > 0
    assert "BLEU greedy" in found.table("") and json.loads(json.dumps(found.to_json("")))["weights"] == found.weights
    monkeypatch.setattr(recurrence_runs.run, "train", None)  # nothing is trained any more
    (again,) = asked(tmp_path, "parts=attention", *FEW)
    assert again.table("") == found.table("")
    with pytest.raises(Refusal, match=r"attention-3.json was measured with seed=3 .*; choose another out=DIR"):
        asked(tmp_path, "parts=attention", *FEW, "training.rate=0.5")
    (tmp_path / "attention-3.json").unlink()  # it was killed before it was measured: the run itself is there
    monkeypatch.undo()
    (after,) = asked(tmp_path, "parts=attention", *FEW)
    assert (after.bleu, after.seconds) == (found.bleu, found.seconds)


def test_cells_are_measured_on_names(tmp_path, monkeypatch):
    monkeypatch.setattr(recurrence_bench, "NAME_SEEDS", (2,))
    monkeypatch.setattr(recurrence_bench, "CELLS", ("gru",))
    (found,) = asked(tmp_path, "parts=names", "data=toy")
    assert (found.cell, found.seed, found.gradient[0]) == ("gru", 2, 1.0) and found.balanced_accuracy > 0.9


def test_layers_are_timed_at_each_length(monkeypatch):
    found = sequence_steps.measure_steps(1, lambda: None, (4, 8))
    assert set(found.seconds) == set(sequence_steps.STEPS) and all(set(one) == {4, 8} for one in found.seconds.values())
    assert found.to_json("")["path_and_steps"]["LSTM"] == {4: (3, 4), 8: (7, 8)}
    assert found.to_json("")["path_and_steps"]["attention"] == {4: (1, 1), 8: (1, 1)}
    assert "7, 8" in found.table("")


def test_parts_and_seeds_that_there_are_none_of_are_refused(capsys):
    for words, said in ((["parts=attentoin"], "did you mean 'attention'"), (["seeds=one"], "are no seeds")):
        with pytest.raises(SystemExit) as left:
            main(["bench", "recurrence", *words])
        assert left.value.code == 2 and said in capsys.readouterr().err


def test_a_bench_that_is_stopped_leaves_as_ctrl_c_does_and_goes_on_later(tmp_path, monkeypatch):
    def stopped(*given):
        raise Interrupted

    monkeypatch.setattr(recurrence_runs.run, "train", stopped)
    with pytest.raises(KeyboardInterrupt):
        recurrence_runs.train_recipe("translate-rnn", ["data=toy"], tmp_path)
