"""How each kind of tokenizer learns its pieces from counted words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from heedful.errors import Refusal
from heedful.tokenizers.pieces import LETTERS
from heedful.tokenizers.rust_engines import BYTE_LETTERS, BYTE_NAMES, CONTINUED, UNKNOWN, number_tokens
from heedful.tokenizers.tokenizer_json import SPECIAL
from heedful.tokenizers.trainer_config import Plan
from heedful.tokenizers.training.counts import Counts

AT_ONCE = 1 << 16  # characters that a trainer gets in one string
SELDOM = 2  # a pair that occurs less often is not merged

Said = Callable[[str], object]


def alphabet_of(plan: Plan, characters: Mapping[str, int]) -> list[str]:
    """The characters that are learnt, in order: all, or the most frequent."""
    return sorted(sorted(characters, key=lambda letter: (-characters[letter], letter))[: plan.alphabet])


def words(plan: Plan, counts: Counts, said: Said) -> models.Model:
    """Whole words, the most frequent of them."""
    return models.WordLevel(number_tokens(plan.special, list(counts.words)[: plan.room(1) + 1]), UNKNOWN)


def bpe(plan: Plan, counts: Counts, said: Said) -> models.Model:
    """Pairs of bytes merged, the most frequent first (Sennrich et al., 2016; on bytes, Radford et al., 2019)."""
    plan.room(len(BYTE_LETTERS))
    seen = {"".join(LETTERS[byte] for byte in word.encode()): count for word, count in counts.words.items()}
    return models.BPE(*learn_merges(plan, seen, BYTE_LETTERS), unk_token=UNKNOWN)


def bpe_characters(plan: Plan, counts: Counts, said: Said) -> models.Model:
    """Pairs of characters merged; one that was not learnt is written as its bytes (Kudo and Richardson, 2018)."""
    letters = alphabet_of(plan, counts.characters)
    plan.room(len(BYTE_NAMES) + len(letters))
    seen = counts.spelt_in(letters)
    return models.BPE(*learn_merges(plan, seen, [*BYTE_NAMES, *letters]), unk_token=UNKNOWN, byte_fallback=True)


def wordpiece(plan: Plan, counts: Counts, said: Said) -> models.Model:
    """Pieces that begin words and pieces that go on, the longest that fits first (Schuster and Nakajima, 2012)."""
    letters = alphabet_of(plan, counts.characters)
    both = [*letters, *(CONTINUED + letter for letter in letters)]  # so that any word of them can be spelt
    plan.room(len(both))
    trainer = trainers.WordPieceTrainer(
        vocab_size=plan.size,
        special_tokens=[*SPECIAL, *plan.special, *both],  # else their order would be by chance
        continuing_subword_prefix=CONTINUED,
        min_frequency=SELDOM,
        show_progress=False,
    )
    known = train_engine(models.WordPiece(unk_token=UNKNOWN), trainer, counts.spelt_in(letters)).get_vocab()
    return models.WordPiece(known, unk_token=UNKNOWN, continuing_subword_prefix=CONTINUED)


def unigram(plan: Plan, counts: Counts, said: Said) -> models.Model:
    """Pieces by whose probabilities the text is most likely (Kudo, 2018)."""
    from heedful.tokenizers.training.unigram import RESERVED, learn_pieces, rows, share_of

    letters = alphabet_of(plan, counts.characters)
    seen = counts.spelt_in(letter for letter in letters if letter not in RESERVED)
    share = share_of(seen)
    if share < 1:
        said(f"the pieces are learnt from a sample of {100 * share:.2g} % of the words, to keep the memory bounded")
    given = rows(seen, share)
    own = sorted(set(letters).difference(*set(given)))  # what the trainer does not get to see
    plan.room(len(letters) + 1)
    pieces = learn_pieces(given, plan.room(len(own))) if given else []
    lowest = min((score for _, score in pieces), default=0.0)
    found = dict.fromkeys([*SPECIAL, *plan.special], 0.0) | dict(pieces) | dict.fromkeys(own, lowest)
    return models.Unigram(list(found.items()), SPECIAL.index(UNKNOWN), False)


LEARNERS: Mapping[str, Callable[[Plan, Counts, Said], models.Model]] = {
    "words": words,
    "bpe": bpe,
    "bpe_characters": bpe_characters,
    "wordpiece": wordpiece,
    "unigram": unigram,
}


def learn_merges(
    plan: Plan, seen: Mapping[str, int], letters: Sequence[str]
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The vocabulary and the merges that the engine's trainer finds; letters come first, in the order given."""
    trainer = trainers.BpeTrainer(
        vocab_size=plan.size,
        special_tokens=[*SPECIAL, *plan.special, *letters],  # else their order would be by chance
        min_frequency=SELDOM,
        show_progress=False,
    )
    model = json.loads(train_engine(models.BPE(), trainer, seen).to_str())["model"]
    merges = [(left, right) for left, right in model["merges"]]
    clash = {left + right for left, right in merges}.intersection(plan.special)
    if clash:
        raise Refusal(f"special token {min(clash)!r}: pieces are written like that; choose another name")
    return model["vocab"], merges


def train_engine(model: models.Model, trainer: trainers.Trainer, seen: Mapping[str, int]) -> tokenizers.Tokenizer:
    """An engine trained on words, each given as often as it occurs."""
    used = {letter for word in seen for letter in word}
    apart = next(chr(code) for code in range(0x110000) if chr(code) not in used)
    engine = tokenizers.Tokenizer(model)
    engine.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(apart)
    engine.train_from_iterator(repeat_words(seen, apart), trainer)
    return engine


def repeat_words(seen: Mapping[str, int], apart: str) -> Iterator[str]:
    """Words as often as they occur, in strings of a bounded length."""
    made: list[str] = []
    room = AT_ONCE
    for word, count in seen.items():
        left = count
        while left:
            several = min(left, AT_ONCE // (len(word) + 1))
            made.append((word + apart) * several)
            room, left = room - len(made[-1]), left - several
            if room < 0:
                yield "".join(made)
                made, room = [], AT_ONCE
    yield "".join(made)
