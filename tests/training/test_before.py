"""A run may name recipes that are trained first, begin as another model is, and be compared with scratch."""

import json

import pytest
import torch
import yaml

import heedful
from heedful.errors import Refusal
from heedful.training import run
from heedful.training.pretraining_stages import run_of_recipe
from heedful.training.spec import recipes

CPU = torch.device("cpu")
SMALL = ["data=toy", "data.samples=60", "data.held_out=12", "data.pixels=[8,8]", "training.steps=3", "training.batch=8"]
MAE = "recipe:mae data=toy training.steps=2 training.batch=8 model.width=16 model.heads=2 model.depth=1"


def test_what_a_run_begins_with_is_trained_first_and_it_is_compared(tmp_path):
    spec = recipes.resolve("finetune-images", [*SMALL, f"start={MAE}"])
    result = run.train(spec, tmp_path / "tuned", False, CPU)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"tuned", "tuned-start"}
    assert set(result["compared"]) == {"scratch", "probe"}
    told = {name: json.loads((tmp_path / f"tuned/{name}/result.json").read_text()) for name in ("scratch", "probe")}
    assert result["compared"] == {name: one["scores"] for name, one in told.items()}
    report = (tmp_path / "tuned/report.html").read_text()
    assert report.count("What the beginning is worth: beside the same model") == 2
    frozen = yaml.safe_load((tmp_path / "tuned/probe/run.yaml").read_text())["training"]["freeze"]
    assert frozen == ["inputs", "encoder"]
    said = (tmp_path / "tuned/run.yaml").read_text()
    assert "recipe:mae" in said and "pool: mean" in said and "width: 16" in said
    again = run.train(spec, tmp_path / "tuned", True, CPU)
    assert again == result


def test_a_beit_that_guessed_visual_tokens_goes_on_to_tell_classes(tmp_path):
    sizes = {"width": 16, "heads": 2, "depth": 1, "hidden": 24, "patch": 4, "channels": 3, "high": 8, "wide": 8}
    learned = heedful.build("beit", **sizes, vocab=7, tokenizer_width=5, mask_ratio=0.5)
    heedful.save(learned, tmp_path / "beit")
    run.train(recipes.resolve("finetune-images", [*SMALL, f"start={tmp_path / 'beit'}"]), tmp_path / "out", False, CPU)
    tuned, probe = (heedful.load(tmp_path / "out" / name) for name in ("model", "probe/model"))
    assert (tuned.spec.family, tuned.spec.vocab, tuned.spec.tokenizer_width, tuned.coder) == ("beit", None, None, None)
    for name, tensor in learned.state_dict().items():
        left = name.startswith(("coder.", "tokens.", "blank"))
        assert left or torch.equal(tensor, probe.state_dict()[name]), name
    assert not torch.equal(tuned.inputs.leading, learned.inputs.leading)


def test_a_network_that_was_chosen_goes_on_with_its_own_layers(tmp_path):
    sizes = {"width": 16, "heads": 2, "depth": 2, "hidden": 24, "patch": 4, "channels": 3, "high": 8, "wide": 8}
    learned = heedful.build("autoformer", **sizes, classes=3, key=8, layers=[[2, 24], [1, 12]], pool="mean")
    heedful.save(learned, tmp_path / "chosen")
    spec = recipes.resolve("finetune-images", [*SMALL, f"start={tmp_path / 'chosen'}"])
    run.train(spec, tmp_path / "out", False, CPU)
    tuned, probe = (heedful.load(tmp_path / "out" / name) for name in ("model", "probe/model"))
    assert (tuned.spec.family, tuned.spec.layers, tuned.spec.classes) == ("autoformer", [[2, 24], [1, 12]], 5)
    for name, tensor in learned.state_dict().items():
        assert torch.equal(tensor, probe.state_dict()[name]) == (not name.startswith("outputs")), name


def test_what_comes_before_has_the_same_data_but_for_what_is_said_of_them():
    spec = recipes.resolve("finetune-images", SMALL)
    data = run_of_recipe(f"{MAE} data.samples=99", spec).data
    assert (data.samples, data.held_out, data.pixels, data.name) == (99, 12, [8, 8], "shapes")
    assert run_of_recipe(MAE, spec).data.samples == 60


def test_a_teacher_that_is_there_must_be_the_one_that_is_asked_for(tmp_path):
    wanted = [
        "teacher=recipe:resnet data=toy training.steps=2 training.batch=8 model.width=4",
        "training.evaluate_every=3",
    ]
    run.train(recipes.resolve("deit", [*SMALL, *wanted]), tmp_path / "deit", False, CPU)
    assert (tmp_path / "deit-teacher/result.json").exists()
    other = [wanted[0].replace("width=4", "width=6"), wanted[1]]
    for path in (tmp_path / "deit").iterdir():
        path.rename(tmp_path / f"old-{path.name}")
    with pytest.raises(Refusal, match=r"deit-teacher was begun with model\.width=4, not 6"):
        run.train(recipes.resolve("deit", [*SMALL, *other]), tmp_path / "deit", False, CPU)


@pytest.mark.parametrize(
    ("recipe", "changes", "said"),
    [
        ("vit", ["compare=probe"], "compare=probe measures what a start is worth"),
        ("vit", ["model.family=start"], "model.family=start copies the spec of the model that the run begins with"),
        ("vit", ["start=recipe:nobody"], "unknown recipe 'nobody'"),
        ("vit", ["start=recipe:'"], "does not name a recipe"),
    ],
)
def test_what_cannot_come_before_is_refused(recipe, changes, said, tmp_path):
    with pytest.raises(Refusal, match=said):
        run.train(recipes.resolve(recipe, [*SMALL, *changes]), tmp_path / "out", False, CPU)


