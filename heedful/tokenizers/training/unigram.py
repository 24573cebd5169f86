"""Unigram pieces, by SentencePiece's trainer (Kudo, 2018)."""

from __future__ import annotations

import io
import random
from collections.abc import Mapping

import sentencepiece

from heedful.errors import Refusal
from heedful.tokenizers.sentencepiece.proto import Type, parse, short
from heedful.tokenizers.tokenizer_json import SPECIAL

RESERVED = frozenset("\0\t\n\r▁▅")  # what the trainer keeps for itself or takes for the end of a word
THREADS = 4  # always as many, since they decide the order of sums
ROOM = 30_000_000  # characters that the trainer gets: it takes some 30 bytes for each


def learn_pieces(rows: list[str], size: int) -> list[tuple[str, float]]:
    """Pieces with their scores, `size` of them at most, every character of the rows among them."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(rows),
            model_writer=model,
            model_type="unigram",
            vocab_size=size + len(SPECIAL),
            hard_vocab_limit=False,
            character_coverage=1.0,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            allow_whitespace_only_pieces=True,
            split_by_unicode_script=False,  # the words are cut already
            split_by_number=False,
            pad_id=0,
            bos_id=1,
            eos_id=2,
            unk_id=3,
            pad_piece=SPECIAL[0],
            bos_piece=SPECIAL[1],
            eos_piece=SPECIAL[2],
            unk_piece=SPECIAL[3],
            num_threads=THREADS,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise Refusal(f"no unigram pieces can be learnt from this: {error}; give more text, or another size") from None
    pieces = parse(model.getvalue()).pieces[len(SPECIAL) :]
    return [(piece.text.replace("▁", " "), short(piece.score)) for piece in pieces if piece.type == Type.NORMAL]


def share_of(words: Mapping[str, int], room: int = ROOM) -> float:
    """For how much of the words there is room."""
    return min(1.0, room / max(1, sum(count * (len(word) + 1) for word, count in words.items())))


def rows(words: Mapping[str, int], share: float) -> list[str]:
    """Words as often as they occur, or a sample in which each has its share of that.

    To the trainer they are what the sentences are that they stand in. They are shuffled, since what is repeated side
    by side looks to it like one endless piece.
    """
    dice = random.Random(0)
    made: list[str] = []
    for word, count in words.items():
        whole, part = divmod(count * share, 1)
        made += [word] * (int(whole) + (dice.random() < part))
    dice.shuffle(made)
    return made
