"""Models and runs that were written when specs were flat and keys had other names are read."""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch
import yaml

import heedful
from heedful.errors import Refusal
from heedful.formats.weights import state
from heedful.safe.sealed_folders import MANIFEST
from heedful.tasks import FORMER, TASKS, USES
from heedful.training import recipes, trained_run
from heedful.training.older_runs import begun_spec
from tests.training import runs

FLAT = {  # which every family had, whether or not they said something to it
    "width": 128, "depth": 2, "heads": 4, "groups": None, "key": None, "hidden": None, "length": 512, "dropout": 0.0,
    "mechanism": "softmax", "project": "heads", "join": "matrix", "stack": "plain", "position": "sine", "bias": "none",
    "norm": "layer", "order": "pre", "feedforward": "relu", "project_bias": True, "join_bias": True, "key_norm": False,
}  # fmt: skip
IMAGES = {
    "channels": 1, "classes": 3, "labels": None, "high": 16, "wide": 16, "mean": None, "deviation": None,
    "processor": None,
}  # fmt: skip
PATCHES = {"patch": 4, "stem": "convolution", "pool": "mean", "leading": 1, "distilled": False}
SMALL = {"width": 8, "depth": 1, "heads": 2}
BEIT = {"position": "none", "bias": "own", "order": "scaled(first=0.1)", "feedforward": "gelu"}
BEFORE = {  # spec.json files of the days before
    "lenet": {"family": "lenet", **FLAT, **IMAGES},
    "resnet": {"family": "resnet", **FLAT, **IMAGES, "width": 8, "depths": [1], "block": "basic", "stem": "small"},
    "dvae": {
        "family": "dvae",
        **FLAT,
        **IMAGES,
        "classes": None,
        "width": 8,
        "vocab": 5,
        "patch": 4,
        "temperature": 1.0,
    },
    "word_vectors": {"family": "word_vectors", **FLAT, "width": 8, "vocab": 9, "biased": False},
    "beit": {"family": "beit", **FLAT, **IMAGES, **PATCHES, **SMALL, **BEIT, "classes": None, "vocab": 5, "coder": 4}
    | {"hides": 0.6},
    "convit": {"family": "convit", **FLAT, **IMAGES, **PATCHES, **SMALL, "depth": 2, "local": 1, "strength": 2.0},
    "bert": {"family": "bert", **FLAT, **SMALL, "vocab": 9, "output": "classes", "classes": 2, "several": True},
    "bart": {"family": "bart", **FLAT, **SMALL, "vocab": 9, "scaled": True, "normed": False},
}
NOW = {
    "beit": {"tokenizer_width": 4, "mask_ratio": 0.6, "width": 8},
    "convit": {"local_up_to_layer": 1, "locality_strength": 2.0, "pool": "mean"},
    "bert": {"multi_label": True, "length": 512},
    "bart": {"scale_embedding": True, "normalize_embedding": False},
}


@pytest.mark.parametrize("family", BEFORE)
def test_a_model_folder_from_before_is_read(family, tmp_path):
    had = {key: value for key, value in BEFORE[family].items() if value is not None}
    known = heedful.models.FAMILIES[family].spec.model_fields
    model = heedful.build(**{key: had[key] for key in had.keys() & known} | NOW.get(family, {}))
    heedful.save(model, tmp_path / "model")
    (tmp_path / "model" / "spec.json").write_text(json.dumps(BEFORE[family]))
    (tmp_path / "model" / MANIFEST).unlink()  # whose sums are those of the file of now
    again = heedful.load(tmp_path / "model")
    assert again.spec == model.spec
    assert all(torch.equal(tensor, state(again)[name]) for name, tensor in state(model).items())


def test_a_key_that_nobody_ever_had_is_refused_in_a_folder_too(tmp_path):
    heedful.save(heedful.build("lenet", channels=1, classes=3), tmp_path / "model")
    (tmp_path / "model" / "spec.json").write_text(json.dumps(BEFORE["lenet"] | {"heats": 4}))
    (tmp_path / "model" / MANIFEST).unlink()
    with pytest.raises(Refusal, match=r"unknown key 'model\.heats'"):
        heedful.load(tmp_path / "model")


def test_a_run_from_before_goes_on(tmp_path):
    spec = runs.short("mae", training__steps=3, training__save_every=2, training__evaluate_every=2)
    runs.train(spec, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "old")
    values = yaml.safe_load((tmp_path / "old" / "run.yaml").read_text())
    model = values["model"]
    former = {"hides": model.pop("mask_ratio"), "pool": "first", "distilled": False}
    values["model"] = {key: value for key, value in FLAT.items() if value is not None} | model | former
    values["task"] = "rebuilding"
    (tmp_path / "old" / "run.yaml").write_text(yaml.safe_dump(values))
    assert begun_spec(tmp_path / "old" / "run.yaml").model == begun_spec(tmp_path / "whole" / "run.yaml").model
    for name in ("result.json", "report.html"):
        (tmp_path / "old" / name).unlink()
    shutil.rmtree(tmp_path / "old" / "model")
    assert runs.train(spec, tmp_path / "old", resume=True) == runs.train(spec, tmp_path / "whole", resume=True)


def test_a_former_key_in_a_recipe_is_refused_with_its_name_of_now(tmp_path):
    run = recipes.resolve("dino", ["data=toy", "model.small=2"])
    with pytest.raises(Refusal, match=r"^model\.small is called model\.local_crops now; write that$"):
        runs.train(run, tmp_path / "run")


@pytest.mark.parametrize("former", FORMER)
def test_a_former_name_of_a_task_is_refused_with_the_one_of_now_and_read_beside_a_model(tmp_path, former):
    now = FORMER[former]
    assert former not in USES and now in USES
    if now in TASKS:
        with pytest.raises(Refusal, match=rf"^the task '{former}' is called '{now}' now; write that$"):
            recipes.resolve("vit", [f"task={former}"])
    (tmp_path / "task.json").write_text(json.dumps({"task": former}))
    read = []
    whole = SimpleNamespace(read=lambda folder, state: read.append((folder, state)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trained_run, "USES", {now: whole})
        trained_run.work_of(tmp_path)
    assert read == [(tmp_path, {})]
