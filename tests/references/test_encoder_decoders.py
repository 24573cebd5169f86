"""The same numbers as transformers: T5, BART, mBART, Marian and Pegasus, over odd configs."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from heedful.attention import Memory
from tests.references.copying import same
from tests.references.encoder_decoders import KINDS, LENGTH, Asked, both, drawn, few

CLOSE = {"rtol": 0.0, "atol": 1e-5}


def layers(model):
    """What each block gives, as it is called, by name."""
    seen, stops = {}, []
    for side in ("encoder", "decoder"):
        for n, block in enumerate(getattr(model, side).blocks):

            def keep(part, given, x, name=f"{side} {n}"):
                seen[name] = x

            stops.append(block.register_forward_hook(keep))
    return seen, stops


@pytest.mark.parametrize("kind", KINDS)
@few(3)
@given(data=some.data())
def test_states_scores_and_gradients_are_those_of_transformers(kind, data):
    config, spec = data.draw(drawn(kind))
    ours, theirs, pairs = both(kind, config, spec)
    left, longest = data.draw(some.booleans()), data.draw(some.sampled_from([1, 5, LENGTH]))
    asked = Asked.drawn(len(pairs), longest, spec["pad"], left)
    out = theirs(**asked.theirs(), output_hidden_states=True)
    seen, _ = layers(ours)
    read, written = asked.places
    context = ours.encode(asked.source, read)
    scores = ours.decode(asked.target, context, positions=written)
    for side, there, states in (
        ("encoder", asked.read, out.encoder_hidden_states),
        ("decoder", asked.written, out.decoder_hidden_states),
    ):
        depth = len(states) - 1
        for n in range(depth if config.model_type in ("bart", "marian") else depth - 1):  # the last is normed there
            torch.testing.assert_close(seen[f"{side} {n}"][there], states[n + 1][there], **CLOSE)
    torch.testing.assert_close(context.states[asked.read], out.encoder_last_hidden_state[asked.read], **CLOSE)
    learned = [pair for pair in pairs if pair[1][0].requires_grad]
    same(learned, scores[asked.written], out.logits[asked.written], [], **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
@few(2)
@given(data=some.data())
def test_without_positions_padding_at_the_end_is_told_by_its_id_and_steps_are_one_pass(kind, data):
    config, spec = data.draw(drawn(kind))
    ours, theirs, _ = both(kind, config, spec)
    asked = Asked.drawn(1, LENGTH, spec["pad"], left=False)
    with torch.no_grad():
        out = theirs(**asked.theirs()).logits
        torch.testing.assert_close(ours(asked.source, asked.target)[asked.written], out[asked.written], **CLOSE)
        context, memory = ours.encode(asked.source).kept(), Memory()
        parts = asked.target.split([3, 1, asked.target.shape[1] - 4], 1)
        steps = torch.cat([ours.decode(part, context, memory) for part in parts], 1)
    torch.testing.assert_close(steps[asked.written], out[asked.written], **CLOSE)
