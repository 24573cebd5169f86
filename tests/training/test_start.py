"""A run may begin with what another model has learned: what fits is taken over, and what does not is told."""

from pathlib import Path

import pytest
import torch
import yaml

import heedful
from heedful.errors import Refusal
from heedful.formats.weights import state
from heedful.training import run as training
from heedful.training.ablation import vary
from heedful.training.adapt.init_from import begin
from heedful.training.prepare import prepare
from heedful.training.pretraining_stages import settle
from heedful.training.spec import recipes

CPU = torch.device("cpu")
SMALL = ["data=toy", "data.samples=60", "data.held_out=12", "data.pixels=[8,8]"]
SIZES = ["model.width=16", "model.heads=2", "model.depth=2", "model.hidden=24"]


def test_a_masked_autoencoders_encoder_begins_a_classifier(tmp_path):
    torch.manual_seed(5)
    sizes = {"width": 16, "heads": 2, "depth": 2, "hidden": 24, "patch": 4, "channels": 3, "high": 8, "wide": 8}
    decoder = {"decoder_width": 8, "decoder_depth": 1, "decoder_heads": 1}
    learned = heedful.build("mae", **sizes, **decoder)
    heedful.save(learned, tmp_path / "mae")
    run = recipes.resolve("vit", [*SMALL, *SIZES, "model.position=sine", f"start={tmp_path / 'mae'}"])
    ready = prepare(run, CPU)
    own, there = state(ready.model), state(learned)
    for name, tensor in own.items():
        assert (name in there and torch.equal(tensor, there[name])) == (not name.startswith("outputs")), name
    assert "anew: outputs.weight, outputs.bias" in ready.start


def test_a_table_of_positions_is_resized_to_the_grid(tmp_path):
    numbers = {"channels": 1, "width": 8, "heads": 2, "depth": 1, "patch": 4}
    large = heedful.build("vit", high=16, wide=12, classes=3, **numbers)
    heedful.save(large, tmp_path / "large")
    small = heedful.build("vit", high=8, wide=8, classes=5, **numbers)
    told = begin(small, tmp_path / "large")
    assert torch.equal(small.inputs.position.table, large.inputs.position.resized((2, 2)))
    assert torch.equal(small.inputs.leading, large.inputs.leading) and "anew: outputs.weight, outputs.bias" in told.said


def test_another_model_altogether_is_refused(tmp_path):
    heedful.save(heedful.build("vit", channels=1, high=8, wide=8, patch=4, width=8, heads=2), tmp_path / "narrow")
    wide = heedful.build("vit", channels=1, high=8, wide=8, patch=4, width=16, heads=2)
    with pytest.raises(Refusal, match=r"0 % of the weights fit, so it is another model"):
        begin(wide, tmp_path / "narrow")


def left(folder, *changes):
    run = recipes.resolve("finetune-images", [*SMALL, f"start={folder}", *changes])
    return prepare(settle(run, folder, lambda spec, to: None), CPU)


def test_no_probe_stands_on_a_layer_that_begins_anew(tmp_path):
    grey = {"width": 16, "heads": 2, "depth": 1, "hidden": 24, "patch": 4, "channels": 1, "high": 8, "wide": 12}
    heedful.save(heedful.build("vit", **grey, stem="overlapping"), tmp_path / "grey")
    name, cure = r"inputs\.stem\.steps\.0\.weight begins anew", r"; set data\.channels=1, or leave"
    for change, key in (
        ("compare=probe", "compare=probe"),
        ("training.freeze=[inputs]", r"training\.freeze"),
        ("training.lora.rank=2", r"training\.lora"),
    ):
        with pytest.raises(Refusal, match=f"{name}, and {key} would leave it as chance made it{cure} {key} out"):
            left(tmp_path / "grey", "compare=scratch", change)
        assert left(tmp_path / "grey", "compare=scratch", change, "data.channels=1").start
    assert "anew: inputs.stem.steps.0.weight" in left(tmp_path / "grey", "compare=scratch").start
    with pytest.raises(Refusal, match=r"pool\.\S+ begins anew, and compare=probe .* made it; leave compare=probe out"):
        left(tmp_path / "grey", "data.channels=1", "model.pool=attention", "model.leading=1")


def test_both_outputs_of_a_taught_model_learn_in_a_probe(tmp_path):
    sizes = {"width": 16, "heads": 2, "depth": 1, "hidden": 24, "patch": 4, "channels": 3, "high": 8, "wide": 8}
    heedful.save(heedful.build("vit", **sizes, classes=2, distilled=True), tmp_path / "taught")
    ready = left(tmp_path / "taught")
    assert "anew: outputs.weight, outputs.bias, distilled.weight, distilled.bias" in ready.start
    assert vary(ready, "probe").training.freeze == ["inputs", "encoder"]


