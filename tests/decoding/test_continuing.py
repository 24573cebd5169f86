"""A decoder alone goes on with its prompts, each as it would alone, whatever their lengths and however it searches."""

from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import heedful
from heedful.decoding import Rules
from heedful.errors import Refusal
from heedful.models import build
from heedful.models.text.gpt import GPT
from heedful.tokenizers import Tokenizer
from tests.decoding.toys import beam, greedy, sample

VOCAB, LETTERS = 16, "abcdefghijkl"  # with the four special tokens
KINDS: dict[str, dict[str, Any]] = {
    "learned": {},
    "sine": {"position": "sine"},
    "rotary": {"position": "rotary"},
    "alibi": {"position": "none", "bias": "alibi"},
    "window": {"mechanism": "window(size=3)", "groups": 1},
    "additive": {"mechanism": "additive"},
}
WAYS: list[dict[str, Any]] = [
    {},
    {"temperature": 1.2, "seed": 3},
    {"temperature": 1.5, "top_k": 9, "top_p": 0.9, "min_p": 0.02, "seed": 1, "repetition_penalty": 1.3},
    {"beams": 3, "length_penalty": 0.6},
    {"no_repeat_ngram": 2, "bans": [[5], [6, 7]], "bias": {8: 2.0}},
    {"no_repeat_ngram": 1, "repetition_penalty": 1.2},
    {"stop_at_end": False, "max_new_tokens": 11},
]
PROMPTS = st.lists(st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=9), min_size=1, max_size=5)


def speaker(seed: int = 0, **words: Any) -> GPT:
    """A small decoder that is sure of itself and ends early or late."""
    torch.manual_seed(seed)
    numbers = {"width": 16, "heads": 2, "depth": 2, "hidden": 32, "length": 60, "tied": False, "vocab": VOCAB}
    model = cast(GPT, build("gpt", **numbers | words)).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0 if weight.dim() > 1 else 1.0)
    return model


