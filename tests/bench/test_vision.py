"""`heedful bench images` and `heedful bench vision`: images a second, and accuracy against compute."""

import json
from pathlib import Path

import pytest
import torch

from heedful.bench import images_bench, measure, vision_bench
from heedful.cli import main


def measured(*names: str, folder: Path) -> list[dict]:
    with pytest.raises(SystemExit) as left:
        main(["bench", *names, "--rounds", "1", "--json", str(folder / "found.json")])
    assert left.value.code == 0
    return json.loads((folder / "found.json").read_text())["cases"]


def test_images_a_second_are_told_of_every_maker_that_is_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measure, "is_installed", lambda name: name in ("timm", "transformers"))
    monkeypatch.setattr(images_bench, "CPU", {"sizes": ["tiny"], "batches": [1], "dtypes": ["float32", "bfloat16"]})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = measured("images", folder=tmp_path)
    assert [case["case"] for case in found] == [f"ViT-T/16, 1 images, {d}, asked" for d in ("float32", "bfloat16")]
    assert all({"heedful", "transformers"} == case["contenders"].keys() for case in found)
    said = "timm does not start without torchvision and is left out; to measure it too: pip install torchvision"
    assert said in capsys.readouterr().out


def test_accuracy_is_drawn_over_what_learning_cost(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(vision_bench, "STEPS", {"cpu": 4})
    monkeypatch.setattr(vision_bench, "SMALL", ["data=toy", "data.samples=64", "data.held_out=16", "training.batch=8"])
    monkeypatch.setattr(vision_bench, "WIDTHS", {"cpu": {"vit": (24,), "resnet": (6,)}})
    [found] = measured("vision", folder=tmp_path)
    points = {one["name"]: one for one in found["points"]}
    assert set(points) == {"vit-24", "hybrid-24", "resnet-6"}
    assert all(one["operations"] > 0 and 0 <= one["accuracy"] <= 1 for one in points.values())
    assert points["hybrid-24"]["operations"] > points["vit-24"]["operations"]
    assert (tmp_path / "runs/vision/vision.png").read_bytes().startswith(b"\x89PNG")
