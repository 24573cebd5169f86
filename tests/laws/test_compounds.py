"""Kinds that are no mechanism: pairs, projections, joins and stacks obey the laws as whole models, or refuse.

Every word of `kinds.every()` that is none is asked; what is refused stands in the golden table, under "compounds".
`python -m tests.laws.test_compounds` writes that part of it anew.
"""

import functools
import json
import re

import pytest
import torch

from heedful import models
from heedful.attention import Memory
from heedful.attention.kv_cache_tree import TreeMemory
from heedful.models import attention_kinds
from tests.laws import families
from tests.laws.cases import EXACT, GOLDEN, agree, gradients, parameters, stir
from tests.laws.test_refusals import sentence

COMPOUNDS = [name for name, kind in attention_kinds.every().items() if kind.role not in attention_kinds.DRAWN]
SMALL = {"size": 2, "far": 4, "stride": 2, "points": 3, "memory": 3, "everywhere": 2}


def model(name, compound, **more):
    kind = attention_kinds.kind_named(compound)
    chosen = {kind.key.removeprefix("model."): kind.word(**SMALL)}
    torch.manual_seed(0)
    family, needed = families.FAMILIES[name]
    small = {"width": 24, "heads": 6, "depth": 3, "hidden": 20, "length": 16}
    return stir(models.build(family, **small | needed | chosen | more)).double()


def hides(compound):
    """A model that hides the future."""
    return model("gpt", compound)(*families.together("gpt"))


def writes(compound):
    """A model that writes token by token."""
    memory, net = Memory(), model("gpt", compound)
    (tokens,) = families.together("gpt")
    return [net(tokens[:, at : at + 1], memory) for at in range(3)]


def biased(compound):
    """A model whose scores have a bias."""
    return model("predictor of labels", compound, bias="alibi")(*families.together("predictor of labels"))


def masked(compound):
    """A model with a window, where its mechanism is not the compound itself."""
    more = {} if attention_kinds.kind_named(compound).role == "pair" else {"mechanism": "window(size=3)"}
    return model("predictor of labels", compound, **more)(*families.together("predictor of labels"))


def linear(compound):
    """A model with another mechanism than softmax."""
    more = {} if attention_kinds.kind_named(compound).role == "pair" else {"mechanism": "linear"}
    return model("predictor of labels", compound, **more)(*families.together("predictor of labels"))


ASKED = {"future": hides, "memory": writes, "bias": biased, "mask": masked, "mechanism": linear}


def table():
    found = {}
    for name in COMPOUNDS:
        said = {what: sentence(functools.partial(ask, name)) for what, ask in ASKED.items()}
        found[name] = {what: line for what, line in said.items() if line is not None}
    return found


def refused(compound):
    return json.loads(GOLDEN.read_text(encoding="utf-8"))["compounds"][compound]


def test_what_compounds_refuse_stands_in_the_golden_table():
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))["compounds"]
    assert table() == golden, "write it anew with: python -m tests.laws.test_compounds"


@pytest.mark.parametrize("compound", COMPOUNDS)
def test_a_compound_hides_the_future_or_refuses_to_as_its_card_says(compound):
    assert attention_kinds.kind_named(compound).card.causal == ("future" not in refused(compound))


@pytest.mark.parametrize("order", ["pre", "post", "scaled(first=0.5)"])
@pytest.mark.parametrize("compound", COMPOUNDS)
def test_padding_changes_nothing_and_everything_learns(compound, order):
    name = "predictor of labels"
    net = model(name, compound, order=order, position="rotary")
    whole = net(*families.together(name))
    padded = [families.real(name, answer, n) for answer, n in zip(whole, families.LENGTHS, strict=True)]
    alone = [net(*inputs)[0] for inputs in families.alone(name)]
    one, two = (torch.cat([x.flatten() for x in answers]) for answers in (padded, alone))
    agree(one, two, parameters(net), compound, rtol=1e-9, atol=1e-10)  # gradients of thousands
    given = dict(zip(dict(net.named_parameters()), gradients(one, parameters(net)), strict=True))
    assert all(g.isfinite().all() for g in given.values())
    assert not [path for path, g in given.items() if not g.any()], "what learns nothing"


@pytest.mark.parametrize("compound", COMPOUNDS)
def test_the_future_never_leaks(compound):
    if "future" in refused(compound):
        pytest.skip("refused, as the golden table says")
    net, (tokens,) = model("gpt", compound), families.together("gpt")
    before = net(tokens)
    for now in range(tokens.shape[1] - 1):
        changed = tokens.clone()
        changed[:, now + 1 :] = families.other(tokens)[:, now + 1 :]
        torch.testing.assert_close(net(changed)[:, : now + 1], before[:, : now + 1], **EXACT)


@torch.no_grad()
@pytest.mark.parametrize("compound", COMPOUNDS)
def test_steps_with_memory_are_one_pass(compound):
    if "memory" in refused(compound):
        pytest.skip("refused, as the golden table says")
    net, (tokens,) = model("gpt", compound, position="rotary"), families.together("gpt")
    whole, memory = net(tokens), Memory()
    parts = [net(tokens[:, :3], memory), *(net(tokens[:, at : at + 1], memory) for at in range(3, tokens.shape[1]))]
    torch.testing.assert_close(torch.cat(parts, 1), whole, **EXACT)
    tree, step = TreeMemory(), tokens[:, :1].expand(-1, 2)
    net(step, tree)
    tree.follow(torch.tensor([[1, 0]]).expand(len(tokens), -1))
    two = torch.stack((tokens[:, 1], tokens[:, 2]), 1)
    side = net(two, tree)
    for beam in range(2):
        path = torch.stack((tokens[:, 0], two[:, beam]), 1)
        torch.testing.assert_close(side[:, beam], net(path)[:, -1], **EXACT)


@pytest.mark.parametrize("compound", COMPOUNDS)
def test_without_positions_a_compound_turns_with_its_inputs(compound):
    net = model("predictor of labels", compound, position="none")
    (x,), turn = (families.together("predictor of labels")[0][:1],), torch.tensor([4, 2, 6, 0, 1, 5, 3])
    same = torch.allclose(net(x[:, turn]), net(x)[:, turn], atol=1e-10)
    assert same != attention_kinds.kind_named(compound).card.ordered


@pytest.mark.parametrize(
    "compound", [name for name in COMPOUNDS if attention_kinds.kind_named(name).key != "model.mechanism"]
)
def test_a_compound_takes_any_mechanism_or_refuses_it_with_the_cure(compound):
    small = {"size": 2, "row": 3, "rank": 3, "landmarks": 3, "clusters": 2, "buckets": 2, "features": 4, "edges": 3}
    words = [kind.word(**small) for kind in attention_kinds.every().values() if kind.key == "model.mechanism"]
    for word in words:

        def answer(word=word):
            net = model("predictor of labels", compound, mechanism=word, length=40)
            assert net(*families.together("predictor of labels")).isfinite().all(), word

        line = sentence(answer)
        assert line is None or re.fullmatch(r"[^;]+; (use|leave) [^;]+", line), line


def written():
    golden = json.loads(GOLDEN.read_text(encoding="utf-8")) | {"compounds": table()}
    GOLDEN.write_text(json.dumps(golden, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    written()