def in_batch(rows: list[list[int]]) -> torch.Tensor:
    """Prompts filled up with no tokens."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[-1] * (longest - len(row))] for row in rows])


@settings(max_examples=21, deadline=None, derandomize=True)
@given(PROMPTS, st.sampled_from(list(KINDS.values())), st.sampled_from(WAYS))
def test_prompts_of_unequal_length_are_answered_as_one_by_one(
    prompts: list[list[int]], kind: dict[str, Any], way: dict[str, Any]
) -> None:
    model, way = speaker(2, **kind), {"max_new_tokens": 11} | way
    assert heedful.generate(model, prompts, **way) == [heedful.generate(model, one, **way) for one in prompts]


@pytest.mark.parametrize("kind", KINDS)
def test_with_memory_is_without(kind: str) -> None:
    model, source = speaker(2, **KINDS[kind]), in_batch([[3, 4, 5, 6], [7], [9, 8]])
    for search in (greedy, beam, sample):
        fast, slow = (search(model, source, max_new_tokens=17, remember=one) for one in (True, False))
        assert [strip(one) for one in fast] == [strip(one) for one in slow]


def strip(found: Any) -> Any:
    return [strip(one) for one in found] if isinstance(found, list) else (found.tokens, round(found.score, 8))


def test_the_toys_have_something_to_say() -> None:
    prompts = [[3, 4], [7, 9, 8], [5], [12, 6]]
    said = [heedful.generate(speaker(2, **kind), prompts, 20) for kind in KINDS.values()]
    assert len({len(one) for several in said for one in several}) > 4
    assert len({tuple(one) for several in said for one in several}) > 8


def test_what_it_writes_is_what_one_pass_over_the_whole_says() -> None:
    model, prompt = speaker(2), [3, 4, 5]
    written = heedful.generate(model, prompt, 20, stop_at_end=False)
    with torch.no_grad():
        scores = model(torch.tensor([[*prompt, *written]]))[0]
    assert scores[len(prompt) - 1 : -1].argmax(-1).tolist() == written


@pytest.mark.parametrize("way", [way for way in WAYS if "beams" not in way], ids=str)
def test_a_stream_is_the_whole(way: dict[str, Any]) -> None:
    model, way = speaker(2), {"max_new_tokens": 20} | way
    assert list(heedful.generate(model, [3, 4], stream=True, **way)) == heedful.generate(model, [3, 4], **way)


def with_letters(model: nn.Module) -> nn.Module:
    vars(model)["tokenizer"] = Tokenizer.of_characters(LETTERS)
    return model


def test_stop_strings_end_a_text_also_where_they_span_tokens() -> None:
    model = with_letters(speaker(2))
    prompts = ["abc", "l", "ka"]
    whole = heedful.generate(model, prompts, 20, temperature=2.0, stop_at_end=False)
    stop = [whole[0][5:8], whole[2][2:4]]  # each of several tokens
    cut = heedful.generate(model, prompts, 20, temperature=2.0, stop_at_end=False, stop=stop)
    assert cut == [min((text.split(one)[0] for one in stop), key=len) for text in whole]
    assert cut != whole
    for prompt, text in zip(prompts, cut, strict=True):
        words = {"temperature": 2.0, "stop_at_end": False, "stop": stop}
        assert "".join(heedful.generate(model, prompt, 20, stream=True, **words)) == text


def test_several_tokens_may_end_an_answer() -> None:
    model = speaker(2, end=[2, 5, 9])
    answers = [one for prompt in range(1, VOCAB) for one in greedy(model, torch.tensor([[prompt]]), 20)]
    assert {2, 5, 9}.isdisjoint(token for answer in answers for token in answer.tokens)
    assert sum(answer.finished for answer in answers) > 5
    for [answer] in beam(model, torch.arange(1, VOCAB)[:, None], 3, 1, 20):
        assert {2, 5, 9}.isdisjoint(answer.tokens)
    more = greedy(speaker(2), torch.tensor([[3]]), 20, rules=Rules(also=(5, 9)))
    assert more == greedy(model, torch.tensor([[3]]), 20)


def test_a_model_without_an_end_goes_on_to_the_limit() -> None:
    assert len(heedful.generate(speaker(2, end=None), [3], 30)) == 30


def test_an_empty_prompt_begins_with_begin() -> None:
    model = with_letters(speaker(2))
    assert heedful.generate(model, [], 9) == heedful.generate(model, [1], 9)
    assert heedful.generate(model, ["", "a"], 9)[0] == heedful.generate(model, "", 9)
    with pytest.raises(Refusal, match="no token to begin with"):
        heedful.generate(speaker(2, begin=None), [], 9)


@pytest.mark.parametrize(
    ("prompt", "how", "said"),
    [
        ([3] * 55, {"max_new_tokens": 6}, "max_new_tokens=6 is beyond .* give at most 5"),
        ([3] * 60, {}, "the prompt takes all 60 positions"),
        ([3, 16], {}, "prompt: 16 is no token of the model, which reads ids from 0 to 15$"),
        ([[3], [4]], {"stream": True}, "2 prompts cannot be streamed at once; give one"),
        ([3], {"stop": "a"}, "stop strings end a text and the prompt is ids"),
        ("a", {"stop": "a", "beams": 2}, "not at a stop string; give beams=1"),
        ("a", {"stop": ""}, "a stop string of no characters"),
        ([3], {"bans": [[]]}, "a ban of no tokens"),
        ([3], {"bans": [[99]]}, "99 is no token that the model writes"),
        ([3], {"bias": {99: 1.0}}, "99 is no token that the model writes"),
        ("a", {"bias": {"ab": 1.0}}, "a bias is for one token and 'ab' is 2"),
        ([3], {"bias": {3: float("inf")}}, "is not finite; ban what should never be written"),
        ([3], {"repetition_penalty": 0.0}, "repetition_penalty=0.0 does not fit"),
        ([3], {"no_repeat_ngram": -1}, "no_repeat_ngram=-1 does not fit"),
        ([3], {"weights": "float16"}, "packs a model of float32 on a CPU"),
        ([3], {"weights": "int8"}, "weights=int8 does not fit"),
        ([3], {"topk": 3}, "topk"),
    ],
)
def test_what_cannot_be_generated_is_refused_at_the_call(prompt: Any, how: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal, match=said):
        heedful.generate(with_letters(speaker()), prompt, **{"max_new_tokens": 1} | how)


def test_bans_and_biases_of_texts_are_those_of_their_tokens() -> None:
    model = with_letters(speaker(2))
    words = {"max_new_tokens": 30, "temperature": 3.0, "stop_at_end": False}
    free = heedful.generate(model, "abc", **words)
    assert "d" in free and "ka" in free + heedful.generate(model, "abc", seed=1, **words) + "ka"
    said = heedful.generate(model, "abc", bans=["d", free[:2]], **words)
    assert "d" not in said and free[:2] not in said
    assert heedful.generate(model, "abc", bias={"e": 99.0}, **words) == "e" * 30


def test_a_text_ends_where_its_mechanism_knows_no_more_positions():
    model = speaker(position="sine", mechanism="synthesizer_random", length=12)
    assert len(heedful.generate(model, [[5, 6, 7]], 9, stop_at_end=False)[0]) == 9
    with pytest.raises(Refusal, match="beyond the positions that the model has learned; give at most 9"):
        heedful.generate(model, [[5, 6, 7]], 10)
