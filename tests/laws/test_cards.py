"""What a class says of its kind is true: whether it can hide the future stands in the golden table too."""

import re

import pytest
import torch

from heedful import models
from heedful.errors import Refusal
from heedful.models import attention_kinds, part_tables, part_words
from heedful.tasks.kinds import every, kind_named
from tests.laws import cases
from tests.laws.test_refusals import sentence


@pytest.mark.parametrize("name", every())
def test_a_card_says_whose_the_kind_is_and_what_it_costs(name):
    kind = kind_named(name)
    assert re.fullmatch(rf".{{8,}} \(.+ {kind.card.year}\)", kind.card.paper)
    assert kind.card.tier in "AB"
    assert "T" in kind.card.cost
    assert len(kind.about.split()) > 6
    assert re.search(r"[A-Z]\w+( et al\.| and [A-Z]\w+)?, (19|20)\d\d|[A-Z]\w+ et al\. \((19|20)\d\d", kind.about), (
        "no paper named"
    )
    assert re.search(r"[Cc]ost", kind.about), "its docstring does not tell what it costs"


def test_a_file_holds_one_paper():
    papers = {}
    for kind in every().values():
        papers.setdefault(kind.part.__module__.removeprefix("heedful.attention."), set()).add(kind.card.paper)
    several = {file for file, of_it in papers.items() if len(of_it) > 1}
    assert several == {"mechanisms.softmax", "projections"}  # `dot` is softmax unscaled, and groups are a number


@pytest.mark.parametrize("name", cases.MECHANISMS)
def test_a_kind_hides_the_future_or_refuses_to_as_its_card_says(name):
    assert attention_kinds.kind_named(name).card.causal == cases.obeys(name, "mask causal")


@pytest.mark.parametrize(
    "name", [name for name, kind in attention_kinds.every().items() if kind.role in attention_kinds.DRAWN]
)
def test_a_kinds_word_can_be_said_to_a_model_and_its_weights_drawn(name):
    kind, count = attention_kinds.kind_named(name), len(attention_kinds.SENTENCE.split())
    known = {**part_tables.MECHANISMS, **part_tables.MASKS, **part_tables.BIASES}
    made = part_words.choose("kind", kind.word(), known, heads=2, width=16, length=32, both_ways=True)
    assert isinstance(made, kind.part)
    weights = kind.weights()
    assert weights.shape == (2, count, count)
    assert weights.isfinite().all()
    if kind.card.causal:
        assert not kind.weights(causal=True).triu(1).any()
    if name not in ("softmax", "scaled", "general", "talking_heads"):  # which begin as softmax
        assert (weights - attention_kinds.kind_named("softmax").weights()).abs().max() > 0.1, (
            "the picture shows softmax again"
        )


@pytest.mark.parametrize("name", part_tables.MECHANISMS)
def test_a_mechanism_refuses_by_the_word_that_names_it(name):
    assert cases.mechanism(name).word == name


def numbers(name):
    """The numbers that a word takes, each at values that make no sense of it, or little."""
    kind = attention_kinds.kind_named(name)
    for key, argument in part_words.arguments(kind.part).items():
        if key not in attention_kinds.BY_MODEL and part_words.kind_of(argument).split(" | ")[0] in ("int", "float"):
            yield from (
                (key, value) for value in (0, -1, *((1e999,) if "float" in part_words.kind_of(argument) else ()))
            )


@pytest.mark.parametrize("name", attention_kinds.every())
def test_a_number_that_makes_no_sense_is_refused_with_its_cure_or_makes_some(name):
    kind = attention_kinds.kind_named(name)
    sizes = {"width": 24, "heads": 2, "depth": 1, "length": 16, "pool": "each", "vocab": 9, "classes": 2}
    for key, value in numbers(name):
        said = {kind.key.removeprefix("model."): kind.word(**{key: value})}
        line = sentence(lambda said=said: models.build("predictor", **sizes, **said))
        if line is not None:
            assert re.search("; [a-z]+ |, not |cannot be read", line), line
            continue
        assert models.build("predictor", **sizes, **said)(torch.arange(4, 9)[None]).isfinite().all(), said


def test_what_no_word_can_write_is_no_argument_of_one():
    with pytest.raises(Refusal, match=r"^unknown argument of mechanism 'blocks': 'layout'; known: size$"):
        part_tables.mask("blocks(size=4, layout=3)")
    with pytest.raises(Refusal, match=r"scale should be float or None, not 'a'$"):
        part_tables.mechanism("softmax(scale='a')", 2, 8)
    assert part_tables.mechanism("softmax(scale=None)", 2, 8).scale(torch.empty(1, 4)) == 0.5


def test_rotary_positions_are_refused_where_a_channel_of_keys_is_no_direction():
    given = {"vocab": 9, "width": 16, "heads": 2, "mechanism": "dpfp"}
    with pytest.raises(Refusal, match=r"rotary positions would turn it; train with model\.position=sine$"):
        models.build("gpt", **given, position="rotary")
    models.build("gpt", **given, position="sine")
