"""What should not learn stays to the bit, what learns by a small product is merged, and layers have their rates."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import heedful
from heedful.errors import Refusal
from heedful.formats import native
from heedful.models import Spec
from heedful.training.adapt.freeze_and_lora import Low, adapt, maps, merge, scales
from heedful.training.loop import Loop
from heedful.training.optimiser import describe_optimiser, optimiser_of
from heedful.training.spec.training_spec import TrainingSpec
from tests.training.runs import assert_same, contents, killed_at, loop_of, short, train

NUMBERS = {"vocab": 20, "width": 16, "depth": 3, "heads": 2, "length": 8}


def bert(**numbers: Any) -> nn.Module:
    torch.manual_seed(3)
    return heedful.build("bert", output="classes", classes=3, **NUMBERS | numbers).double().eval()


def training(**said: Any) -> TrainingSpec:
    return TrainingSpec.model_validate(said)


def learning(model: nn.Module) -> set[str]:
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def test_a_fresh_product_changes_nothing_and_a_learned_one_is_what_the_paper_says() -> None:
    model, tokens = bert(), torch.randint(1, 20, (2, 7))
    before = model(tokens)
    part = model.encoder.blocks[1].attention.project.to_qkv
    weight = part.weight.detach().clone()
    adapt(model, training(lora={"rank": 2, "alpha": 6.0, "parts": ["project", "down"]}))
    model.double()
    assert torch.equal(model(tokens), before)
    lows = [one for one in model.modules() if isinstance(one, Low)]
    assert len(lows) == 6
    for low in lows:
        nn.init.normal_(low.up)
    learned = model(tokens)
    low = part.parametrizations.weight[0]
    merge(model)
    torch.testing.assert_close(part.weight, weight + 3.0 * low.up @ low.down, rtol=0, atol=1e-12)
    assert not torch.allclose(learned, before)
    torch.testing.assert_close(model(tokens), learned, rtol=0, atol=1e-12)
    assert {name for name, _ in model.named_parameters()} == {name for name, _ in bert().named_parameters()}


def test_with_lora_the_products_and_the_outputs_alone_learn() -> None:
    model = bert()
    adapt(model, training(lora={"rank": 2}, freeze=["outputs.pooler"]))
    names = learning(model)
    assert {name for name in names if name.startswith("outputs")} == {"outputs.matrix.weight", "outputs.matrix.bias"}
    assert all("to_qkv.parametrizations.weight.0" in name for name in names if not name.startswith("outputs"))
    assert len(names) == 2 + 3 * 2


def test_what_is_frozen_has_no_gradient_and_no_place_in_the_optimiser() -> None:
    model = bert()
    adapt(model, training(freeze=["inputs", "encoder.blocks.0"]))
    frozen = {name for name, _ in model.named_parameters()} - learning(model)
    assert {name.rsplit(".blocks.", 1)[0] for name in frozen} == {
        *(name for name, _ in model.named_parameters() if name.startswith("inputs")),
        "encoder",
    }
    assert all(name.startswith(("inputs.", "encoder.blocks.0.")) for name in frozen)
    kept = {p for group in optimiser_of(model, training()).param_groups for p in group["params"]}
    assert kept == {parameter for name, parameter in model.named_parameters() if name in learning(model)}


@pytest.mark.parametrize("optimiser", ["adamw", "muon", "sgd", "adafactor"])
def test_rates_fall_from_the_answer_down_block_by_block(optimiser: str) -> None:
    model = bert().float()
    shares, by_name = scales(model, 0.5), dict(model.named_parameters())
    assert shares[by_name["outputs.matrix.weight"]] == 1.0
    assert [shares[by_name[f"encoder.blocks.{at}.norm1.bias"]] for at in range(3)] == [0.125, 0.25, 0.5]
    assert shares[by_name["inputs.table.weight"]] == 0.0625
    made = optimiser_of(model, training(layer_decay=0.5, optimiser=optimiser))
    for group in made.param_groups:
        assert {shares[parameter] for parameter in group["params"]} <= {group["scale"]}
    assert sum(len(group["params"]) for group in made.param_groups) == len(by_name)
    assert describe_optimiser(made, optimiser).endswith(", their rates down to 0.0625 of the highest, layer by layer")
    assert "their rates" not in describe_optimiser(optimiser_of(model, training(optimiser=optimiser)), optimiser)


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        (
            {"freeze": ["encoder.block"]},
            r"no 'encoder.block'; known: inputs, encoder, outputs, encoder.blocks.0, ",
        ),
        ({"freeze": ["inputs", "encoder", "outputs"]}, "freezes every weight"),
        ({"lora": {"parts": ["query"]}}, "no linear map of a block is in 'query'; known: .*to_qkv"),
    ],
)
def test_what_a_model_does_not_have_is_refused(said: dict[str, Any], refused: str) -> None:
    with pytest.raises(Refusal, match=refused):
        adapt(bert(), training(**said))


def test_every_linear_map_of_a_part_is_chosen_once() -> None:
    model = bert()
    assert len(list(maps(model, ["attention"]))) == 6 and len(list(maps(model, ["attention", "join"]))) == 6


HOW = {
    "training__lora": {"rank": 2, "parts": ["attention", "feedforward"]},
    "training__layer_decay": 0.7,
    "training__average": 0.9,
    "training__freeze": ["outputs.pooler"],
    "model__dropout": 0.2,
}


def test_a_run_that_was_killed_goes_on_to_the_same_bits_with_lora_and_rates_by_layer(tmp_path: Path) -> None:
    spec = short("classify", **HOW)
    with killed_at(Loop, "step", 17):
        train(spec, tmp_path / "cut")
    train(spec, tmp_path / "cut", resume=True)
    train(spec, tmp_path / "whole")
    assert_same(contents(tmp_path / "cut"), contents(tmp_path / "whole"))
    model, fresh = native.load(tmp_path / "whole"), loop_of(tmp_path, short("classify")).model
    assert isinstance(model.spec, Spec)
    same = {name for name, tensor in model.named_parameters() if torch.equal(tensor, fresh.get_parameter(name))}
    assert {"inputs.table.weight", "outputs.pooler.matrix.weight", "encoder.blocks.0.norm1.weight"} <= same
    assert not {"encoder.blocks.0.attention.join.weight", "outputs.matrix.weight"} & same
