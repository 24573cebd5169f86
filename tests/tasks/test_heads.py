"""Losses on where heads look: disagreement and guided heads, by hand, with any task."""

from functools import partial

import pytest
import torch
from torch.nn.functional import cross_entropy

from heedful import build
from heedful.attention import AdaptiveSpan, Causal, Everything, Padding
from heedful.attention.mechanisms import SAC
from heedful.errors import Refusal
from heedful.objectives.head_losses.disagreement import overlap
from heedful.objectives.head_losses.guided import astray
from heedful.objectives.head_losses.span_loss import farness
from heedful.objectives.head_terms import HeadTerms
from heedful.objectives.objective import Loss, combine, primary
from heedful.training import run
from tests.training.runs import CPU, loop_of, short


def over(mask, batch=1, length=3):
    return mask.over(torch.empty(batch, length))


def test_heads_overlap_where_they_look_at_the_same():
    """Li et al. (2018), equation 7: the sum over positions of the product of two heads' weights."""
    one, two = torch.eye(3), torch.full((3, 3), 1 / 3)
    assert float(overlap(torch.stack((one, one))[None], over(Everything()))) == pytest.approx(1.0)
    assert float(overlap(torch.stack((one, two))[None], over(Everything()))) == pytest.approx(1 / 3)
    assert float(overlap(torch.stack((one, one.roll(1, 1)))[None], over(Everything()))) == 0.0
    three = torch.stack((one, one, two))[None]  # pairs of 1, 1/3 and 1/3
    assert float(overlap(three, over(Everything()))) == pytest.approx(5 / 9)


def test_padding_has_no_say():
    weights, lengths = torch.rand(2, 2, 3, 3), torch.tensor([3, 2])
    other = weights.clone()
    other[1, :, 2] = 9.0
    for loss in (overlap, astray):
        sight = over(Padding(lengths), 2)
        torch.testing.assert_close(loss(weights, sight), loss(other, sight))
        assert not torch.allclose(loss(weights, over(Everything(), 2)), loss(other, over(Everything(), 2)))


def test_guided_heads_look_at_the_one_before_the_next_and_the_first():
    """Deshpande and Narasimhan (2020): heads of the first half, by turns; what cannot be seen is not asked for."""
    after, before, first = torch.eye(3).roll(1, 1), torch.eye(3).roll(-1, 1), torch.eye(3)[[0, 0, 0]]
    heads = torch.stack((before, after, first, *torch.rand(3, 3, 3)))[None]
    assert float(astray(heads, over(Everything()))) == 0.0
    turned = torch.stack((after, before, first, *torch.rand(3, 3, 3)))[None]
    assert float(astray(turned, over(Everything()))) == pytest.approx((2 * 2 / 3 + 2 * 2 / 3 + 0) / 3)
    hidden = torch.stack((before, before, after, after))[None]  # of two that are guided, one wants what is hidden
    assert float(astray(hidden, over(Causal()))) == 0.0


def of(losses):
    """The weighted sum of losses, and the count that divides it."""
    return combine(losses), primary(losses).count


def judged(loop, batch, terms):
    return of(terms.losses(lambda: loop.task.losses(loop.model, batch), loop.model))


@pytest.mark.parametrize("term", ["disagreement", "guided"])
@pytest.mark.parametrize("recipe", ["reverse", "sets", "series"])
def test_any_task_learns_with_it_and_padding_counts_as_before(tmp_path, recipe, term):
    loop = loop_of(tmp_path, short(recipe, training__dtype="float64", **{f"objective__{term}": 0.5}))
    batch = loop.portions.at(0).batches[0]
    plain, count = judged(loop, batch, HeadTerms())
    more, same = judged(loop, batch, HeadTerms(**{term: 0.5}))
    twice, _ = judged(loop, batch, HeadTerms(**{term: 1.0}))
    assert int(count) == int(same)
    torch.testing.assert_close(twice - plain, 2 * (more - plain))
    assert float((more - plain).detach()) > 0
    given = torch.autograd.grad(more - plain, [*loop.model.parameters()], allow_unused=True)
    assert any(g is not None and g.any() for g in given)


def test_edges_become_likelier_where_they_do_better_than_the_likeliest(tmp_path):
    """The gradient of the policy is that of the mean log-chance of its edges, times what they gained or lost."""
    spec = short("sets", training__dtype="float64", objective__policy=0.5, model__mechanism="sac(edges=2)")
    loop = loop_of(tmp_path, spec)
    batch, (chooser, *_) = loop.portions.at(0).batches[0], [m for m in loop.model.modules() if isinstance(m, SAC)]
    settled = judged(loop, batch, HeadTerms())[0]
    torch.manual_seed(3)
    total, count = judged(loop, batch, HeadTerms(policy=0.5))
    assert not chooser.draw.any()  # and then it chooses as before
    torch.testing.assert_close(judged(loop, batch, HeadTerms())[0], settled)
    (given,) = torch.autograd.grad(total, [chooser.policy])
    torch.manual_seed(3)
    (twice,) = torch.autograd.grad(judged(loop, batch, HeadTerms(policy=1.0))[0], [chooser.policy])
    assert given.any() and int(count) == len(batch["answer"])
    torch.testing.assert_close(twice, 2 * given)


