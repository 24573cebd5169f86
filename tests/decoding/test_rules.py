"""Rules of writing where transformers has none to compare with: padding, and answers that rules leave alone."""

import torch

from heedful.decoding import Rules
from heedful.decoding.logits_rules import FREE, occurring
from tests.decoding.toys import greedy, sources, writer


def test_what_is_no_token_is_nothing_to_repeat() -> None:
    before = torch.tensor([[-1, -1, 5], [-1, 5, 5]])
    for size in (1, 2):
        chances = torch.zeros(2, 8)
        Rules(no_repeat_ngram=size).forbid(chances, before)
        assert chances[:, [0, 1, 2, 3, 4, 6, 7]].eq(0).all()
    assert occurring(before, 8).nonzero().tolist() == [[0, 5], [1, 5]]
    scores = torch.ones(2, 8)
    assert Rules(repetition_penalty=2.0).weigh(scores, before)[:, [0, 7]].eq(1).all()


def test_rules_that_say_nothing_change_nothing() -> None:
    model, source = writer(4), sources()
    assert greedy(model, source, 9, rules=Rules()) == greedy(model, source, 9)
    scores = torch.randn(2, 8)
    assert FREE.weigh(scores, torch.tensor([[1], [2]])) is scores


def test_an_encoder_decoder_obeys_them_too() -> None:
    model, source = writer(4), sources()
    free = [answer.tokens for answer in greedy(model, source, 20)]
    rules = Rules(no_repeat_ngram=1, bans=[[free[0][0]]])
    for answer in greedy(model, source, 20, rules=rules):
        assert len(set(answer.tokens)) == len(answer.tokens) and free[0][0] not in answer.tokens
