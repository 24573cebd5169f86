"""A new part of any kind is one file from outside, and from inside one file and at most its line in a table."""

from pathlib import Path

import pytest

from tests.architecture.costs import INSIDE, Cost, cost, costs, named_in_table
from tests.architecture.examples import PAGE, examples


@pytest.mark.parametrize("example", examples(), ids=lambda one: one.kind)
def test_a_new_part_costs_one_file_and_at_most_one_line(example):
    outside, inside = costs(example)
    assert outside == Cost(files=1, edits=0)
    assert inside == Cost(files=1, edits=0 if example.kind == "recipe" else 1)


def test_each_kind_has_its_place_and_the_page_names_it():
    assert [example.kind for example in examples()] == [*INSIDE]
    page = PAGE.read_text(encoding="utf-8")
    for example in examples():
        room, table, registry = INSIDE[example.kind]
        where = f"`{registry}` in `heedful/{table}`" if example.kind != "recipe" else f"the folder `heedful/{room}`"
        assert f"| {example.kind} | `{example.group}` | {where}" in page


def test_what_is_changed_is_counted():
    before = {Path("a.py"): "one\ntwo\nthree\n", Path("b.py"): "one\n"}
    assert cost(before, before) == Cost(0, 0)
    assert cost(before, {**before, Path("c.py"): "", Path("a.py"): "one\n2\nthree\nfour\n"}) == Cost(1, 2)
    assert cost(before, {**before, Path("b.py"): ""}) == Cost(0, 1)
    assert named_in_table('A: R = R("a", "b", {})', "A", "c", "d:e") == 'A: R = R("a", "b", {"c": "d:e"})'
    with pytest.raises(AssertionError, match="B has no table"):
        named_in_table("A = {}", "B", "c", "d:e")