def test_images_of_another_size_are_named_where_they_are_why_it_does_not_fit(tmp_path):
    heedful.save(heedful.build("lenet", channels=3, high=16, wide=16, classes=5), tmp_path / "lenet")
    with pytest.raises(
        Refusal, match=r"16 % of the weights fit, for it learned from other images; set data\.pixels=16,"
    ):
        left(tmp_path / "lenet", "data.pixels=32")
    assert left(tmp_path / "lenet", "data.pixels=16").start
    heedful.save(heedful.build("lenet", channels=1, high=16, wide=20, classes=5), tmp_path / "grey")
    with pytest.raises(Refusal, match=r"set data\.channels=1 and data\.pixels=\[16,20\], or leave start out"):
        left(tmp_path / "grey", "data.pixels=32")
    assert left(tmp_path / "grey", "data.pixels=[16,20]", "data.channels=1").start


def test_what_nobody_learns_may_begin_anew_under_a_probe(tmp_path):
    sizes = {"width": 16, "heads": 2, "depth": 1, "hidden": 24, "patch": 4, "channels": 3, "high": 8, "wide": 8}
    heedful.save(heedful.build("vit", **sizes), tmp_path / "softmax")
    ready = left(tmp_path / "softmax", "model.mechanism=performer(features=4)")
    assert "anew: encoder.blocks.0.attention.mechanism." in ready.start


# ---------------------------------------------------------------------- tokens

FEW = ["data=toy", "data.samples=60", "data.held_out=12", "training.steps=1", "training.batch=8"]
NARROW = ["model.width=16", "model.heads=2", "model.depth=1"]
OTHER = r"has learned other tokens than those of data\.tokenizer=words\(size=30\); leave data\.tokenizer out, or leave"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reader") / "run"
    training.train(recipes.resolve("bert-text", [*FEW, *NARROW]), out, False, CPU)
    return out


def test_a_model_goes_on_with_its_own_tokens_or_none(reader):
    begun = [*FEW, f"start={reader}"]
    assert prepare(recipes.resolve("classify", begun), CPU).start
    assert prepare(recipes.resolve("classify", [*begun, f"data.tokenizer={reader}/model/tokenizer.json"]), CPU).start
    for words in ("words(size=30)", "characters"):
        with pytest.raises(Refusal, match=OTHER if "size" in words else r"data\.tokenizer=characters; leave"):
            prepare(recipes.resolve("classify", [*begun, f"data.tokenizer={words}"]), CPU)


def test_who_reads_other_texts_with_tokens_of_its_own_is_told_where_those_of_its_start_are(reader, tmp_path):
    (tmp_path / "book.txt").write_text("\n".join(f"{at} of {at * at % 97} birds sang" for at in range(300)))
    few = [change for change in FEW if "data" not in change]
    own = [*few, *NARROW, f"data={tmp_path / 'book.txt'}", f"start={reader}", "data.tokenizer=words(size=400)"]
    file = reader / "model/tokenizer.json"
    with pytest.raises(Refusal, match=rf"words\(size=400\); set data\.tokenizer={file}, or leave start out$"):
        prepare(recipes.resolve("bert-text", own), CPU)
    assert prepare(recipes.resolve("bert-text", [*own, f"data.tokenizer={file}"]), CPU).start


def test_a_tokenizer_that_is_given_behind_a_recipe_must_be_that_of_the_recipe(reader, tmp_path):
    file = reader / "model/tokenizer.json"
    first = f"start=recipe:bert-text {' '.join([*FEW, *NARROW])}"
    with pytest.raises(Refusal, match=OTHER):
        training.train(
            recipes.resolve("classify", [*FEW, first, "data.tokenizer=words(size=30)"]), tmp_path / "out", False, CPU
        )
    assert not list(tmp_path.iterdir())
    both = recipes.resolve("classify", [*FEW, f"{first} data.tokenizer={file}", f"data.tokenizer={file}"])
    assert training.train(both, tmp_path / "out", False, CPU)["step"] == 1


def test_a_recipe_of_a_users_own_has_the_tokens_of_its_start_unless_it_names_others(reader, tmp_path):
    said = {"task": "classify", "data": {"name": "opinions", "samples": 60, "held_out": 12}, "model": {}}
    place = tmp_path / "mine.yaml"
    place.write_text(yaml.safe_dump(said | {"start": str(reader)}), encoding="utf-8")
    assert prepare(recipes.resolve(str(place)), CPU).run.data.tokenizer == str(reader)
    with pytest.raises(Refusal, match=OTHER):
        prepare(recipes.resolve(str(place), ["data.tokenizer=words(size=30)"]), CPU)
