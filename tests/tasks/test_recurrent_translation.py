"""Recurrent translators: the searches, the laws and the looking of every translator, and their own options."""

import itertools

import pytest
import torch

import heedful
from heedful.decoding import Decoding, begin, search
from heedful.decoding.beam import beam
from heedful.decoding.greedy import greedy
from heedful.errors import Refusal
from heedful.looking import look
from heedful.models.specs import SPECIAL
from heedful.models.text.recurrent_encoder import turn_back
from heedful.objectives.scheduled_sampling import ScheduledSampling, mix_targets
from heedful.objectives.seq2seq import TeacherForcing
from heedful.pipelines.translation_pipeline import align_words
from heedful.tasks.checks import checks
from heedful.testing import check

VOCAB, NEW = 12, 7
ENCODERS = {
    "both ways": {},
    "last": {"context": "last"},
    "reversed": {"context": "last", "both_ways": False, "reverse": True},
}
DECODERS = {
    "general": {"mechanism": "general"},
    "dot": {"mechanism": "dot"},
    "bahdanau": {"mechanism": "additive", "order": "before"},
    "two heads": {"mechanism": "softmax", "heads": 2},
    "none": {"mechanism": "none"},
}
KINDS = list(itertools.product(ENCODERS, DECODERS))


def translator(encoder, decoder, cell="lstm", **more):
    torch.manual_seed(5)
    sizes = {"vocab": VOCAB, "width": 8, "depth": 2, "cell": cell, **more}
    made = heedful.build(
        "composite",
        encoder={"family": "recurrent_encoder", **sizes, **ENCODERS[encoder]},
        decoder={"family": "recurrent_decoder", **sizes, **DECODERS[decoder]},
    )
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(2.5 if weight.dim() > 1 else 1.0)  # so that it is sure of itself
    return made.eval()


def batch():
    torch.manual_seed(2)
    source = torch.randint(4, VOCAB, (4, 6))
    return {"source": source.masked_fill(torch.arange(6) >= torch.tensor([6, 2, 4, 1])[:, None], SPECIAL.pad)}


def flat(found):
    return [one for some in found for one in (some if isinstance(some, list) else [some])]


def same(ours, theirs):
    ours, theirs = flat(ours), flat(theirs)
    assert [one.tokens for one in ours] == [one.tokens for one in theirs]
    assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-10, rel=0)


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
def test_the_laws_hold_and_searches_are_the_same_with_a_state_and_without(encoder, decoder):
    model = translator(encoder, decoder, "gru" if decoder == "dot" else "lstm")
    assert [law.name for law in checks(model) if not law.holds] == []
    model = model.double()
    context = begin(model, batch())
    for find in (greedy, beam):
        found = find(model, context, max_new_tokens=NEW)
        same(found, find(model, context, max_new_tokens=NEW, remember=False))
        assert len({round(one.score, 6) for one in flat(found)}) >= 4  # it does see


@pytest.mark.parametrize("decoder", DECODERS)
def test_prompts_of_unequal_length_are_continued_as_each_alone(decoder):
    model = translator("both ways", decoder).double()
    begun = [[SPECIAL.begin, *more] for more in ((5, 7), (-1, -1), (9, -1), (6, 6))]
    prompt, asked, whole = torch.tensor(begun), Decoding(max_new_tokens=NEW, beams=2), batch()
    together = search(model, {**whole, "prompt": prompt}, asked)
    for at, found in enumerate(together):
        alone = {"source": whole["source"][at : at + 1], "prompt": prompt[at : at + 1, : int((prompt[at] >= 0).sum())]}
        same(found, search(model, alone, asked)[0])


def test_each_row_is_turned_within_its_length():
    x = torch.arange(8.0).view(2, 4, 1)
    assert turn_back(x, torch.tensor([4, 2]))[..., 0].tolist() == [[3, 2, 1, 0], [5, 4, 6, 7]]


def test_the_last_state_of_an_alike_encoder_is_the_first_of_the_decoder_as_it_is():
    model = translator("reversed", "none")
    assert isinstance(model.bridge, torch.nn.Identity)
    context = model.context(batch())
    assert context.states.shape == (4, 1, 2 * 2 * 8)  # both parts of an LSTM, of two layers
    assert isinstance(translator("last", "general").bridge, torch.nn.Linear)


