"""`heedful bench translate`: every contender is the same model, does the same work, and may be missing."""

import gc
import importlib.util
import json

import pytest
import torch
from torch import Tensor

from heedful.bench import marian_peer, measure, translate_bench
from heedful.cli import main
from heedful.errors import Failure
from heedful.models import Transformer, build
from heedful.models.text.transformer import END, PAD
from tests.references import copying

NEW = 6


def small() -> Transformer:
    torch.manual_seed(0)
    return build("transformer", vocab=40, width=16, depth=2, heads=2, hidden=32, order="post", dropout=0.1)


@pytest.fixture(autouse=True)
def of_small_size(monkeypatch) -> None:
    for name, value in {"VOCAB": 40, "BATCH": 3, "LENGTH": 7, "NEW": NEW, "BEAMS": 3, "model": small}.items():
        monkeypatch.setattr(translate_bench, name, value)
    monkeypatch.setattr(gc, "collect", lambda: 0)  # before every call; beside pytest it takes longer than the call


def without(monkeypatch, *missing: str) -> None:
    found, there = importlib.util.find_spec, measure.is_installed
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name in missing else found(name, *more)
    )
    for module in ("heedful.cli.bench_verb", "heedful.bench.measure"):
        monkeypatch.setattr(f"{module}.is_installed", lambda name: name not in missing and there(name))


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["bench", *arguments])
    return stop.value.code


def batch() -> tuple[Tensor, Tensor]:
    source, target = torch.randint(END + 1, 40, (3, 7)), torch.randint(END + 1, 40, (3, 5))
    source[0, -3:] = PAD
    return source, target


@torch.no_grad()
def test_marian_is_the_same_model():
    ours, given = small().eval(), batch()
    said, theirs = ours(*given), translate_bench.by_marian(marian_peer.in_transformers(ours).eval())(*given)
    banned = torch.isin(torch.arange(40), torch.tensor(marian_peer.BANNED))
    torch.testing.assert_close(said[..., ~banned], theirs[..., ~banned], rtol=1e-5, atol=1e-5)
    assert (theirs[..., banned] < -1e8).all()


@torch.no_grad()
def test_the_engine_is_the_same_model():
    ours, engine = small().eval(), translate_bench.Engine(small().spec)
    engine.train()  # in evaluation torch takes another road
    engine.drop.p = 0.0
    for part in engine.engine.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    copying.copied([([ours.inputs.table.weight], [engine.table.weight])])
    for mine, theirs, one in (
        (ours.encoder, engine.engine.encoder, copying.encoder_layer),
        (ours.decoder, engine.engine.decoder, copying.decoder_layer),
    ):
        for block, layer in zip(mine.blocks, theirs.layers, strict=True):
            block.load_state_dict(copied_block(one, layer))
    given = batch()
    torch.testing.assert_close(ours(*given), engine(*given), rtol=1e-5, atol=1e-5)


def copied_block(one, layer) -> dict[str, Tensor]:
    ours, pairs = one(layer)
    copying.copied(pairs)
    return ours.state_dict()


def test_every_search_of_every_peer_says_the_same():
    pytest.importorskip("ctranslate2")
    ours = translate_bench.lively(small().eval())
    ids = {name: index for index, name in enumerate(marian_peer.names(ours))}
    searches = (
        translate_bench.by_heedful(ours),
        translate_bench.by_transformers(ours),
        translate_bench.by_ctranslate2(ours, 1),
    )
    source = torch.randint(END + 1, 40, (5, 7))
    for beams in (1, 3):
        heedful, generate, float32, _ = [run for search in searches for run in search(source, beams).values()]
        said = [list(row) for row in heedful()]
        assert [len(row) for row in said] == [NEW] * 5
        assert len({tuple(row) for row in said}) > 1
        assert said == generate()
        assert said == [[ids[word] for word in row] for row in float32()]


def test_a_contender_that_writes_less_is_not_compared(monkeypatch):
    monkeypatch.setattr(translate_bench, "by_heedful", lambda ours: lambda source, beams: {"lazy": lambda: [[5]]})
    without(monkeypatch, "transformers", "ctranslate2")
    with pytest.raises(Failure, match=r"lazy wrote \[1\] tokens and not 6"):
        next(translate_bench.writers(1))


def test_all_cases_are_measured_and_written_down(capsys, tmp_path):
    pytest.importorskip("ctranslate2")
    assert run("translate", "--rounds", "2", "--json", str(tmp_path / "found.json")) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert {"heedful", "torch", "transformers", "ctranslate2"} == set(found["versions"])
    names = [case["case"].split(",")[0] + case["case"].split(",")[1] for case in found["cases"]]
    both = ["train step float32", "train step bfloat16 autocast"]
    assert names == [*both, "greedy batch 1", "beam 3 batch 1", "greedy batch 3", "beam 3 batch 3"]
    for case in found["cases"]:
        rows = case["contenders"]
        assert len(rows) == (3 if case["case"].startswith("train") else 4)
        assert next(iter(rows)) == "heedful"
        assert case["base"] != "heedful" and "int8" not in case["base"]
        assert all(len(row["seconds"]) == 2 for row in rows.values())
    said = capsys.readouterr().out
    assert said.count("time relative to") == 6
    assert "not installed" not in said


def test_a_peer_that_is_not_installed_is_named_and_left_out(monkeypatch, capsys, tmp_path):
    without(monkeypatch, "ctranslate2", "transformers")
    assert run("translate", "--rounds", "1", "--json", str(tmp_path / "found.json")) == 0
    said = capsys.readouterr().out
    for peer in ("ctranslate2", "transformers"):
        assert f"{peer} is not installed and is left out; to measure it too: pip install {peer}" in said
    found = json.loads((tmp_path / "found.json").read_text())
    assert {name for case in found["cases"] for name in case["contenders"]} == {"heedful", "torch.nn.Transformer"}


NAMES = {
    "attention",
    "generate",
    "images",
    "listops",
    "loading",
    "recurrence",
    "saving",
    "tokenizer",
    "translate",
    "vision",
    "waiting",
}


def test_without_a_name_what_can_be_measured_is_listed(capsys):
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == NAMES
    assert all(line.endswith(".") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["translat"], "did you mean 'translate'?"),
        (["marian"], "unknown bench"),
        (["translate", "--json", "nowhere/found.json"], "there is no folder nowhere; make it"),
        (["--json", "found.json"], f"nothing is measured; name {', '.join(sorted(NAMES))}"),
        (["translate", "--rounds", "0"], "rounds"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is(arguments, said, capsys):
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
