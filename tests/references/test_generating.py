"""The same tokens as transformers' `generate`: greedy and with beams, with each family's own special tokens."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from tests.decoding.toys import beam, greedy
from tests.references.encoder_decoders import KINDS, VOCAB, Asked, both, drawn, few

LIMIT = 9


def by_transformers(theirs, asked, special, beams):
    """What transformers writes, by source, with what it ends at. What is cut off it weighs as if it had ended."""
    rows = theirs.generate(
        input_ids=asked.source,
        attention_mask=asked.read.long(),
        max_new_tokens=LIMIT,
        num_beams=beams,
        do_sample=False,
        early_stopping=False,
        length_penalty=0.0,
        forced_bos_token_id=special.first,
        forced_eos_token_id=None,
        suppress_tokens=list(special.never) or None,
        use_cache=False,  # it has too few places where the decoder is deeper (5.22)
    ).tolist()
    return [tuple(row[1 : row.index(special.end, 1) + 1 if special.end in row[1:] else None]) for row in rows]


@pytest.mark.parametrize("kind", KINDS)
@few(2)
@given(data=some.data())
def test_greedy_and_beam_search_write_what_transformers_writes(kind, data):
    config, spec = data.draw(drawn(kind))
    if spec["family"] == "bart":
        spec["first"] = data.draw(some.sampled_from([None, VOCAB - 2]))
    ours, theirs, _ = both(kind, config, spec)
    with torch.no_grad():  # sure of themselves, so that no two ways are nearly as likely
        for weight in {id(w): w for model in (ours, theirs) for w in model.parameters()}.values():
            weight.mul_(1.5 if weight.dim() > 1 and weight.requires_grad else 1.0)
    theirs.generation_config.eos_token_id = spec["end"]
    asked = Asked.drawn(3, 7, spec["pad"], left=False)
    for beams in (1, 4):
        found = [one for [one] in beam(ours, asked.source, beams, 1, LIMIT)]
        for one, other in zip(found, by_transformers(theirs, asked, ours.special, beams), strict=True):
            if beams == 1 or other[-1] == ours.special.end:
                assert (*one.tokens, *[ours.special.end] * one.finished) == other
        assert beams > 1 or found == greedy(ours, asked.source, LIMIT)
    ours.special = replace(ours.special, never=(*ours.special.never, ours.special.end))  # both up to the limit
    found = [answers[0].tokens for answers in beam(ours, asked.source, 4, 1, LIMIT)]
    assert found == by_transformers(theirs, asked, ours.special, 4)
