"""What `make prove` lets learn is what it says: sizes at which every kind that hides, or weighs, does so."""

import json
from pathlib import Path

import pytest
import torch

from heedful.models import attention_kinds, part_tables, part_words
from heedful.tasks.kinds import every
from tests.prove import kinds as prove

PAGE = Path(__file__).parents[2] / "docs" / "attention.md"
NODES = ("star", "bp", "etc")  # stacks whose nodes see and are seen by a rule
HIDE = ("reformer", "routing", "sac", "poolingformer", "longformer_own", "span", *NODES)  # beside the masks


@pytest.mark.parametrize("name", [*part_tables.MASKS, *HIDE])
def test_what_hides_does_hide_at_the_length_that_is_proved(name):
    kind = attention_kinds.kind_named(name)
    for seen in prove.seen(kind):
        assert not seen.all((-1, -2)).any(), "a head sees everything, and is plain softmax"
    if kind.role == "mask":
        mask = part_tables.mask(kind.word(**prove.numbers(kind)), prove.MODEL["heads"])
        assert not mask.over(torch.empty(1, prove.LENGTH)).dense.all((-1, -2)).any()


@pytest.mark.parametrize("name", [name for name, kind in attention_kinds.every().items() if kind.role == "bias"])
def test_what_weighs_does_weigh_at_the_length_that_is_proved(name):
    word = attention_kinds.kind_named(name).word(**prove.numbers(attention_kinds.kind_named(name)))
    bias = part_words.choose("bias", word, part_tables.BIASES, heads=4, both_ways=True, length=prove.LENGTH)
    at = torch.arange(prove.LENGTH)
    b, h, i, j = torch.meshgrid(torch.zeros(1, dtype=torch.long), torch.arange(4), at, at, indexing="ij")
    for table in (one for path, one in bias.named_parameters() if path == "table"):
        torch.nn.init.normal_(table)  # which is learned, and begins as next to nothing
    added = bias.adds(b, h, i, j)
    assert ((added.amax(-1) - added.amin(-1)) > 0.1).double().mean() > 0.9, "most rows weigh some columns less"


def test_the_page_tells_of_every_kind_and_how_it_was_asked():
    text, record = PAGE.read_text(encoding="utf-8"), json.loads(PAGE.with_name(prove.RECORD).read_text("utf-8"))
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    assert [*rows] == [*every()]
    assert {*record} == {*every()} - {*prove.NEVER}
    for name, kind in every().items():
        score, spent = prove.told(name, record.get(name))
        assert f"| {score} | {spent} | {kind.card.paper} |" in rows[name]
        assert all(f"{key}={value}" in rows[name] for key, value in prove.numbers(kind).items())
        assert name in prove.NEVER or record[name]["word"] == kind.word(**prove.numbers(kind)), "prove it anew"
        assert "unknown" not in rows[name] and "yet" not in rows[name]
