"""A batch is its sequences: padded == unpadded, many == one by one; without positions a sequence is a set."""

import pytest
import torch

from heedful import models
from heedful.attention import Context, CrossAttention, Everything, Padding, Rotary
from heedful.attention.projections import Across, Join
from heedful.blocks import Block, CrossBlock, FeedForward, PostNormBlock, PostNormCrossBlock, Stack
from heedful.models import part_tables
from heedful.models.multimodal.composite import Composite
from heedful.models.text.recurrent_decoder import RecurrentDecoder
from heedful.models.text.recurrent_encoder import RecurrentEncoder
from heedful.models.text.recurrent_predictor import RecurrentPredictor
from heedful.models.text.transformer_sides import TransformerDecoderSpec, TransformerEncoder
from heedful.models.text.word_vectors import WordVectorsSpec
from heedful.models.vision.image_spec import ImageSpec
from heedful.testing import mechanism_laws as laws
from tests.laws import cases, families
from tests.laws.cases import (
    BATCH,
    EXACT,
    HEADS,
    KEY,
    LENGTH,
    MECHANISMS,
    VALUE,
    WIDTH,
    agree,
    gradients,
    mechanism,
    parameters,
    probe,
    queries_keys_values,
    stack,
    states,
    stir,
)


@pytest.mark.parametrize("word", MECHANISMS)
def test_many_are_as_one_by_one(word):
    m = mechanism(word)
    for case in cases.cases(
        word, mask=cases.masks(), bias=cases.FEW, groups=[2], value=[VALUE], sight=["itself", "another"]
    ):
        laws.one_by_one(m, case)


@pytest.mark.parametrize("kind", [Block, PostNormBlock])
@pytest.mark.parametrize("word", MECHANISMS)
def test_padding_changes_nothing_in_a_stack(word, kind):
    blocks = stack(word, position=Rotary(), kind=kind)
    for case in cases.cases(word, mask=["everything", "causal", "window"], bias=cases.FEW, groups=[2], value=[VALUE]):
        if not cases.obeys(word, "mask padding"):
            continue
        laws.padding(blocks, case)


@pytest.mark.parametrize("kind", [CrossBlock, PostNormCrossBlock])
@pytest.mark.parametrize("word", MECHANISMS)
def test_padding_of_a_context_changes_nothing_and_a_context_taken_is_the_same(word, kind):
    if not cases.obeys(word, "mask padding", "groups 2", f"value {VALUE}", "sight another"):
        pytest.skip("refused, as the golden table says")
    torch.manual_seed(0)
    across = Across(WIDTH, HEADS, 2, context=5, key=KEY, value=VALUE, position=Rotary())
    cross = CrossAttention(
        across, part_tables.mechanism(cases.toy(word), HEADS, KEY, cases.LONGEST), Join(HEADS * VALUE, WIDTH)
    )
    block = kind(WIDTH, cases.attention(word), cross, FeedForward(WIDTH, 11))
    blocks, lengths = stir(Stack([block])).double(), torch.tensor([LENGTH, 4, 0])
    x, y = states(), torch.randn(BATCH, LENGTH, 5, dtype=torch.float64, requires_grad=True)
    context = Context(y, Padding(lengths))
    whole = blocks(x, Everything().over(x), context)
    singles = [
        blocks(x[b : b + 1], Everything().over(x[b : b + 1]), Context(y[b : b + 1, :n], Everything()))
        for b, n in enumerate(lengths[:2])
    ]
    agree(whole[:2], torch.cat(singles), [x, y, *parameters(blocks)], word)
    assert not gradients(whole, (y,))[0][2].any()
    assert whole[2].isfinite().all()
    index = torch.tensor([2, 0, 0])
    for kept in (context, context.kept()):
        assert torch.equal(blocks(x, Everything().over(x), kept), whole)
        taken = blocks(x[index], Everything().over(x), kept.take(index))
        torch.testing.assert_close(taken, whole[index], **EXACT)


