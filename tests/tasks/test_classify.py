"""Classes of sentences: learned from chance or from another model, and told how sure."""

import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.formats import native
from heedful.looking import calibration, confusion
from heedful.metrics.macro_f1 import f1
from heedful.outputs.text_encoder_output import POOLS
from heedful.tasks.text.text_classification import TASK
from heedful.training import run
from heedful.training.prepare import prepare
from heedful.training.spec import recipes
from heedful.training.trained_run import load_trained
from tests.answered import plain
from tests.tasks.encoders import folder

CPU = torch.device("cpu")
ROWS = ["the cat sat\tyes", "a cat sat on the mat\tyes", "the mat\tno", "cats\tno", "where is the mat\tno"]


def rows(place: Path, lines: list[str] = ROWS) -> Path:
    for split in ("train", "valid", "test"):
        (place / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return place


def spec(place: Path, *changes: str) -> recipes.RunSpec:
    named = [f"data.{split}={place / split}.tsv" for split in ("train", "valid", "test")]
    return recipes.resolve("classify", [*named, *changes])


# ---------------------------------------------------------------------- scores


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_f1_is_the_mean_over_classes_of_that_of_each(answers: list[tuple[int, int]]) -> None:
    counts = np.zeros((4, 4), dtype=np.int64)
    for truth, said in answers:
        counts[truth, said] += 1
    each = []
    for at in {number for pair in answers for number in pair}:
        hit = sum(truth == said == at for truth, said in answers)
        precision = hit / max(1, sum(said == at for _, said in answers))
        recall = hit / max(1, sum(truth == at for truth, _ in answers))
        each.append(2 * precision * recall / (precision + recall) if hit else 0.0)
    assert f1(counts) == pytest.approx(sum(each) / len(each))


def test_calibration_is_the_mean_gap_between_how_sure_and_how_often_right() -> None:
    sure = [0.9] * 10 + [0.6] * 10
    assert calibration.error(calibration.bins(sure, [True] * 9 + [False] + [True] * 6 + [False] * 4)) < 1e-12
    assert calibration.error(calibration.bins(sure, [True] * 20)) == pytest.approx((0.1 * 10 + 0.4 * 10) / 20)
    assert calibration.bins([1.0, 1 / 15, 0.0], [True, True, False]) == [
        calibration.Bin(pytest.approx(1 / 30), 0.5, 2),
        calibration.Bin(1.0, 1.0, 1),
    ]


def test_how_often_a_few_answers_are_right_is_not_drawn() -> None:
    few, many = calibration.Bin(0.5, 1.0, calibration.FEW - 1), calibration.Bin(0.9, 0.8, calibration.FEW)
    drawn, diagonal = calibration.diagram([few, many]).curves
    assert drawn.points == ((0.9, 0.8),) and diagonal.points == ((0.0, 0.0), (1.0, 1.0))


@pytest.mark.parametrize("name", POOLS)
def test_what_is_pooled_of_a_sentence_knows_nothing_of_padding(name: str) -> None:
    x, junk = torch.randn(2, 3, 4), torch.full((2, 2, 4), 99.0)
    at, none = torch.arange(3).expand(2, 3), torch.full((2, 2), -1)
    alone = POOLS[name](x, at)
    assert alone.shape == (2, 4)
    for states, places in (((x, junk), (at, none)), ((junk, x), (none, at))):
        assert torch.equal(POOLS[name](torch.cat(states, 1), torch.cat(places, 1)), alone)
    assert POOLS[name](junk, none).isfinite().all()


def test_the_hardest_classes_are_of_those_that_were_asked() -> None:
    counts = np.diag([0] * 15 + [3] * 20)
    counts[20, 21] = 5
    figures, _, _ = confusion.sections([f"class {at}" for at in range(35)], counts, [])
    shown = [name for name, _, _ in figures.rows]
    assert shown[0] == "class 20" and not {f"class {at}" for at in range(15)} & {*shown}


def test_classes_are_told_before_anything_is_learned(tmp_path: Path) -> None:
    lines = ["the cat\tyes"] * 8 + ["a mat\tno"]
    ready = prepare(spec(rows(tmp_path, lines)), CPU)
    line = ready.task.describe_data(ready.splits)
    assert line == "classes   yes 88.9 %, no 11.1 %; lopsided, so that 'no' may be lost: look at f1"


def test_a_report_tells_what_the_commonest_class_alone_would_reach(tmp_path: Path) -> None:
    lines = ["the cat\tyes"] * 8 + ["a mat\tno"]
    ready = prepare(spec(rows(tmp_path, lines)), CPU)
    found = ready.task.finding(ready.model.eval(), ready.splits.test)
    assert found and ("no model at all", "88.9 %", "of 9 right by always saying 'yes'") in found.figures.rows


# ---------------------------------------------------------------------- batches


def test_rows_and_columns_of_zeros_mean_nothing_to_the_loss(tmp_path: Path) -> None:
    ready = prepare(spec(rows(tmp_path), "training.dtype=float64", "model.dropout=0.0"), CPU)
    batch = ready.task.batch(ready.splits.train)
    ready.model.eval()
    wider = {name: torch.nn.functional.pad(one, (*(0, 3) * (one.dim() - 1), 0, 4)) for name, one in batch.items()}
    (one, count), (two, same) = (ready.task.loss(ready.model, given) for given in (batch, wider))
    torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)
    assert int(count) == int(same) == len(ROWS)