@pytest.mark.parametrize(
    ("recipe", "changes", "said"),
    [
        ("beit", ["model.stem=overlapping"], "model.stem=overlapping makes a patch of its neighbours too"),
        ("beit", ["model.vocab=999"], "model.vocab=999 and the teacher has 32; set model.vocab=32"),
        ("beit", ["model.patch=64"], "patch"),
        ("deit", ["model.distilled=false"], "teacher wants a model with a token that is taught"),
        ("vit", [f"start={MAE}", "model.heads=7"], "heads"),
    ],
)
def test_what_will_not_work_is_refused_before_anything_is_trained(recipe, changes, said, tmp_path):
    with pytest.raises(Refusal, match=said):
        run.train(recipes.resolve(recipe, [*SMALL, *changes]), tmp_path / "out", False, CPU)
    assert list(tmp_path.iterdir()) == []


def test_a_text_model_that_is_trained_first_reads_its_own_texts_and_hands_on_its_tokens(tmp_path):
    bert = "recipe:bert-text data=toy training.steps=1 training.batch=8 model.width=16 model.heads=2 model.depth=1"
    spec = recipes.resolve("classify", ["data=toy", "data.samples=60", "training.steps=1", f"start={bert}"])
    assert (run_of_recipe(bert, spec).data.name, spec.data.name) == ("captions", "opinions")
    run.train(spec, tmp_path / "tuned", False, CPU)
    one, other = (tmp_path / f"{name}/model/tokenizer.json" for name in ("tuned-start", "tuned"))
    assert one.read_bytes() == other.read_bytes()
    assert yaml.safe_load((tmp_path / "tuned/run.yaml").read_text())["start"] == bert
    assert run.train(spec, tmp_path / "tuned", True, CPU)["step"] == 1


LONG = f"{'a fine film and ' * 20}\tyes"
MANY = [f"film {at} was {'dull' if at % 2 else 'fine'}\t{'no' if at % 2 else 'yes'}" for at in range(60)]


@pytest.mark.parametrize(
    ("rows", "changes", "said"),
    [
        (None, [], r"data=\S+ does not exist"),
        ([*MANY, "no class"], [], "line 61"),
        ([row.replace("no", "yes") for row in MANY], [], "all samples to learn from are of class 'yes'"),
        ([*MANY, LONG], [], r"line 61: \d+ long and the model takes 26"),
        (MANY, ["training.freeze=[nonsense]"], r"training\.freeze: the model has no 'nonsense'; known: inputs, "),
        (MANY, ["training.lora.rank=2", "training.lora.parts=[nonsense]"], r"training\.lora\.parts: no linear map"),
        (MANY, ["training.freeze=[outputs]"], r"start=\S+/out-start: outputs\S+ begins anew"),
        (MANY, ["model.width=32"], r"start=\S+/out-start: \d+ % of the weights fit"),
        (MANY, ["model.mechanism=nonsense"], "unknown mechanism 'nonsense'"),
    ],
)
def test_a_fault_of_what_comes_behind_is_told_before_anything_is_trained(rows, changes, said, tmp_path):
    if rows:
        (tmp_path / "rows.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    bert = "recipe:bert-text data=toy data.samples=60 model.width=16 model.heads=2 model.depth=1"
    spec = recipes.resolve("classify", [f"data={tmp_path / 'rows.tsv'}", f"start={bert}", *changes])
    with pytest.raises(Refusal, match=said) as refused:
        run.train(spec, tmp_path / "runs/out", False, CPU)
    assert not (tmp_path / "runs").exists() and len(str(refused.value).splitlines()) == 1


def test_a_network_that_will_be_chosen_is_foreseen_as_one_that_was(tmp_path):
    searched = "recipe:autoformer data=toy data.samples=60 training.steps=1 training.batch=8"
    spec = recipes.resolve("finetune-images", [*SMALL, f"start={searched}", "training.freeze=[nonsense]"])
    with pytest.raises(Refusal, match=r"training\.freeze: the model has no 'nonsense'"):
        run.train(spec, tmp_path / "out", False, CPU)
    assert list(tmp_path.iterdir()) == []


def test_what_is_trained_first_takes_the_version_of_the_data_it_is_trained_on():
    def first(*changes):
        return run_of_recipe("recipe:dino training.steps=3", recipes.resolve("finetune-images", changes))

    shapes, others = first(), first("data='photos: mine/'")
    assert (shapes.model["local_crops"], others.model["local_crops"]) == (0, 4)
    assert "turn" in shapes.data.augment and "turn" not in others.data.augment
    assert [one.training.steps for one in (shapes, others)] == [3, 3]
    assert [one.data.name for one in (shapes, others)] == ["shapes", "photos: mine/"]
    of_mae = run_of_recipe("recipe:mae training.steps=3", recipes.resolve("finetune-images", ["data=cifar10"]))
    assert of_mae.model["width"] == recipes.resolve("mae", ["data=cifar10"]).model["width"] > others.model["width"]
    by_files = recipes.resolve("dino", ["data.train=a.csv", "data.valid=b.csv", "data.test=c.csv"])
    assert by_files.model["local_crops"] == 4 and by_files.expected is None