@pytest.mark.parametrize(("name", "word"), families.PAIRS)
def test_padding_changes_nothing_in_a_model(name, word):
    for position, bias in families.places(word, name):
        number = families.PLACES.index((position, bias))
        order, norm = [*part_tables.BLOCKS][number % 2], ["layer", "rms"][number % 2]
        model = families.model(name, word, position=position, bias=bias, order=order, norm=norm)
        whole = model(*families.together(name))
        padded = [families.real(name, answer, n) for answer, n in zip(whole, families.LENGTHS, strict=True)]
        alone = [model(*inputs)[0] for inputs in families.alone(name)]
        one, two = (torch.cat([x.flatten() for x in answers]) for answers in (padded, alone))
        agree(one, two, parameters(model), f"{position}, {bias}")


def test_every_family_is_padded_here():
    made = tuple(models.FAMILIES[family].model for family, _ in families.FAMILIES.values())
    whole = (ImageSpec, WordVectorsSpec, TransformerDecoderSpec)  # images have one size, words are read one by one, ...
    texts = [family.model for family in models.FAMILIES.values() if not issubclass(family.spec, whole)]
    docked = (Composite, TransformerEncoder)  # which tests/training/test_composite.py asks
    recurrent = (RecurrentEncoder, RecurrentDecoder, RecurrentPredictor)  # which test_recurrent.py asks
    assert all(issubclass(model, (*made, *docked, *recurrent)) for model in texts)


@pytest.mark.parametrize("name", ["predictor of tokens", "predictor of labels", "transformer"])
def test_a_batch_with_an_empty_sequence_has_finite_answers_and_gradients(name):
    model, given = families.model(name), [x.clone() for x in families.together(name)]
    given[0][1] = 0  # all padding
    answer = model(*given)
    assert answer.isfinite().all()
    assert all(g.isfinite().all() for g in gradients(answer, parameters(model)))


def looks(word):
    """Whether the weights of a mechanism depend on its queries and keys at all."""
    case = cases.Case()
    q, k, _ = queries_keys_values(case, case.seen())
    return any(g.any() for g in gradients(mechanism(word).weights(q, k, case.seen()), (q, k)))


@pytest.mark.parametrize("word", MECHANISMS)
def test_without_positions_self_attention_turns_with_its_inputs(word):
    blocks, turn = stack(word), laws.TURN
    for _ in cases.cases(word, groups=[2], value=[VALUE]):
        ordered = part_tables.MECHANISMS[word].card.ordered
        laws.turns(blocks, ordered)
        if ordered or not looks(word):
            continue
        x = states()
        sight = Everything().over(x)
        placed = stack(word, position=Rotary())
        assert not torch.allclose(placed(x[:, turn], sight), placed(x, sight)[:, turn]), "with positions it should not"


@pytest.mark.parametrize("word", MECHANISMS)
def test_without_positions_a_predictor_reads_a_set(word):
    for name in ("predictor of tokens", "predictor of vectors"):
        if not families.obeys(word, name) or part_tables.MECHANISMS[word].card.ordered:
            continue
        model = families.model(name, word, position="none")
        x, *lengths = families.together(name)
        turned = x.clone()
        turned[0], turned[1, :4] = x[0].flip(0), x[1, [2, 0, 3, 1]]  # the members alone; padding stays behind
        agree(model(turned, *lengths), model(x, *lengths), parameters(model), name)
        placed = families.model(name, word, position="sine")
        assert not torch.allclose(placed(turned, *lengths), placed(x, *lengths)), "with positions it should not"


def test_batch_norm_counts_padding_in_while_training_and_not_after():
    model = families.model("predictor of vectors", norm="batch")
    x, lengths = families.together("predictor of vectors")
    other = x.clone()
    other[1, 4:] = 0.0
    assert not torch.allclose(model(x, lengths), model(other, lengths))
    model.eval()
    torch.testing.assert_close(model(x, lengths), model(other, lengths), **EXACT)


def test_the_probe_of_gradients_points_somewhere():
    assert probe(torch.empty(4, dtype=torch.float64)).abs().min() > 0