def test_a_long_text_is_refused_dropped_or_cut(tmp_path: Path) -> None:
    place = rows(tmp_path, [*ROWS, "the cat sat on the mat " * 9 + "\tyes"])
    with pytest.raises(Refusal, match=r"train.tsv, line 6: 56 long and the model takes 20"):
        prepare(spec(place, "model.length=20"), CPU)
    ready = prepare(spec(place, "model.length=20", "data.too_long=cut"), CPU)
    lengths = [ready.task.length(one) for one in ready.splits.train]
    assert max(lengths) == 20 and len(lengths) == 6
    assert ready.splits.train[5].joined.ids[-1] == 2  # the end is still there


# ---------------------------------------------------------------------- beginning


def test_a_model_from_elsewhere_gives_its_weights_numbers_and_tokenizer(tmp_path: Path) -> None:
    start = folder(tmp_path / "bert", "pooled")
    ready = prepare(spec(rows(tmp_path), f"start={start}", "model.dropout=0.25"), CPU)
    other = trained_model(start)
    assert ready.model.spec.width == other.spec.width and ready.model.spec.dropout == 0.25
    assert len(ready.task.tokenizer) <= ready.model.spec.vocab == other.spec.vocab
    assert torch.equal(ready.model.inputs.table.weight, other.inputs.table.weight)
    assert torch.equal(ready.model.outputs.pooler.matrix.weight, other.outputs.pooler.matrix.weight)
    assert ready.model.spec.labels == ["no", "yes"]
    with pytest.raises(Refusal, match="is another model"):
        prepare(spec(rows(tmp_path), f"start={start}", "model.hidden=99", "model.depth=1"), CPU)


def trained_model(start: Path) -> torch.nn.Module:
    return native.load(start)


def test_what_was_trained_begins_another_run_and_answers_as_it_scored(tmp_path: Path) -> None:
    small = ["training.steps=3", "training.batch=3", "model.width=16", "model.hidden=16", "data.tokenizer=words"]
    place = rows(tmp_path)
    run.train(spec(place, *small), tmp_path / "one", False, CPU)
    result = run.train(spec(place, f"start={tmp_path / 'one'}", *small[:2]), tmp_path / "two", False, CPU)
    model, task = load_trained(tmp_path / "two")
    assert task.name == TASK.name
    said = plain(task.predict(model, [line.split("\t")[0] for line in ROWS]))
    right = sum(one == line.split("\t")[1] for one, line in zip(said, ROWS, strict=True))
    assert result["scores"]["accuracy"] == right / len(ROWS)


def test_a_class_that_was_not_learned_is_refused(tmp_path: Path) -> None:
    task, splits = TASK.open(spec(rows(tmp_path)).data, 1)
    (tmp_path / "test.tsv").write_text("the cat\tperhaps\n")
    with pytest.raises(Refusal, match=r"test.tsv, line 1: class 'perhaps' is not in the training data \(no, yes\)"):
        TASK.open(spec(tmp_path).data, 1)
    assert isinstance(splits, Splits) and task.learned.labels == ("no", "yes")


def test_a_model_is_asked_about_as_many_texts_as_it_learned_from(tmp_path: Path) -> None:
    small = ["training.steps=1", "training.warmup=1", "model.width=16", "model.hidden=16", "data.tokenizer=words"]
    pairs = [line.replace(" ", "\t", 1) for line in ROWS if " " in line]
    cases = {"one": (ROWS, "a cat"), "two": (pairs, "a\tcat")}
    said = r"the input is (a pair, and single texts|one text, and pairs) were learned from; (take the tab|give two)"
    for name, (lines, fits) in cases.items():
        place = tmp_path / name
        place.mkdir()
        run.train(spec(rows(place, lines), *small), place / "run", False, CPU)
        model, task = load_trained(place / "run")
        (unfit,) = {text for _, text in cases.values()} - {fits}
        assert len(plain(task.predict(model, [fits]))) == 1
        with pytest.raises(Refusal, match=said):
            plain(task.predict(model, [unfit]))
        (place / "test.tsv").write_text(f"{unfit}\tyes\n")
        with pytest.raises(Refusal, match=r"test\.tsv, line 1: .* were learned from; give every sample as many texts"):
            TASK.open(spec(place).data, 1)


