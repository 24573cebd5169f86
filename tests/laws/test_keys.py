"""A key of attention says something to every family, or is refused: what is taken and ignored would be a lie."""

import pytest
import torch

from heedful import models
from heedful.attention.mechanisms import Mechanism
from heedful.errors import Refusal
from heedful.models import FAMILIES, part_tables

ATTENTION = ("mechanism", "project", "join", "stack", "bias", "groups", "key", "key_norm")
SMALL = {"width": 24, "heads": 2, "depth": 2, "depths": [1, 1], "out_dim": 16, "hidden_dim": 16, "bottleneck_dim": 8}
IMAGES = torch.randn(2, 3, 16, 16)
VIT = FAMILIES["vit"].toy
SAID = [
    ("mechanism", "window(size=1)"),
    ("mechanism", "blocks(size=1)"),
    ("mechanism", "linear"),
    ("mechanism", "isab"),
    ("project", "collaborative"),
    ("join", "routed"),
    ("stack", "realformer"),
    ("bias", "alibi"),
    ("groups", 1),
    ("key", 6),
    ("key_norm", True),
]


def toy(family: str) -> dict[str, object]:
    """A small model's keys, of those that its family has."""
    small = {key: value for key, value in SMALL.items() if key in FAMILIES[family].spec.model_fields}
    return small | dict(FAMILIES[family].toy)


def answer(family: str, **said: object) -> list[torch.Tensor]:
    """What a new model says, with the same dice whatever is said of it."""
    torch.manual_seed(0)
    model = models.build(family, **toy(family) | said).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(weight.numel())) * 0.3)
        torch.manual_seed(1)
        made = model(*FAMILIES[family].cases(model).inputs(torch.float32))
    return [part for part in (made if isinstance(made, tuple) else (made,)) if isinstance(part, torch.Tensor)]


def test_every_key_of_attention_is_said():
    assert {key for key, _ in SAID} == set(ATTENTION)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("key", "value"), SAID)
def test_what_is_said_of_attention_changes_what_a_model_says_or_is_refused(family, key, value):
    plain = answer(family)
    try:
        other = answer(family, **{key: value})
    except (Refusal, ValueError):
        return
    assert any(one.shape != two.shape or not torch.equal(one, two) for one, two in zip(plain, other, strict=True))


@pytest.mark.parametrize(
    ("word", "key"),
    [("realformer", "stack"), ("luna(memory=4)", "stack"), ("alibi", "bias"), ("collaborative", "project")],
)
def test_a_kind_of_another_key_is_told_by_it(word, key):
    with pytest.raises(Refusal) as refused:
        models.spec("bert", vocab=20, width=16, heads=2, mechanism=word)
    assert str(refused.value).endswith(f"set model.{key}={word}")


@pytest.mark.parametrize("family", FAMILIES)
def test_families_without_attention_have_no_word_for_it(family):
    words = toy(family)
    model = models.build(family, **words)
    if any(isinstance(part, Mechanism) for part in model.modules()):
        return
    for key, value in SAID:
        with pytest.raises(
            Refusal, match=f"the family {family} has nothing that model.{key} could change; leave it out"
        ):
            models.build(family, **words, **{key: value})


@pytest.mark.parametrize("word", part_tables.MECHANISMS)
def test_a_mechanism_looks_within_the_windows_of_a_swin_or_is_told_of_a_family_that_takes_it(word):
    drawn, said = torch.get_rng_state(), ""
    try:
        models.build("swin", **VIT, mechanism=word)
    except Refusal as error:
        said = str(error)
    if said:
        assert said.endswith("use model.mechanism=softmax, or the recipe vit")
        assert torch.equal(torch.get_rng_state(), drawn), "what was tried has thrown the model's dice"
        assert models.build("vit", **VIT, mechanism=word)(IMAGES).isfinite().all()
