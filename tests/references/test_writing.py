"""What is written, and the chances of what comes next, beside transformers' own `generate` and logits processors."""

from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import heedful
from heedful.decoding import Rules
from heedful.decoding.truncation import apply_temperature, likeliest, not_far_behind, nucleus
from heedful.models import build
from heedful.models.text.gpt import GPT
from tests.decoding.test_continuing import in_batch
from tests.decoding.toys import beam

VOCAB, END = 23, 2
PROMPTS = [[5, 6, 7, 8, 9], [11], [3, 4, 3]]


def ours(seed: int = 0) -> GPT:
    torch.manual_seed(seed)
    model = build("gpt", width=16, heads=2, depth=2, hidden=64, length=60, vocab=VOCAB, norm="layer(eps=1e-5)")
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4.0 if weight.dim() > 1 else 1.0)
    return cast(GPT, model.double().eval())


def theirs(model: GPT) -> nn.Module:
    """The same weights in transformers' GPT-2, whose matrices lie the other way round."""
    from transformers import GPT2Config, GPT2LMHeadModel

    s = model.spec
    numbers = {"n_embd": s.width, "n_head": s.heads, "n_layer": s.depth, "n_positions": s.length, "n_inner": s.hidden}
    other = GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, bos_token_id=1, eos_token_id=END, pad_token_id=0, **numbers))
    own = dict(model.named_parameters())
    names = {"transformer.wte.weight": "inputs.table.weight", "transformer.wpe.weight": "inputs.position.table"}
    names |= {f"transformer.ln_f.{kind}": f"decoder.norm.{kind}" for kind in ("weight", "bias")}
    parts = {"ln_1": "norm1", "attn.c_attn": "attention.project.to_qkv", "attn.c_proj": "attention.join"}
    parts |= {"ln_2": "norm2", "mlp.c_fc": "feedforward.up", "mlp.c_proj": "feedforward.down"}
    for layer in range(s.depth):
        for there, here in parts.items():
            for kind in ("weight", "bias"):
                names[f"transformer.h.{layer}.{there}.{kind}"] = f"decoder.blocks.{layer}.{here}.{kind}"
    state = {there: own[here].detach() for there, here in names.items()}
    turned = {name: tensor.T if "c_" in name and tensor.dim() == 2 else tensor for name, tensor in state.items()}
    missing = other.load_state_dict(turned, strict=False).missing_keys
    assert missing == ["lm_head.weight"]
    return other.double().eval()


def asked(other: Any, **how: Any) -> list[list[int]]:
    """What transformers writes to each prompt, alone: in a batch it would count padding as written before."""
    rows = []
    for prompt in PROMPTS:
        source = torch.tensor([prompt])
        found = other.generate(source, attention_mask=source * 0 + 1, max_new_tokens=20, do_sample=False, **how)
        rows += found[:, len(prompt) :].tolist()
    return rows


def ended(row: list[int]) -> list[int]:
    """What stands before END."""
    return row[: row.index(END)] if END in row else row


WAYS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"repetition_penalty": 1.7}, {"repetition_penalty": 1.7}),
    ({"no_repeat_ngram": 2}, {"no_repeat_ngram_size": 2}),
    ({"no_repeat_ngram": 1}, {"no_repeat_ngram_size": 1}),
    ({"bans": [[5], [6, 7], [9, 10, 11]]}, {"bad_words_ids": [[5], [6, 7], [9, 10, 11]]}),
    ({"bias": {5: 3.0, 7: -2.0}}, {"sequence_bias": [[[5], 3.0], [[7], -2.0]]}),
    ({"beams": 4}, {"num_beams": 4, "length_penalty": 0.0}),
]


@pytest.mark.parametrize(("way", "their_way"), WAYS, ids=[" ".join(way) or "greedy" for way, _ in WAYS])
def test_what_is_written_is_what_transformers_writes(way: dict[str, Any], their_way: dict[str, Any]) -> None:
    texts = set()
    for seed in (0, 1, 2):
        model = ours(seed)
        other = theirs(model)
        if "beams" in way:  # where none ends, as what is cut is ranked otherwise
            model.spec = model.spec.model_copy(update={"end": None})
            cast(Any, other).generation_config.eos_token_id = None
        found, expected = heedful.generate(model, PROMPTS, 20, **way), asked(other, **their_way)
        assert found == (expected if "beams" in way else [ended(row) for row in expected])
        texts |= {tuple(one) for one in found}
    assert len(texts) > 4


def test_a_padded_batch_is_answered_as_transformers_answers_it() -> None:
    model = ours(1)
    source = torch.tensor([[0] * (5 - len(row)) + row for row in PROMPTS])
    found = cast(Any, theirs(model)).generate(source, attention_mask=(source > 0).long(), max_new_tokens=20)
    assert heedful.generate(model, PROMPTS, 20) == [ended(row) for row in found[:, 5:].tolist()]


def test_beams_that_end_are_those_of_transformers() -> None:
    compared = 0
    for seed in range(3, 6):
        model = ours(seed)
        every = asked(theirs(model), num_beams=5, num_return_sequences=3, length_penalty=0.0)
        for at, several in enumerate(beam(model, in_batch(PROMPTS), 5, 3, 20)):
            rows = [ended(row) for row in every[3 * at : 3 * at + 3] if END in row]  # before what was cut, here
            assert [list(one.tokens) for one in several if one.finished][: len(rows)] == rows
            compared += len(rows)
    assert compared > 5


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 999), st.sampled_from([1, 2, 7, VOCAB]), st.floats(0.05, 0.99), st.floats(0.01, 0.9))
def test_what_is_cut_is_what_transformers_cuts(seed: int, k: int, p: float, least: float) -> None:
    from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    scores = 3 * torch.randn(4, VOCAB, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    ids = torch.zeros(4, 1, dtype=torch.long)
    for own, other in (
        (likeliest(scores, k), TopKLogitsWarper(k)(ids, scores)),
        (nucleus(scores, p), TopPLogitsWarper(p)(ids, scores)),
        (not_far_behind(scores, least), MinPLogitsWarper(least)(ids, scores)),
        (apply_temperature(scores, p), TemperatureLogitsWarper(p)(ids, scores)),
    ):
        torch.testing.assert_close(own.softmax(-1), cast(Tensor, other).softmax(-1))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.integers(0, 999),
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3), max_size=3),
    st.floats(0.5, 3.0),
    st.integers(0, 4),
)
def test_rules_are_the_processors_of_transformers(seed: int, bans: list[list[int]], penalty: float, n: int) -> None:
    from transformers import (
        NoBadWordsLogitsProcessor,
        NoRepeatNGramLogitsProcessor,
        RepetitionPenaltyLogitsProcessor,
        SequenceBiasLogitsProcessor,
    )

    dice = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(4, 6, dtype=torch.float64, generator=dice)
    before = torch.randint(0, 6, (4, 9), generator=dice)
    rules = Rules(penalty, n, bans, {1: 2.0, 4: -1.0})
    expected = SequenceBiasLogitsProcessor([[[1], 2.0], [[4], -1.0]])(before, scores.clone())
    expected = RepetitionPenaltyLogitsProcessor(penalty)(before, expected)
    if n:
        expected = NoRepeatNGramLogitsProcessor(n)(before, expected)
    if bans:
        expected = NoBadWordsLogitsProcessor(bans)(before, expected)
    found = rules.weigh(scores, before)
    rules.forbid(found, before)
    torch.testing.assert_close(found, cast(Tensor, expected))