def test_a_folder_that_tells_no_number_of_texts_is_asked_about_any(tmp_path: Path) -> None:
    small = ["training.steps=1", "training.warmup=1", "model.width=16", "model.hidden=16", "data.tokenizer=words"]
    run.train(spec(rows(tmp_path), *small), tmp_path / "run", False, CPU)
    kept = tmp_path / "run" / "model" / "task.json"
    told = json.loads(kept.read_text())
    assert told.pop("texts") == {"": 1}
    kept.write_text(json.dumps(told))
    (kept.parent / "manifest.json").unlink()
    model, task = load_trained(tmp_path / "run")
    assert len(plain(task.predict(model, ["a cat", "a\tcat"]))) == 2
    kept.write_text(json.dumps(told | {"texts": {"": 3}}))
    with pytest.raises(Refusal, match=r"task\.json"):
        load_trained(tmp_path / "run")


def test_others_put_around_a_text_what_the_model_reads_around_it(tmp_path: Path) -> None:
    others = ["model.order=post", "model.norm=layer(eps=1e-12)", "model.feedforward=gelu", "model.output=classes"]
    small = ["training.steps=1", "training.warmup=1", "model.width=16", "model.hidden=16", "data.tokenizer=words"]
    run.train(spec(rows(tmp_path), *small, *others), tmp_path / "run", False, CPU)
    native.convert(tmp_path / "run", tmp_path / "hf", "hf")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "hf" / "tokenizer.json"))
    (model, task), (same, again) = load_trained(tmp_path / "run"), load_trained(tmp_path / "hf")
    assert task.name == again.name == TASK.name
    for texts in (("the cat sat",), ("the cat", "on the mat")):
        (ours,), found = task.tokenizer.join([texts]), theirs.encode(*texts)
        assert (ours.ids, ours.segments) == (found.ids, found.type_ids)
        assert again.tokenizer.join([texts]) == [ours]
    asked = ["the cat sat", "a mat"]
    assert plain(task.predict(model, asked)) == plain(again.predict(same, asked))


# ---------------------------------------------------------------------- noise


def test_noise_hides_its_share_of_words_while_learning_others_in_each_epoch_and_nothing_else(tmp_path: Path) -> None:
    lines = [f"{'a b c d e f g h ' * 4}{word}\t{word}" for word in ("yes", "no") * 40]
    run_of = spec(rows(tmp_path, lines), "data.noise=0.3", "data.tokenizer=words")
    task, splits = TASK.open(run_of.data, run_of.seed)
    plain = task.batch(splits.train)
    hidden = [task.batch(task.augmented(splits.train, epoch)) for epoch in (0, 0, 1)]
    unknown = [made["tokens"] == task.learned.unknown for made in hidden]
    assert torch.equal(unknown[0], unknown[1]) and not torch.equal(unknown[0], unknown[2])
    for made, lost in zip(hidden, unknown, strict=True):
        assert torch.equal(made["tokens"][~lost], plain["tokens"][~lost])
        assert all(torch.equal(made[name], plain[name]) for name in ("lengths", "segments", "answer"))
        own = torch.tensor([[side >= 0 for side in one.joined.sides] for one in splits.train])
        assert not lost[~own].any() and 0.25 < float(lost[own].float().mean()) < 0.35
    assert task.learned.unknown not in plain["tokens"]


def test_noise_is_refused_where_no_token_stands_for_what_is_not_known(tmp_path: Path) -> None:
    model = folder(tmp_path / "model", "states")
    task, _ = TASK.open(spec(rows(tmp_path), f"start={model}", "data.noise=0.1").data, 0)
    assert task.learned.unknown is not None
    parts = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1}, []))
    parts.save(str(model / "tokenizer.json"))
    with pytest.raises(Refusal, match="noise replaces tokens by the unknown token, and this tokenizer has no"):
        TASK.open(spec(rows(tmp_path, ["a\tyes", "b\tno"]), f"start={model}", "data.noise=0.1").data, 0)
