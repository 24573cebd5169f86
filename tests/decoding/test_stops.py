"""Stop strings: a text ends before the first of them, whole or in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.decoding.stops import Stops
from heedful.errors import Refusal

TEXT = st.text("ab\n", max_size=12)
STRINGS = st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3)


def stops(strings: list[str]) -> Stops:
    return Stops(strings, lambda tokens: "".join(map(chr, tokens)))


@given(TEXT, STRINGS)
def test_a_text_ends_before_the_first_stop(text: str, strings: list[str]) -> None:
    said = stops(strings).before(text)
    assert text.startswith(said)
    assert not any(string in said for string in strings)
    assert said == text or any(text[len(said) :].startswith(string) for string in strings)
    assert stops(strings)([ord(sign) for sign in text]) == (said != text)


@given(st.lists(st.text("ab\n", min_size=1, max_size=3), max_size=8), STRINGS)
def test_pieces_join_to_the_same_and_none_is_taken_back(pieces: list[str], strings: list[str]) -> None:
    one = stops(strings)
    given = list(one.pieces(iter(pieces)))
    assert all(given)
    # Among stops that overlap, the one that is whole first ends the text.
    grown = ["".join(pieces[:at]) for at in range(len(pieces) + 1)]
    ended = next((text for text in grown if one.before(text) != text), grown[-1])
    assert "".join(given) == one.before(ended)


def test_what_cannot_begin_a_stop_is_given_at_once() -> None:
    heard: list[str] = []

    def pieces():
        for piece in ("Hello", " wor", "ld<", "Us", "er:>", "more"):
            yield piece
            heard.append(piece)

    given = stops(["<User:>"]).pieces(pieces())
    assert next(given) == "Hello" and heard == []
    assert next(given) == " wor"
    assert next(given) == "ld"
    assert list(given) == []
    assert "more" not in heard  # nothing is asked for beyond a stop


def test_a_stop_of_nothing_is_refused() -> None:
    with pytest.raises(Refusal, match="no characters"):
        stops([""])
