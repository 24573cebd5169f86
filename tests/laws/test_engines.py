"""What an engine answers is what the model answers, whatever the family; and the model never knows of it."""

import copy
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful import models
from heedful.decoding import Answer, begin, steps
from heedful.decoding.beam import beam as search_by_beams
from heedful.decoding.greedy import greedy as search_greedily
from heedful.engines import ENGINES, InferenceEngine, prepacked, refusals
from heedful.engines.engine import RUNNERS, shallow_copy
from heedful.inputs.patches import ConvolvedPatches
from heedful.models import FAMILIES
from heedful.models.writer import Writer

INFERENCE = [name for name in ENGINES if issubclass(ENGINES[name], InferenceEngine)]
OF_A_GPU = {"decode_kernel", "decode_graphs", "cuda_graphs"}
SERVED = {  # on a CPU, among others
    "prepacked": {"gpt", "transformer", "bert", "vit", "resnet"},
    "float16": {"gpt", "transformer", "bert", "vit", "resnet"},
    "fused_block": {"gpt", "llama", "forecaster"},
}
ROUNDING = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(autouse=True)
def small_matrices_gain_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepacked, "WORTHWHILE", 1)


def made(family: str) -> Any:
    torch.manual_seed(0)
    known = FAMILIES[family].spec.model_fields
    numbers = {key: value for key, value in {"width": 32, "heads": 2, "depth": 2}.items() if key in known}
    model = models.build(family, **numbers | FAMILIES[family].toy).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    return model


def plain(model: nn.Module, engine: str) -> nn.Module:
    """The model that an engine must answer as: itself, or one whose matrices are rounded."""
    if engine != "float16":
        return model
    rounded = copy.deepcopy(model)
    kernels = {part.matrix for part in rounded.modules() if isinstance(part, ConvolvedPatches)}  # read, and no more
    for part in rounded.modules():
        if isinstance(part, nn.Linear) and prepacked.fits(part) and part not in kernels:
            part.weight = nn.Parameter(part.weight.detach().half().float())
    return rounded


def state_of(model: nn.Module) -> list[Any]:
    """All that a model holds: its parts, what stands in each of them, and its tensors bit by bit."""
    parts = [(name, type(part), sorted(vars(part)), list(part._modules)) for name, part in model.named_modules()]
    return [*parts, *((name, tensor.numpy().tobytes()) for name, tensor in model.state_dict().items())]


def flat(answer: Any) -> list[Tensor]:
    return [answer] if isinstance(answer, Tensor) else [one for part in answer for one in flat(part)]


@pytest.mark.parametrize("engine", INFERENCE)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_engine_answers_as_the_model_does_or_refuses_in_one_sentence(family: str, engine: str) -> None:
    model, kind = made(family), ENGINES[engine]()
    if why := kind.refuses(model):
        assert family not in SERVED.get(engine, ())
        assert re.fullmatch(r"[^;.\n]+; [^;.\n]+", why), why
        return
    before = state_of(model)
    running = kind.runner(model)
    assert type(running) is type(model) and (running is not model or family not in SERVED[engine])
    inputs = FAMILIES[family].cases(model).inputs(torch.float32)
    with torch.no_grad():
        torch.manual_seed(1)
        expected = flat(plain(model, engine)(*inputs))
        torch.manual_seed(1)
        found = flat(running(*inputs))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **ROUNDING)
    assert state_of(model) == before
    assert all("forward" not in vars(part) for part in (*model.modules(), *running.modules()))
    assert {id(one) for one in running.parameters()} == {id(one) for one in model.parameters()}


def answers(model: Any, family: str) -> list[list[Answer]]:
    torch.manual_seed(1)
    tokens = FAMILIES[family].cases(model).inputs(torch.float32)[0]
    context = begin(model, {next(iter(model.reads), "prompt"): tokens})
    best = search_by_beams(model, context, 3, 2, max_new_tokens=4)
    return [search_greedily(model, context, 4), *best]


WRITERS = [family for family in FAMILIES if issubclass(FAMILIES[family].model, Writer)]


@pytest.mark.parametrize("engine", INFERENCE)
@pytest.mark.parametrize("family", WRITERS)
def test_searches_find_the_same_by_every_engine(family: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, kind = made(family), ENGINES[engine]()
    if kind.refuses(model):
        return
    monkeypatch.setattr(steps, "runner", lambda model, weights="float32": model)  # nothing runs it but what we say
    expected, found = answers(plain(model, engine), family), answers(kind.runner(model), family)
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-3)


def test_what_is_a_gpus_says_so_on_a_cpu() -> None:
    why = refusals(made("gpt"))
    assert {name for name, one in why.items() if "GPU's" in one} == OF_A_GPU
    assert [name for name, one in why.items() if not one] == ["prepacked", "float16", "fused_block", "compiled"]


def test_a_shallow_copy_has_the_parameters_and_hooks_of_what_it_copies() -> None:
    one = nn.Linear(3, 2)
    other, heard = shallow_copy(one), []
    one.register_forward_hook(lambda part, given, made: heard.append(part))
    one.bias = nn.Parameter(torch.ones(2))
    other(torch.zeros(3))
    assert heard == [other] and other.bias is one.bias and other not in RUNNERS
