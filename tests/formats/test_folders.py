"""What stands in model/: nothing of when, where and by whom. That all is safetensors and JSON: tests/recipes."""

import socket
import time
from pathlib import Path

import pytest

import heedful
from heedful.training.spec import recipes
from tests.formats.crashes import listing
from tests.training.runs import short, train


@pytest.mark.parametrize("recipe", ["translate", "classify", "deit", "series"])  # of all recipes: test_resume
def test_two_runs_in_two_folders_write_the_same_model(tmp_path: Path, recipe: str) -> None:
    one, other = tmp_path / "one", tmp_path / "some" / "where" / "else"
    for out in (one, other):
        train(short(recipe, training__steps=3), out)
    made = listing(one / "model")
    assert {"spec.json", "task.json", "model.safetensors"} <= made.keys()
    assert made == listing(other / "model")
    heedful.load(one)


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
