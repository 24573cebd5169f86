"""What a class says of its kind is true: whether it can hide the future stands in the golden table too."""

import re

import pytest

from heedful.models import kinds, tables, words
from tests.laws import cases


@pytest.mark.parametrize("name", kinds.every())
def test_a_card_says_whose_the_kind_is_and_what_it_costs(name):
    kind = kinds.known(name)
    assert re.fullmatch(rf".{{8,}} \(.+ {kind.card.year}\)", kind.card.paper)
    assert kind.card.tier in "AB"
    assert "T" in kind.card.cost
    assert len(kind.about.split()) > 6
    assert re.search(r"\d{4}|temperature|forbids|layout", kind.about), "its docstring names the paper"


@pytest.mark.parametrize("name", cases.MECHANISMS)
def test_a_kind_hides_the_future_or_refuses_to_as_its_card_says(name):
    assert kinds.known(name).card.causal == cases.obeys(name, "mask causal")


@pytest.mark.parametrize("name", [name for name, kind in kinds.every().items() if kind.role in kinds.DRAWN])
def test_a_kinds_word_can_be_said_to_a_model_and_its_weights_drawn(name):
    kind, count = kinds.known(name), len(kinds.SENTENCE.split())
    known = {**tables.MECHANISMS, **tables.MASKS, **tables.BIASES}
    made = words.choose("kind", kind.word(), known, heads=2, width=16, length=32, both_ways=True)
    assert isinstance(made, kind.part)
    weights = kind.weights()
    assert weights.shape == (2, count, count)
    assert weights.isfinite().all()
    if kind.card.causal:
        assert not kind.weights(causal=True).triu(1).any()
    if name not in ("softmax", "scaled", "general", "talking_heads"):  # which begin as softmax
        assert (weights - kinds.known("softmax").weights()).abs().max() > 0.1, "the picture shows softmax again"