def test_what_a_span_costs_makes_it_shorter_whatever_the_task(tmp_path):
    """Sukhbaatar et al. (2019): the loss has so much more for every position of the mean span of all heads."""
    far = {"model__bias": "span(farthest=40, ramp=4)", "training__dtype": "float64"}
    loop = loop_of(tmp_path, short("sort", objective__span=0.25, **far))
    batch, spans = loop.portions.at(0).batches[0], [m for m in loop.model.modules() if isinstance(m, AdaptiveSpan)]
    plain, count = judged(loop, batch, HeadTerms())
    more, same = judged(loop, batch, HeadTerms(span=0.25))
    assert int(count) == int(same)
    torch.testing.assert_close(more - plain, count * 0.25 * torch.cat([one.spans for one in spans]).mean())
    given = torch.autograd.grad(more - plain, [one.share for one in spans])
    assert all((one > 0).all() for one in given), "each head is drawn to a shorter span"
    run.train(short("sort", objective__span=10, **far), tmp_path / "run", False, CPU)
    model, _ = run.load_trained(tmp_path / "run")
    assert float(farness(model).detach()) < 20, "it began at 20"


def test_a_span_that_is_not_learned_costs_nothing_and_is_refused(tmp_path):
    with pytest.raises(Refusal, match=r"^objective\.span is for heads .*; set model\.bias=span or leave it out$"):
        run.train(short("sort", objective__span=1), tmp_path / "run", False, CPU)


def test_a_model_is_told_in_python_which_task_of_camtl_a_sequence_is_of():
    net = build("predictor", vocab=9, classes=2, width=8, heads=2, length=8, bias="camtl(tasks=2)").double().eval()
    torch.nn.init.normal_(net.bias.shift)
    bias, x = net.bias, torch.randint(4, 9, (2, 8))
    alone = []
    for task in range(2):
        net.bias = bias.of(torch.tensor([task, task]))
        alone.append(net(x)[task])
    net.bias = bias.of(torch.tensor([0, 1]))
    torch.testing.assert_close(net(x), torch.stack(alone))
    net.bias = bias
    assert torch.equal(net(x)[0], alone[0]) and not torch.allclose(net(x)[1], alone[1]), "else all are of the first"


def test_a_compiled_model_and_one_without_heads_are_refused(tmp_path):
    with pytest.raises(Refusal, match=r"^objective\.guided looks into the model, .*; leave training\.compile out$"):
        run.prepare(short("sets", objective__guided=1, training__compile="true"), CPU)
    with pytest.raises(Refusal, match=r"^objective\.disagreement is for heads, and this model has none; leave it out$"):
        run.train(short("lenet", objective__disagreement=1), tmp_path / "run", False, CPU)


class Marked:
    """Every place is asked which token is marked; one edge a row must find it."""

    def losses(self, model, batch):
        total = cross_entropy(model(batch["x"]).flatten(0, 1), batch["y"].flatten(), reduction="sum")
        return {"loss": Loss(total, torch.tensor(512))}

    def batch(self, coins):
        tokens, at = torch.randint(0, 4, (64, 8), generator=coins), torch.randint(0, 8, (64, 1), generator=coins)
        return {
            "x": 4 + tokens + 4 * torch.zeros_like(tokens).scatter(1, at, 1),
            "y": tokens.gather(1, at).repeat(1, 8),
        }


@pytest.mark.parametrize(("policy", "learns"), [(1.0, True), (0.0, False)])
def test_the_policy_of_sac_learns_whom_to_see_by_policy_gradient_alone(policy, learns):
    torch.manual_seed(1)
    sizes = {"width": 32, "heads": 1, "depth": 1, "hidden": 64, "length": 8, "pool": "each", "position": "none"}
    net = build("predictor", vocab=12, classes=4, mechanism="sac(edges=1)", **sizes)
    optimiser, coins, task = torch.optim.AdamW(net.parameters(), 3e-3), torch.Generator().manual_seed(0), Marked()
    for _ in range(400):
        optimiser.zero_grad()
        batch = task.batch(coins)
        total, count = of(HeadTerms(policy=policy).losses(partial(task.losses, net, batch), net))
        (total / count).backward()
        optimiser.step()
    several = HeadTerms(policy=1.0, disagreement=0.1, span=0.0)
    assert tuple(several.losses(partial(task.losses, net, batch), net)) == ("loss", *several.names)
    unseen = task.batch(coins)
    right = float((net.eval()(unseen["x"]).argmax(-1) == unseen["y"]).float().mean())
    assert right > 0.95 if learns else right < 0.8
