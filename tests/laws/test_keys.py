"""A key of attention says something to every family, or is refused: what is taken and ignored would be a lie."""

import pytest
import torch

from heedful import models
from heedful.attention.mechanisms import Mechanism
from heedful.errors import Refusal
from heedful.models import FAMILIES, part_tables
from heedful.testing.family_laws import SAID, answer, key_speaks, toy_keys

ATTENTION = ("mechanism", "project", "join", "stack", "bias", "groups", "key", "key_norm")
IMAGES = torch.randn(2, 3, 16, 16)
VIT = FAMILIES["vit"].toy


def test_every_key_of_attention_is_said():
    assert {key for key, _ in SAID} == set(ATTENTION)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("key", "value"), SAID)
def test_what_is_said_of_attention_changes_what_a_model_says_or_is_refused(family, key, value):
    key_speaks(family, key, value, answer(family))


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
    words = toy_keys(family)
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
