"""What is refused, and in which words: one golden table. `python -m tests.laws.test_refusals` writes it anew."""

import functools
import json
import re
from collections.abc import Callable

import pytest
import torch

from heedful.attention import (
    Across,
    Blocks,
    Buckets,
    Causal,
    FixedMemory,
    Given,
    MultiHead,
    Padding,
    Prefix,
    Window,
)
from heedful.attention.mechanisms import Scaled, Softmax
from heedful.errors import Refusal
from heedful.inputs import Learned
from heedful.testing import attention_cases
from tests.laws.cases import BIASES, GOLDEN, HEADS, MECHANISMS, mechanism

TWO, THREE = torch.tensor([1, 2]), torch.tensor([1, 2, 3])

PARTS: dict[str, Callable[[], object]] = {
    "Window(0)": lambda: Window(0),
    "Blocks(0)": lambda: Blocks(0),
    "Given of numbers": lambda: Given(torch.ones(3, 3)),
    "Given of three axes": lambda: Given(torch.ones(2, 3, 3, dtype=torch.bool)),
    "a mask for another batch": lambda: Padding(TWO).over(torch.empty(3, 4)),
    "a mask of two batches": lambda: Padding(TWO) & Prefix(THREE),
    "a mask of two numbers of heads": lambda: given(heads=2) | given(heads=3),
    "a mask and a bias of two numbers of heads": lambda: given(heads=2).over(torch.empty(1, 3), bias=BIASES["alibi"]()),
    "Buckets(heads=1, buckets=2)": lambda: Buckets(1, buckets=2),
    "Buckets(heads=1, buckets=1, both_ways=False)": lambda: Buckets(1, buckets=1, both_ways=False),
    "Buckets(heads=1, buckets=32, farthest=8)": lambda: Buckets(1, buckets=32, farthest=8),
    "Softmax(dropout=1.0)": lambda: Softmax(dropout=1.0),
    "Scaled(temperature=0.0)": lambda: Scaled(temperature=0.0),
    "MultiHead(10, heads=4)": lambda: MultiHead(10, heads=4),
    "MultiHead(8, heads=4, groups=3)": lambda: MultiHead(8, heads=4, groups=3),
    "Across(10, heads=4)": lambda: Across(10, heads=4),
    "Across(8, heads=4, groups=3)": lambda: Across(8, heads=4, groups=3),
    "FixedMemory(4) of five": lambda: Causal().over(torch.empty(1, 5), FixedMemory(4)),
    "Learned(4, 2) of five": lambda: Learned(4, 2)(torch.empty(1, 5, 2), torch.arange(5)[None]),
}


def given(heads: int) -> Given:
    return Given(torch.ones(1, heads, 3, 3, dtype=torch.bool))


def sentence(ask: Callable[[], object], kind: type[ValueError] = ValueError) -> str | None:
    """What is said where it is refused."""
    try:
        ask()
    except kind as refusal:
        return str(refusal)
    return None


def refusals(word: str) -> dict[str, str]:
    """A mechanism's refusals: each part of a case by itself, the rest being as plain as can be."""
    return attention_cases.refusals(functools.partial(mechanism, word))


def table() -> dict[str, dict]:
    mechanisms = {word: found for word in MECHANISMS if (found := refusals(word))}
    return {"mechanisms": mechanisms, "parts": {name: sentence(ask) for name, ask in PARTS.items()}}


def test_what_is_refused_stands_in_the_golden_table():
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert table() == {part: golden[part] for part in ("mechanisms", "parts")}, (
        "write it anew with: python -m tests.laws.test_refusals"
    )


@pytest.mark.parametrize("name", PARTS)
def test_a_refusal_is_one_sentence_that_names_the_cure(name):
    said = sentence(PARTS[name])
    assert said is not None, "nothing was refused"
    assert "\n" not in said
    assert re.search(r"; [a-z]+ |, not ", said), "what is wrong, then what to do"


def test_a_mechanism_that_refuses_is_left_out_of_the_laws_and_shown(monkeypatch):
    from heedful.attention.mechanisms import Softmax
    from heedful.models import part_tables
    from tests.laws import cases

    class Choosy(Softmax):
        def forward(self, q, k, v, sight):
            if not sight.dense.all():
                raise Refusal("choosy hides nothing; use softmax")
            return super().forward(q, k, v, sight)

    monkeypatch.setitem(part_tables.MECHANISMS.known, "choosy", Choosy)
    found = refusals("choosy")
    assert "mask causal" in found
    assert set(found.values()) == {"choosy hides nothing; use softmax"}
    assert not {"mask everything", f"groups {HEADS}", "bias alibi"} & set(found)
    monkeypatch.setattr(cases, "refused", lambda word: set(found))
    obeyed = list(cases.cases("choosy", mask=cases.masks(), bias=["none", "alibi"]))
    assert {case.mask for case in obeyed} == {"everything"}
    assert len(obeyed) == 2


if __name__ == "__main__":
    golden = json.loads(GOLDEN.read_text(encoding="utf-8")) | table()
    GOLDEN.write_text(json.dumps(golden, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
