"""The model card beside the weights: data, scores with their spread, starting weights with their licence, training."""

import re
from pathlib import Path

import pytest

import heedful
from heedful.errors import Refusal
from heedful.formats import native
from heedful.metrics.accuracy import Accuracy
from heedful.metrics.calibration_error import CalibrationError
from heedful.training.model_card import interval, licence_of, score_rows
from tests.training.runs import short, train


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from chance, whose card was edited afterwards, and one that began with it."""
    home = tmp_path_factory.mktemp("cards")
    train(short("vit", training__steps=4, training__threads=0), home / "first")
    card = home / "first" / "model" / "README.md"
    card.write_text(card.read_text(encoding="utf-8").replace("library_name", "license: cc-by-4.0\nlibrary_name"))
    spec = short("vit", training__steps=4, training__threads=0, start=home / "first")
    train(spec, home / "second")
    return home


def card_of(folder: Path) -> str:
    return (folder / "model" / "README.md").read_text(encoding="utf-8")


def test_a_card_says_what_a_model_is_and_how_it_learned(runs: Path) -> None:
    first = card_of(runs / "first")
    weights = sum(one.numel() for one in heedful.load(runs / "first").parameters())
    assert f"of the family vit with {weights:,} weights, for the task `image-classification`" in first
    assert re.search(
        r"\n- shapes\n- 60 samples to learn from, \d+ samples to choose by, \d+ samples to test on\n", first
    )
    assert "4 steps of 7 samples" in first and "seed 1:" in first and "- By chance." in first
    assert str(runs) not in first and str(runs) not in card_of(runs / "second")


def test_a_share_of_right_answers_has_the_spread_that_its_samples_leave(runs: Path) -> None:
    [row] = [line for line in card_of(runs / "first").splitlines() if line.startswith("| accuracy")]
    low, high = row.split("|")[3].replace("%", "").split(" to ")
    score = float(row.split("|")[2].replace("%", ""))
    assert float(low) < score < float(high) and float(high) - float(low) > 20  # of 16 samples
    told = [*score_rows({"accuracy": 0.5, "calibration_error": 0.1}, 16, (Accuracy(), CalibrationError()), seed=7)]
    assert told[1] == "| accuracy | 50.00 % | 28.00 % to 72.00 % |"
    assert told[2] == "| calibration error | 10.00 % | not known |" and "one run with seed 7" in told[-1]


def test_the_interval_is_wilsons() -> None:
    assert interval(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert interval(1.0, 20) == pytest.approx((0.8389, 1.0), abs=1e-4)


def test_the_licence_of_the_starting_weights_is_handed_on(runs: Path) -> None:
    second = card_of(runs / "second")
    assert "- the whole: under the licence cc-by-4.0" in second and "\nlicense: cc-by-4.0\n" in second
    assert licence_of(str(runs / "second")) == "cc-by-4.0"


@pytest.mark.parametrize("text", ["", "license: mit\n", "---\na: b\n---\nlicense: mit\n", "---\nlicense: a b c\n---\n"])
def test_no_licence_is_read_where_none_is_named(runs: Path, text: str, tmp_path: Path) -> None:
    heedful.save(heedful.load(runs / "first"), tmp_path / "model")
    assert licence_of(str(tmp_path / "model")) is None
    (tmp_path / "model" / "README.md").write_text(text)
    assert licence_of(str(tmp_path / "model")) is None


def test_a_card_may_be_edited_and_the_rest_of_the_folder_may_not(runs: Path) -> None:
    place = runs / "second" / "model"
    (place / "README.md").write_text("mine")
    native.load(place)
    (place / "README.md").unlink()
    native.load(place)
    (place / "task.json").write_text((place / "task.json").read_text() + " ")
    with pytest.raises(Refusal, match=r"task\.json has"):
        native.load(place)
