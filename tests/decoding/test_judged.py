"""What a model holds of each token of an answer: what one pass over the whole says, and what the search summed."""

from typing import Any

import pytest
import torch

import heedful
from heedful.decoding.scoring import following, generate_judged, judge_answer
from heedful.errors import Refusal
from tests.decoding.test_continuing import LETTERS, speaker, with_letters
from tests.decoding.toys import greedy, sample, sources, writer


def test_chances_sum_to_the_score_of_the_search() -> None:
    for model, source in ((speaker(2), torch.tensor([[3, 4, 5]])), (writer(4), sources((6,)))):
        for [answer] in (greedy(model, source, 12), *sample(model, source, max_new_tokens=12, seed=1)):
            said = [*answer.tokens, *([2] if answer.finished else [])]
            told = judge_answer(model, source[0], torch.tensor(said))
            assert [one.token for one in told] == said
            assert sum(one.chance for one in told) == pytest.approx(answer.score, abs=1e-8)


def test_entropy_is_that_of_the_chances_at_its_place() -> None:
    model, prompt = speaker(2), [3, 4, 5]
    with torch.no_grad():
        chances = model(torch.tensor([[*prompt, 7]]))[0, 2:].log_softmax(-1)
    told = judge_answer(model, prompt, [7, 8])
    expected = -(chances.exp() * chances).sum(-1)
    assert [one.entropy for one in told] == pytest.approx(expected.tolist())
    torch.testing.assert_close(following(model, prompt), chances[0])


def test_a_text_is_judged_by_its_tokens() -> None:
    model = with_letters(speaker(2))
    told = judge_answer(model, "ab", "cd")
    assert [(one.token, one.piece) for one in told] == [(LETTERS.index(one) + 4, one) for one in "cd"]
    by_ids = judge_answer(model, [4, 5], [6, 7])
    assert [one.chance for one in told] == [one.chance for one in by_ids]


def test_what_is_written_is_judged_as_it_is_written() -> None:
    model = with_letters(speaker())
    for how in ({}, {"temperature": 1.0, "seed": 3}):
        told = generate_judged(model, "ab", 5, **how)
        assert [one.token for one in told] == heedful.generate(model, [4, 5], 5, **how)
        assert told == judge_answer(model, [4, 5], [one.token for one in told])


def test_an_answer_that_stops_is_judged_up_to_there() -> None:
    model = with_letters(speaker())
    whole = heedful.generate(model, "ab", 8, temperature=1.0, seed=3)
    told = generate_judged(model, "ab", 8, temperature=1.0, seed=3, stop=whole[3:5])
    text = heedful.generate(model, "ab", 8, temperature=1.0, seed=3, stop=whole[3:5])
    assert "".join(one.piece for one in told) == text and len(text) < len(whole)
    more = generate_judged(model, "ab", 8, temperature=1.0, seed=3)
    assert [one.chance for one in told] == pytest.approx([one.chance for one in more[: len(told)]])


def test_an_answer_that_ends_at_once_has_nothing_to_judge_and_several_prompts_are_refused() -> None:
    model = with_letters(speaker())
    assert generate_judged(model, "ab", 5, bias={model.special.end: 1000.0}) == []
    with pytest.raises(Refusal, match="this is a list of prompts; give one of them"):
        generate_judged(model, ["ab", "cd"], 5)  # type: ignore[arg-type]
    with pytest.raises(Refusal, match="leave stream out"):
        generate_judged(model, "ab", 5, stream=True)


@pytest.mark.parametrize("prompt", [None, [1.5], ["a", [3]], 7, torch.tensor([4.9, 5.0])])
def test_what_is_no_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(Refusal, match="does not fit; give a text, a list of ids"):
        heedful.generate(with_letters(speaker()), prompt)


def test_a_source_without_ids_is_refused() -> None:
    model = heedful.build("transformer", vocab=20, width=16, heads=2, depth=1)
    with pytest.raises(Refusal, match="the prompt has no ids"):
        heedful.generate(model, [], 3)
    assert isinstance(heedful.generate(model, [model.special.end], 3), list)


def test_bans_that_leave_nothing_are_refused() -> None:
    model = speaker()
    with pytest.raises(Refusal, match="bans leave no token to write"):
        heedful.generate(model, [3], bans=[[at] for at in range(model.spec.vocab)])


@pytest.mark.parametrize(("answer", "said"), [([], "no tokens cannot be judged"), ([99], "99 is no token")])
def test_what_cannot_be_judged_is_refused(answer: Any, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        judge_answer(speaker(), [3], answer)
    with pytest.raises(Refusal, match="does not write"):
        judge_answer(heedful.build("predictor", channels=2, classes=3, width=16, heads=2), [4], [5])