@pytest.mark.parametrize("decoder", ["general", "bahdanau"])
def test_whoever_looks_sees_all_steps_as_one_map(decoder):
    model, source = translator("both ways", decoder), batch()["source"]
    with look(model) as seen:
        model(source, torch.randint(4, VOCAB, (4, 5)))
    assert seen.paths == ("decoder.cross",) and seen.calls("decoder.cross") == 1
    weights = seen.weights("decoder.cross")
    assert weights.shape == (4, 1, 5, 6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(4, 1, 5))
    assert not weights[source[:, None, None].expand_as(weights) == SPECIAL.pad].any()


def test_a_model_that_never_looks_back_links_no_words():
    with pytest.raises(Refusal, match="never looks back at its source, so that it links no words"):
        list(align_words(translator("last", "none"), [], None))


@pytest.mark.parametrize(
    ("decoder", "said"),
    [
        ({"mechanism": "window(size=2)"}, "is of a sequence that looks at itself; use additive, dot, general"),
        ({"mechanism": "none", "order": "before"}, "never looks has no heads and no order of looking; leave them out"),
        ({"mechanism": "adaptive"}, "adaptive"),
        ({"cell": "elman"}, "cell"),
        ({"heads": 3}, "heads"),
    ],
)
def test_what_fits_no_recurrent_decoder_is_refused(decoder, said):
    with pytest.raises(Refusal, match=said):
        heedful.build("recurrent_decoder", vocab=VOCAB, width=8, **decoder)


def test_an_encoder_that_reads_both_ways_is_not_reversed_too():
    with pytest.raises(Refusal, match="leave reverse or both_ways out"):
        heedful.build("recurrent_encoder", vocab=VOCAB, reverse=True)
    with pytest.raises(Refusal, match="cannot be halved for two ways"):
        heedful.build("recurrent_encoder", vocab=VOCAB, width=7)


# ---------------------------------------------------------------------- scheduled sampling


def learning(share):
    torch.manual_seed(1)
    target = torch.cat((torch.full((4, 1), SPECIAL.begin), torch.randint(4, VOCAB, (4, 9))), 1)
    target[1, 5:] = SPECIAL.pad
    return target, batch() | {"target": target}


def test_a_share_of_what_is_read_is_the_models_own_and_padding_stays():
    model = translator("both ways", "general").train()
    target, given = learning(0.5)
    mixed = torch.stack([mix_targets(model, given, 0.5, SPECIAL.pad) for _ in range(40)])
    assert (mixed[:, :, 0] == SPECIAL.begin).all() and (mixed[:, 1, 5:] == SPECIAL.pad).all()
    assert 0.25 < (mixed != target).float()[:, :, 1:].mean() < 0.55  # some of its own words are the right ones
    assert not torch.isin(mixed[:, :, 1:][mixed[:, :, 1:] != target[:, 1:]], torch.tensor(SPECIAL.never)).any()


def test_dice_that_are_seeded_draw_the_same_and_no_share_is_teacher_forcing():
    class Known:
        special = SPECIAL

    model = translator("both ways", "general").train()
    target, given = learning(0.5)
    given |= {"answer": target.roll(-1, 1)}

    def loss(objective, seed):
        torch.manual_seed(seed)
        return objective.losses(model, given, Known())["loss"].sum

    plain = loss(TeacherForcing(), 1)
    assert torch.equal(loss(ScheduledSampling(sampling=0.0), 1), plain)
    assert torch.equal(loss(ScheduledSampling(sampling=0.5), 1), loss(ScheduledSampling(sampling=0.5), 1))
    assert not torch.equal(loss(ScheduledSampling(sampling=0.5), 1), loss(ScheduledSampling(sampling=0.5), 2))
    model.eval()
    assert torch.equal(loss(ScheduledSampling(sampling=0.5), 1), loss(TeacherForcing(), 1))  # scores are of right words


def test_scheduled_sampling_obeys_the_laws_of_objectives():
    check(ScheduledSampling, on="translation")
