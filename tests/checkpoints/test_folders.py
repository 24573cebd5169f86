"""What stands in checkpoints/ and model/: safetensors and JSON, and nothing of when, where and by whom."""

import json
import socket
import time
from pathlib import Path

import pytest

import heedful
from heedful import recipes
from tests.checkpoints.crashes import listing
from tests.training.runs import short, train


@pytest.mark.parametrize("recipe", recipes.names())
def test_two_runs_in_two_folders_write_the_same_model(tmp_path: Path, recipe: str) -> None:
    one, other = tmp_path / "one", tmp_path / "some" / "where" / "else"
    for out in (one, other):
        train(short(recipe, training__steps=3), out)
    made = listing(one / "model")
    assert {"spec.json", "task.json", "model.safetensors"} <= made.keys()
    assert made == listing(other / "model")
    heedful.load(one)


@pytest.mark.parametrize("recipe", recipes.names())
def test_there_is_nothing_but_safetensors_and_json(tmp_path: Path, recipe: str) -> None:
    train(short(recipe, training__steps=3), tmp_path)
    files = [path for name in ("checkpoints", "model") for path in (tmp_path / name).rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".safetensors", ".json"}
    for path in files:
        if path.suffix == ".json":
            json.loads(path.read_bytes())
        else:  # a header of plain JSON, then numbers
            data = path.read_bytes()
            size = int.from_bytes(data[:8], "little")
            header = json.loads(data[8 : 8 + size])
            assert all(part.keys() == {"dtype", "shape", "data_offsets"} for part in header.values())


def test_a_model_says_nothing_of_time_place_or_host(tmp_path: Path) -> None:
    source = tmp_path / "secret" / "pairs.tsv"
    source.parent.mkdir()
    source.write_text("".join(f"{at:03d}\t{at:03d}\n" for at in range(200)), encoding="utf-8")
    spec = recipes.resolve("reverse", [f"data={source}", "training.steps=2", "model.width=16", "model.depth=1"])
    train(spec, tmp_path / "run")
    told = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "run" / "model").glob("*.json"))
    assert str(source) in (tmp_path / "run" / "run.yaml").read_text()  # the run knows; its model does not
    for word in ("secret", str(tmp_path), str(Path.home()) + "/", socket.gethostname(), str(time.localtime().tm_year)):
        assert word not in told
