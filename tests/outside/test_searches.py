"""The same searches serve a captioner, a recurrent translator, and a captioner that writes by a recurrent decoder."""

import pytest
import torch

from heedful import models
from heedful.decoding import Decoding, begin, search
from heedful.decoding.beam import beam
from heedful.decoding.greedy import greedy
from heedful.decoding.sample import sample
from heedful.models.specs import SPECIAL

VOCAB, NEW = 12, 8
EYE = {"family": "resnet", "channels": 3, "high": 8, "wide": 12, "width": 4, "depths": [1, 1], "stem": "small"}
READER = {"family": "gru_reader", "vocab": VOCAB, "width": 16}
HAND = {"family": "gru_writer", "vocab": VOCAB, "width": 16}
BLOCKS = {"family": "transformer_decoder", "vocab": VOCAB, "width": 16, "heads": 2, "depth": 1, "tied": False}
KINDS = {
    "captioner": ("captioner", EYE, BLOCKS),
    "captioner with a recurrent decoder": ("captioner", EYE, HAND),
    "recurrent translator": ("composite", READER, HAND),
}


@pytest.fixture(params=KINDS)
def model(request):
    """A model whose weights are enlarged, so that it is sure of itself."""
    torch.manual_seed(5)
    family, encoder, decoder = KINDS[request.param]
    made = models.build(family, encoder=encoder, decoder=decoder).double().eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(2.5 if weight.dim() > 1 else 1.0)
    return made


def batch_of(model):
    """Four inputs, of unequal length where they are texts."""
    torch.manual_seed(2)
    if model.reads == {"image"}:
        return {"image": torch.rand(4, 3, 8, 12, dtype=torch.float64)}
    source = torch.randint(4, VOCAB, (4, 6))
    return {"source": source.masked_fill(torch.arange(6) >= torch.tensor([6, 2, 4, 1])[:, None], SPECIAL.pad)}


def flat(found):
    return [one for some in found for one in (some if isinstance(some, list) else [some])]


def same(ours, theirs):
    ours, theirs = flat(ours), flat(theirs)
    assert [(one.tokens, one.finished) for one in ours] == [(one.tokens, one.finished) for one in theirs]
    assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-10, rel=0)


@pytest.mark.parametrize("find", [greedy, beam, sample], ids=lambda find: find.__name__)
def test_answers_are_the_same_with_memory_and_without(model, find):
    context = begin(model, batch_of(model))
    found = find(model, context, max_new_tokens=NEW)
    same(found, find(model, context, max_new_tokens=NEW, remember=False))
    assert len({round(one.score, 6) for one in flat(found)}) >= 4  # it does see


@pytest.mark.parametrize("how", [{}, {"beams": 3}, {"temperature": 1.3, "top_k": 6}])
def test_answers_are_the_same_beside_others_and_alone_whatever_they_begin_with(model, how):
    begun = [[SPECIAL.begin, *more] for more in ((5, 7), (-1, -1), (9, -1), (6, 6))]
    prompt, batch, asked = torch.tensor(begun), batch_of(model), Decoding(max_new_tokens=NEW, **how)
    together = search(model, {**batch, "prompt": prompt}, asked, seed=1)
    for at, found in enumerate(together):
        alone = {name: rows[at : at + 1] for name, rows in batch.items()}
        alone["prompt"] = prompt[at : at + 1, : int((prompt[at] >= 0).sum())]
        same(found, search(model, alone, asked, seed=1, numbers=[at])[0])
