"""What a model answers has a type: it says itself in a line, reads back from its own JSON, and stands on a page."""

import json

import pytest
import torch

from heedful.errors import Refusal
from heedful.looking.page import page
from heedful.results import (
    Entity,
    ImageTokens,
    Label,
    Labels,
    Neighbours,
    Number,
    Result,
    Score,
    Series,
    Span,
    Tags,
    Text,
    Unread,
    Vector,
)

ONES = [
    ("a text", Text("a text", -1.5)),
    ("no", Label.among(["yes", "no"], torch.tensor([0.25, 0.75]))),
    ("a 0.5000\tb 0.2500", Labels((("a", 0.5), ("b", 0.25)))),
    ("0.123457", Number(0.1234567)),
    ("0.1235", Score(0.1234567)),
    ("O B-x", Tags(("the", "cat"), ("O", "B-x"), 0.5, (Entity("x", "cat", 4, 7, 0.75),))),
    ("a cat", Span("a cat", 3, 8, 0.5)),
    ("", Span()),
    ("", Unread("the input is empty")),
    ("[0.5, 0.33333333]", Vector((0.5, 1 / 3))),
    ("king 0.500, queen 0.250", Neighbours((("king", 0.5), ("queen", 0.25)))),
    ("3 1 4", ImageTokens((3, 1, 4))),
    ("0.1,2.0; 3.0,4.0", Series(((float(torch.tensor(0.1)), 2.0), (3.0, 4.0)))),
]


def test_every_kind_is_tried():
    assert {type(one) for _, one in ONES} == set(Result.kinds.values())


@pytest.mark.parametrize(("line", "one"), ONES)
def test_a_result_says_itself_and_reads_back_from_its_json(line, one):
    assert one.plain() == line
    assert Result.read(json.loads(json.dumps(one.json()))) == one
    assert one.section().title in page("Answers", [one.section()])


@pytest.mark.parametrize("given", [{}, {"kind": "box"}, {"kind": "text"}, {"kind": "number", "value": 1.0, "more": 2}])
def test_what_is_no_result_is_refused(given):
    with pytest.raises(Refusal, match="result"):
        Result.read(given)


def test_the_likeliest_class_is_the_first_of_the_most_likely():
    label = Label.among(["a", "b", "c"], torch.tensor([0.2, 0.5, 0.3]))
    assert (label.name, label.chance) == ("b", 0.5) and [name for name, _ in label.chances] == ["a", "b", "c"]


def test_the_best_answers_are_those_that_an_answer_knows_of():
    label = Label.among(["a", "b", "c"], torch.tensor([0.25, 0.5, 0.25]))
    assert [one.scored() for one in label.best(2)] == ["b\t0.5000", "a\t0.2500"]
    assert label.best(9)[2] == Label("c", 0.25) and Labels((("a", 0.1), ("b", 0.9))).best(1) == [Label("b", 0.9)]
    with pytest.raises(Refusal, match="this model's is a vector; leave it out"):
        Vector((1.0,)).best(2)


def test_an_answer_says_its_place_and_how_likely_it_is():
    tags = Tags(("the", "cat"), ("O", "B-x"), 0.5, (Entity("x", "cat", 4, 7, 0.75),))
    assert tags.scored() == "O B-x\tx cat 4:7 0.7500\t0.5000"
    assert Span("a cat", 3, 8, 0.5).scored() == "a cat\t3:8\t0.5000" and Span(chance=0.5).scored() == "\t\t0.5000"


def test_a_kind_of_ones_own_stands_in_for_none_of_the_house():
    with pytest.raises(
        Refusal, match=r"results of kind 'label' are those of heedful\.results; give yours another name"
    ):
        type("Label", (Text,), {"__module__": "my_parts.results"})
    assert Result.kinds["label"] is Label
