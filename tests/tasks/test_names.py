"""Names: lists in a folder, each name once a language, none on both sides of the split, and read letter by letter."""

import os
from pathlib import Path

import pytest
import torch

import heedful
from heedful.data.near_duplicates import same_spelling
from heedful.data.readers.name_lists import InventedNames, NameLists, PublicNames, names_in
from heedful.errors import Refusal
from heedful.metrics.balanced_accuracy import BalancedAccuracy
from heedful.results import Label
from heedful.tasks.text.name_classification import COLLATE, GRADIENT, TASK
from heedful.testing import check

HOME = os.environ.get("HEEDFUL_DATA")


@pytest.fixture
def lists(tmp_path):
    """Two languages: a name that is written thrice, another that both have, and what is no list."""
    made = [
        "".join(pair) for pair in zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ" * 2, "abcdefghijklmnopqrstuvwxyz" * 2, strict=True)
    ]
    left = [f"{name}{end}" for name in made[:26] for end in "xyz"]
    (tmp_path / "Left.txt").write_text("\n".join(["Émile", "émile ", "E\u0301mile", "Both", *left]) + "\n")
    (tmp_path / "Right.txt").write_text("\n".join(["BOTH", "", *[f"{name}o" for name in left]]) + "\n")
    (tmp_path / "README.md").write_text("no list")
    return tmp_path


def spelt(splits, part):
    return {same_spelling("".join(splits.words[at] for at in line.places)) for line in getattr(splits, part)}


def test_a_name_counts_once_a_language_however_it_is_written(lists):
    found = [(one.source, one.target) for one in names_in(lists)]
    assert [name for name, _ in found if name.casefold() == "émile"] == ["Émile"]
    assert [pair for pair in found if pair[0].casefold() == "both"] == [("Both", "Left"), ("BOTH", "Right")]
    assert len(found) == 2 + 78 + 1 + 78


def test_no_name_is_on_two_sides_in_any_case_or_language(lists):
    found = [spelt(NameLists(name=str(lists), split_seed=seed).read(1), "test") for seed in (0, 1)]
    assert found[0] != found[1]
    for seed in range(5):
        splits = NameLists(name=str(lists), split_seed=seed).read(1)
        sides = [spelt(splits, part) for part in ("train", "valid", "test")]
        assert sum(map(len, sides)) == len(set.union(*sides)) == 158 and min(map(len, sides)) > 4
        assert sum(len(getattr(splits, part)) for part in ("train", "valid", "test")) == 159


@pytest.mark.skipif(not (HOME and (Path(HOME) / "names").is_dir()), reason="HEEDFUL_DATA holds no names")
def test_a_tenth_of_the_public_names_is_held_out_and_arabic_has_108():
    splits = PublicNames(name="names").read(1)
    lines = [*splits.train, *splits.valid, *splits.test]
    assert sum(line.label == "Arabic" for line in lines) == 108 and len({line.label for line in lines}) == 18
    assert 0.09 < len(splits.test) / len(lines) < 0.11
    assert len(PublicNames(name="names", split_seed=1).read(1).test) != len(splits.test)
    train, valid, test = (spelt(splits, part) for part in ("train", "valid", "test"))
    assert not train & valid and not train & test and not valid & test


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda place: NameLists(name=str(place / "none")), "is no folder; give a folder with a list for each class"),
        (lambda place: NameLists(name=str(place / "Left.txt")), "Left.txt is no folder"),
    ],
)
def test_what_is_no_folder_of_lists_is_refused(lists, make, said):
    with pytest.raises(Refusal, match=said):
        make(lists).read(1)
    (lists / "Right.txt").unlink()
    with pytest.raises(Refusal, match="holds no two lists; put a file for each class there"):
        NameLists(name=str(lists)).read(1)


def test_its_parts_obey_the_laws_of_parts():
    check(TASK)
    check(BalancedAccuracy, on="names")


def test_every_class_counts_the_same_however_rare_it_is():
    class Named:
        def __init__(self, label):
            self.label = label

    metric = BalancedAccuracy()
    truth, said = ["a", "a", "a", "b"], ["a", "a", "a", "a"]
    results = [Label.among(("a", "b"), torch.tensor([float(name == "a"), float(name == "b")])) for name in said]
    metric.update([Named(label) for label in truth], results, None)
    assert metric.compute() == {"balanced_accuracy": 0.5}


def test_letters_are_told_apart_and_what_was_never_seen_is_told(lists):
    work, splits = TASK.open(InventedNames(name="invented-names", samples=200, held_out=40), 1)
    name = COLLATE.as_input(splits.test[0], work.learned)
    assert name[0].isupper() and "".join(work.learned.words[at] for at in splits.test[0].places) == name
    assert work.warning(name) is None and "'Q' is a word that was never seen" in work.warning("Qa")
    model = heedful.build("recurrent_predictor", width=8, **work.facts())
    shares = GRADIENT.measured(model, splits.test, work.learned)
    assert shares[0] == 1.0 and all(share > 0 for share in shares)
    assert len(shares) == max(len(line.places) for line in splits.test) + 1  # a token stands before the letters
    with pytest.raises(Refusal, match="a recurrent_predictor has no attention to look into"):
        work.look(model, name)
