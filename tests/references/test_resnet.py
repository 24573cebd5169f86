"""ResNet against transformers' at random weights, learning and not; LeNet-5 has the numbers of its paper."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import heedful
from heedful.blocks.convolutions import ChannelNorm
from heedful.errors import Refusal

CASES: dict[str, dict[str, Any]] = {
    "basic": {"hidden_sizes": [8, 16], "depths": [2, 1], "layer_type": "basic"},
    "bottleneck": {"hidden_sizes": [32, 64, 128], "depths": [1, 2, 1], "layer_type": "bottleneck"},
}


def both(folder: Path, **numbers: Any) -> tuple[nn.Module, nn.Module]:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ResNetConfig(embedding_size=8, id2label={n: str(n) for n in range(5)}, **numbers)
    model = transformers.ResNetForImageClassification(config).eval()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(
                    torch.rand(tensor.shape) + 0.5 if name.endswith("var") else torch.randn(tensor.shape) * 0.3
                )
    model.save_pretrained(folder / "theirs")
    return model, heedful.load(folder / "theirs")


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_every_stage_answer_and_gradient_is_theirs(case, learning, tmp_path):
    model, own = (one.train(learning) for one in both(tmp_path, **CASES[case]))
    x = torch.randn(3, 3, 37, 50).requires_grad_()
    x2 = x.detach().clone().requires_grad_()
    seen: list[torch.Tensor] = []
    for stage in own.stages:
        stage.register_forward_hook(lambda _, given, made: seen.append(made))
    answer, wanted = own(x), model(x2, output_hidden_states=True)
    for mine, other in zip(seen, wanted.hidden_states[1:], strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(answer, wanted.logits, rtol=1e-5, atol=1e-5)
    answer.sum().backward()
    wanted.logits.sum().backward()
    torch.testing.assert_close(x.grad, x2.grad, rtol=1e-3, atol=1e-4)
    if learning:  # and so is what the norms have learned of the batch
        norms = [part for part in own.modules() if isinstance(part, nn.BatchNorm2d)]
        others = [part for part in model.modules() if isinstance(part, nn.BatchNorm2d)]
        found = sorted(float(part.running_var.sum()) for part in norms)
        assert found == pytest.approx(sorted(float(part.running_var.sum()) for part in others), rel=1e-5)


def test_what_is_saved_here_is_read_there(tmp_path):
    model, own = both(tmp_path, **CASES["basic"])
    heedful.save(own, tmp_path / "ours", layout="hf")
    again = type(model).from_pretrained(tmp_path / "ours").eval()
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(again(x).logits, model(x).logits)


@pytest.mark.parametrize(("size", "weights"), [("18", 11_689_512), ("34", 21_797_672), ("50", 25_557_032)])
def test_named_sizes_have_the_published_numbers_of_weights(size, weights):
    from heedful import models

    with torch.device("meta"):
        made = models.assemble(models.spec("resnet", size, channels=3, classes=1000))
    assert sum(p.numel() for p in made.parameters()) == weights


def test_one_value_a_channel_is_told_by_those_met_before():
    norm = ChannelNorm(3)
    with torch.no_grad():
        norm.running_mean.fill_(1.0), norm.running_var.fill_(4.0)
    one = torch.randn(1, 3, 1, 1)
    torch.testing.assert_close(norm(one), (one - 1) / 2, rtol=1e-4, atol=1e-5)
    assert norm.running_mean.tolist() == [1.0] * 3


def test_lenet_has_the_numbers_of_its_paper():
    model = heedful.build("lenet", channels=1, classes=10, high=28, wide=28)
    shapes = [tuple(p.shape) for p in model.parameters() if p.dim() > 1]
    assert shapes == [(6, 1, 5, 5), (16, 6, 5, 5), (120, 400), (84, 120), (10, 84)]
    assert model(torch.randn(2, 1, 28, 28)).shape == (2, 10)
    with pytest.raises(Refusal, match="12 x 12 pixels or more"):
        heedful.build("lenet", channels=1, classes=10, high=8, wide=28)
