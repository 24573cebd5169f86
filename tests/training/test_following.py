"""What moves by what it saw and not by a gradient: routing's centres, after each step, whoever took it."""

import copy
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import normalize

from heedful.attention import Everything, Padding
from heedful.attention.mechanisms import Routing
from heedful.looking import look
from heedful.training.loop import Loop
from heedful.training.microbatches import Portion
from tests.training.runs import assert_same, contents, first_samples, killed_at, loop_of, short, train

ROUTED = {"model__mechanism": "routing(clusters=2, kept=0.9)"}


def alone(x: torch.Tensor) -> torch.Tensor:
    return x


def test_a_centre_moves_to_the_queries_and_keys_that_are_nearest_to_it():
    """Roy et al. (2021), section 4.1: mu <- kept mu + (1 - kept) / 2 of the queries and of the keys nearest to it."""
    torch.manual_seed(0)
    m = Routing(1, 4, clusters=3, kept=0.75).double()
    q, k = torch.randn(2, 2, 1, 6, 4, dtype=torch.float64)
    there, first = [6, 4], m.centres[0].clone()
    m(q, k, k, Padding(torch.tensor(there)).over(torch.empty(2, 6)))
    assert torch.equal(m.centres[0], first), "a forward moves nothing"
    m.follow(alone)
    own = [[], [], []]
    for x in (q, k):
        for b, length in enumerate(there):
            for way in normalize(x[b, 0, :length], dim=-1):
                own[int((first @ way).argmax())].append(way)
    for at, ways in enumerate(own):
        wanted = 0.75 * first[at] + 0.25 * normalize(sum(ways), dim=-1) if ways else first[at]
        torch.testing.assert_close(m.centres[0, at], normalize(wanted, dim=-1), rtol=0, atol=1e-6)
    moved = m.centres.clone()
    m.follow(alone)
    assert torch.equal(m.centres, moved), "what was heard is heard once"


def test_centres_find_heaps():
    torch.manual_seed(1)
    m, heaps = Routing(1, 8, clusters=4, kept=0.5), normalize(torch.randn(4, 8), dim=-1)
    m.centres[0] = normalize(heaps + 0.3 * torch.randn(4, 8), dim=-1)
    before = (m.centres[0] * heaps).sum(-1)
    for _ in range(20):
        x = (heaps[torch.arange(32) % 4] + 0.1 * torch.randn(32, 8))[None, None]
        m(x, x, x, Everything().over(torch.empty(1, 32)))
        m.follow(alone)
    after = (m.centres[0] * heaps).sum(-1)
    assert (after > before).all() and after.min() > 0.98


def test_neither_looking_nor_answering_is_heard(tmp_path: Path):
    loop = loop_of(tmp_path, short("classify", **ROUTED))
    batch = loop.portions.of(first_samples(loop, 4)).batches[0]
    for training, heard in ((False, 0.0), (True, 1.0)):
        loop.model.train(training)
        with look(loop.model) as seen:
            loop.judged(batch)
        once = centres(loop.model)[0].heard.clone()
        for path in seen.paths:
            seen.weights(path)
        assert torch.equal(centres(loop.model)[0].heard, once)
        assert bool(once.any()) is bool(heard)


def centres(model: nn.Module) -> list[Routing]:
    return [part for part in model.modules() if isinstance(part, Routing)]


def test_a_step_moves_centres_by_samples_that_count(tmp_path: Path):
    one = loop_of(tmp_path, short("classify", **ROUTED))
    other = copy.deepcopy(one.model)
    portion = one.portions.of(first_samples(one, 4))
    first = [part.centres.clone() for part in centres(one.model)]
    one.step(portion)
    two = Loop(one.run, one.task, one.splits, other, tmp_path)
    more = two.portions.of(first_samples(two, 9)).batches[0]
    two.step(Portion([*portion.batches, more], portion.samples, [*portion.there, 0.0]))
    for begun, mine, theirs in zip(first, centres(one.model), centres(other), strict=True):
        assert not torch.equal(begun, mine.centres)
        assert torch.equal(mine.centres, theirs.centres)


def test_a_run_with_moving_centres_goes_on_to_the_same_bits(tmp_path: Path):
    spec = short("classify", **ROUTED, training__average=0.9, training__accumulate=2)
    train(spec, tmp_path / "whole")
    with killed_at(Loop, "step", 16):
        train(spec, tmp_path / "cut")
    train(spec, tmp_path / "cut", resume=True)
    assert_same(contents(tmp_path / "whole"), contents(tmp_path / "cut"))
