"""The law of every public layout: names, tensors and configs go there and back, and nothing is lost or left over."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import heedful
from heedful import models
from heedful.errors import Refusal
from heedful.formats import hf_models
from heedful.formats.foreign_config import Config
from heedful.formats.layout_registry import LAYOUTS, layout_for
from heedful.formats.name_rules import Row, Rule, Same, Stacked, Transposed, rules_of
from heedful.formats.weights import state
from heedful.models.canonical import meaning
from heedful.testing.format_laws import bijection, draw_model
from heedful.training.prepare import prepare
from tests.formats.layouts import CONFIGS
from tests.training.runs import CPU, short

pytestmark = pytest.mark.filterwarnings("ignore:transformers cannot say that a picture fills")
EVERY = [(kind, number) for kind, configs in CONFIGS.items() for number in range(len(configs))]
ALL = pytest.mark.parametrize(("kind", "number"), EVERY)


def config_of(kind: str, number: int) -> dict[str, Any]:
    return {"model_type": kind, **CONFIGS[kind][number]}


def spec_of(config: dict[str, Any]) -> models.Spec:
    layout = LAYOUTS[config["model_type"]]
    return hf_models.read_spec(layout, Config(config, "config.json"), {})


def saved(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def test_every_layout_is_tested_here():
    assert set(CONFIGS) == set(LAYOUTS)


@ALL
def test_names_and_tensors_are_a_bijection(kind, number):
    bijection(LAYOUTS[kind], spec_of(config_of(kind, number)))


@ALL
def test_a_config_becomes_a_spec_and_the_same_config_again(kind, number):
    config = config_of(kind, number)
    spec = spec_of(config)
    layout, written = layout_for(spec)
    assert layout.kind == kind
    assert meaning(spec_of(written)) == meaning(spec)
    for key, value in CONFIGS[kind][number].items():
        if value is not None:
            assert written[key] == value, key


@ALL
def test_a_folder_is_written_and_read_and_written_the_same(kind, number, tmp_path):
    model = draw_model(spec_of(config_of(kind, number)))
    heedful.save(model, tmp_path / "one", layout="hf")
    again = heedful.load(tmp_path / "one")
    assert meaning(again.spec) | {"processor": None} == meaning(model.spec) | {"processor": None}  # which a file tells
    ours, theirs = state(model), state(again)
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    heedful.save(again, tmp_path / "two", layout="hf")
    made = {path.name for path in (tmp_path / "one").iterdir()}
    assert made == {path.name for path in (tmp_path / "two").iterdir()}
    for name in made:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@ALL
def test_each_missing_and_each_unexpected_tensor_is_named(kind, number, tmp_path):
    heedful.save(draw_model(spec_of(config_of(kind, number))), tmp_path / "whole", layout="hf")
    tensors = saved(tmp_path / "whole")
    for name in [name for name in tensors if not LAYOUTS[kind].is_ignored(name)][:: max(1, len(tensors) // 3)]:
        place = tmp_path / name
        place.mkdir()
        (place / "config.json").write_bytes((tmp_path / "whole" / "config.json").read_bytes())
        save_file({other: one for other, one in tensors.items() if other != name}, place / "model.safetensors")
        with pytest.raises(Refusal, match=r"missing|unexpected"):
            heedful.load(place)
        save_file(tensors | {name: torch.zeros(3, 3, 3)}, place / "model.safetensors")
        with pytest.raises(Refusal, match=rf"'{name}' is \[3, 3, 3\], not"):
            heedful.load(place)
        save_file(tensors | {f"{name}.more": torch.zeros(1)}, place / "model.safetensors")
        with pytest.raises(Refusal, match=rf"'{name}.more' is unexpected"):
            heedful.load(place)


@ALL
def test_a_key_that_nobody_knows_is_refused_by_name(kind, number):
    with pytest.raises(Refusal, match="extra_power is '3', which is not supported and could change"):
        spec_of(config_of(kind, number) | {"extra_power": 3})
    spec_of(config_of(kind, number) | {"extra_power": None, "_name_or_path": "x", "use_cache": True})


@ALL
def test_a_value_of_another_kind_is_refused_by_name(kind, number):
    config = config_of(kind, number)
    for key, value in config.items():
        if type(value) in (int, float, bool) and not key.endswith("token_id"):
            with pytest.raises(Refusal, match=key):
                spec_of(config | {key: "many"})


@pytest.mark.parametrize("value", [[1], [], [0, 2]])
@pytest.mark.parametrize(
    "kind", [kind for kind in LAYOUTS if "pad" in models.FAMILIES[LAYOUTS[kind].family].spec.model_fields]
)
def test_several_ids_are_refused_by_name_where_there_is_one(kind, value):
    with pytest.raises(Refusal, match=r"config.json: pad_token_id is '\[.*it should be"):
        spec_of(config_of(kind, 0) | {"pad_token_id": value})


@pytest.mark.parametrize("kind", ["gpt2", "llama", "t5", "bart", "bert"])
def test_a_model_with_an_output_that_is_not_read_is_refused_by_name(kind):
    with pytest.raises(Refusal, match=r"architectures is .*ForTrainingCats"):
        spec_of(config_of(kind, 0) | {"architectures": ["ForTrainingCats"]})


def test_numbers_that_no_norm_can_have_are_refused():
    with pytest.raises(Refusal, match=r"layer_norm_epsilon is '-1'; it should be a number above 0"):
        spec_of(config_of("gpt2", 0) | {"layer_norm_epsilon": -1})


def test_an_unknown_kind_lists_the_known_ones():
    with pytest.raises(Refusal, match=r"config.json: unknown model_type 'gpt3'; did you mean 'gpt2'\? known: "):
        hf_models.layout_of(Config({"model_type": "gpt3"}, "config.json"))
    with pytest.raises(Refusal, match=r"config.json: model_type is missing"):
        hf_models.layout_of(Config({}, "config.json"))


@pytest.mark.parametrize("recipe", ["gpt-text", "bert-text", "classify", "tag", "answer", "translate", "chat-text"])
def test_a_recipe_that_no_layout_can_say_can_be_said_with_the_words_that_are_named(tmp_path, recipe):
    with pytest.raises(Refusal, match=r"train it with (model\.\S+ ?)+, or save it in the native layout") as refused:
        heedful.save(prepare(short(recipe), CPU).model, tmp_path / "there", layout="hf")
    words = dict(re.findall(r"model\.(\w+)=([^\s,]+)", str(refused.value)))
    given = {f"model__{key}": value for key, value in words.items()}
    heedful.save(prepare(short(recipe, **given), CPU).model, tmp_path / "there", layout="hf")
    assert heedful.load(tmp_path / "there")


def test_what_the_data_decide_is_no_word_to_train_with(tmp_path):
    with pytest.raises(Refusal, match=r"tasks=\d; save it in the native layout"):
        heedful.save(prepare(short("classify-several"), CPU).model, tmp_path / "there", layout="hf")


def test_what_a_layout_cannot_say_is_refused_by_name(tmp_path):
    model = heedful.build("gpt", vocab=20, width=8, heads=2, position="sine")
    with pytest.raises(Refusal, match=r"'gpt2' cannot say position='sine'; train it with model\.position=learned, or"):
        heedful.save(model, tmp_path / "there", layout="hf")
    pooled = heedful.build(
        "vit", channels=3, high=8, wide=8, patch=4, width=8, heads=2, depth=1, classes=2, pool="mean"
    )
    with pytest.raises(Refusal, match=r"no layout of Hugging Face's says model\.pool='mean' of 'vit'"):
        heedful.save(pooled, tmp_path / "there", layout="hf")
    with pytest.raises(Refusal, match="family 'forecaster' has no layout of Hugging Face's"):
        heedful.save(heedful.build("forecaster", channels=2), tmp_path / "there", layout="hf")
    with pytest.raises(Refusal, match=r"unknown layout 'hff'; did you mean 'hf'\? known: heedful, hf"):
        heedful.save(model, tmp_path / "there", layout="hff")
    assert not (tmp_path / "there").exists()


RULES: list[Rule] = [
    Same("a.{n}.weight", "x.{n}.w"),
    Transposed("b.{n}.weight", "y.{n}.w"),
    Stacked("c.{n}.{kind}", {"q.{n}.{kind}": 2, "k.{n}.{kind}": 1, "v.{n}.{kind}": 1}),
    Row("d", "z"),
]


@pytest.mark.parametrize(
    ("name", "names", "shape", "shapes"),
    [
        ("a.0.weight", ["x.0.w"], (4, 3), [(4, 3)]),
        ("b.12.weight", ["y.12.w"], (4, 3), [(3, 4)]),
        ("c.1.bias", ["q.1.bias", "k.1.bias", "v.1.bias"], (4,), [(2,), (1,), (1,)]),
        ("d", ["z"], (4,), [(1, 4)]),
    ],
)
def test_a_rule_fills_its_holes_and_can_be_read_both_ways(name, names, shape, shapes):
    rule = rules_of([name], RULES)[name]
    assert list(rule.names) == names and rule.shapes(shape) == shapes
    ours = torch.randn(shape)
    theirs = rule.write(ours)
    assert [tuple(one.shape) for one in theirs] == shapes and torch.equal(rule.read(theirs), ours)


def test_a_table_that_is_no_bijection_is_found_out():
    with pytest.raises(KeyError, match=r"0 rules for 'a.0.bias'"):
        rules_of(["a.0.bias"], RULES)
    with pytest.raises(KeyError, match=r"2 rules for 'a.0.weight'"):
        rules_of(["a.0.weight"], [*RULES, Same("a.{n}.{kind}", "y")])
    with pytest.raises(KeyError, match="one name twice"):
        rules_of(["a.0.weight", "a.1.weight"], [Same("a.{n}.weight", "x")])


def test_a_prefix_may_be_left_away(tmp_path):
    config = config_of("gpt2", 0)
    model = draw_model(spec_of(config))
    heedful.save(model, tmp_path / "one", layout="hf")
    bare = {name.removeprefix("transformer."): tensor for name, tensor in saved(tmp_path / "one").items()}
    bare |= {"h.0.attn.bias": torch.zeros(1, 1, 8, 8), "h.1.attn.masked_bias": torch.zeros(())}  # of older files
    save_file(bare, tmp_path / "one" / "model.safetensors")
    assert "wte.weight" in bare
    again = heedful.load(tmp_path / "one")
    assert all(torch.equal(one, two) for one, two in zip(state(model).values(), state(again).values(), strict=True))


def test_a_tied_tensor_that_is_there_too_must_be_the_same(tmp_path):
    model = draw_model(spec_of(config_of("gpt2", 0)))
    heedful.save(model, tmp_path / "one", layout="hf")
    tensors = saved(tmp_path / "one")
    save_file(
        tensors | {"lm_head.weight": tensors["transformer.wte.weight"].clone()}, tmp_path / "one/model.safetensors"
    )
    again = heedful.load(tmp_path / "one")
    assert again.outputs.matrix.weight is again.inputs.table.weight
    save_file(tensors | {"lm_head.weight": tensors["transformer.wte.weight"] + 1}, tmp_path / "one/model.safetensors")
    with pytest.raises(Refusal, match=r"'lm_head.weight' and 'transformer.wte.weight' differ"):
        heedful.load(tmp_path / "one")


def parted(folder: Path, tensors: dict[str, Tensor]) -> dict[str, str]:
    """Weights in two files, and an index; what is where."""
    (folder / "model.safetensors").unlink()
    where = {name: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, name in enumerate(tensors)}
    for file in set(where.values()):
        save_file({name: one for name, one in tensors.items() if where[name] == file}, folder / file)
    index(folder, where)
    return where


def index(folder: Path, where: dict[str, Any]) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))


def test_weights_in_several_files_are_read_by_their_index(tmp_path):
    model = draw_model(spec_of(config_of("gpt2", 0)))
    heedful.save(model, tmp_path / "one", layout="hf")
    folder, tensors = tmp_path / "one", saved(tmp_path / "one")
    where = parted(folder, tensors)
    again = heedful.load(folder)
    assert all(torch.equal(one, two) for one, two in zip(state(model).values(), state(again).values(), strict=True))
    name = next(iter(where))
    for wrong, said in (
        ({name: "../elsewhere.safetensors"}, "names '../elsewhere.safetensors', which is no safetensors file"),
        ({name: "/etc/passwd"}, "names '/etc/passwd', which is no safetensors file"),
        ({name: "a\0.safetensors"}, "which is no safetensors file"),
        ({name: "model.bin"}, "names 'model.bin', which is no safetensors file"),
        ({name: "model-00003-of-00002.safetensors"}, "does not exist"),
        ({name: where[[*where][1]]}, f"tensor '{name}' is missing"),
        ({name: 3}, "does not say which tensor is in which file"),
    ):
        index(folder, where | wrong)
        with pytest.raises(Refusal, match=said):
            heedful.load(folder)
    index(folder, where)
    save_file({one: tensors[one] for one in tensors}, folder / where[name])
    with pytest.raises(Refusal, match="is in two files"):
        heedful.load(folder)


def test_pickles_are_refused_with_the_way_to_convert_them(tmp_path):
    heedful.save(draw_model(spec_of(config_of("gpt2", 0))), tmp_path / "one", layout="hf")
    (tmp_path / "one" / "model.safetensors").rename(tmp_path / "one" / "pytorch_model.bin")
    with pytest.raises(Refusal, match=r"pytorch_model.bin is never opened, .* and save the weights as safetensors"):
        heedful.load(tmp_path / "one")


def test_what_ends_a_text_is_known_best_by_the_config_of_generation(tmp_path):
    heedful.save(draw_model(spec_of(config_of("llama", 0))), tmp_path / "one", layout="hf")
    for said, ends in (({"eos_token_id": [7, 8], "odd": 1}, (7, 8)), ({"eos_token_id": 9}, (9,)), ({}, (2,))):
        (tmp_path / "one" / "generation_config.json").write_text(json.dumps(said))
        assert heedful.load(tmp_path / "one").spec.ends == ends
    (tmp_path / "one" / "generation_config.json").write_text('{"eos_token_id": "x"}')
    with pytest.raises(Refusal, match=r"generation_config.json: eos_token_id is 'x'; it should be an id"):
        heedful.load(tmp_path / "one")
