"""Encoding text: heedful's tokenizers against the engine alone, and the memory that training one takes."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

import tokenizers

from heedful.bench.measure import Case, interleave
from heedful.terminal import say
from heedful.tokenizers import Tokenizer, train

BASE, INSIDE, OURS = "tokenizers alone", "tokenizers, ids not taken out", "heedful"
PEERS = ("tokenizers",)
KINDS = ("bpe", "wordpiece", "unigram")
SIZE, WORDS, KNOWN = 8000, 300_000, 20_000
MEGABYTES, LIMIT = 500, 2_000_000_000


def cases(rounds: int, said: Callable[[], object]) -> Iterator[tuple[Case, str]]:
    """Ids of short lines and of long documents by each kind; time may be a tenth more than the engine's own."""
    words = list(zipf_words(WORDS))
    texts = {"short lines": join_words(words, 12), "long documents": join_words(words, 30_000)}
    for kind in KINDS:
        ours = train(texts["short lines"], kind, SIZE)
        alone = reopen(ours)
        for name, some in texts.items():
            assert ours.encode_all(some) == [one.ids for one in alone.encode_batch_fast(some)]
            contenders = {BASE: by_engine(alone, some), INSIDE: inside(alone, some), OURS: by_heedful(ours, some)}
            size = sum(len(text.encode()) for text in some) / 1e6
            yield Case(f"tokenizer, {kind}, {name}", "MB", size, interleave(contenders, rounds, said=said)), BASE


def by_engine(alone: tokenizers.Tokenizer, texts: list[str]) -> Callable[[], object]:
    """The engine's own fast path, to lists of ids."""
    return lambda: [one.ids for one in alone.encode_batch_fast(texts)]


def inside(alone: tokenizers.Tokenizer, texts: list[str]) -> Callable[[], object]:
    """The same, less the lists: its ids are still the engine's own, and nobody can use them yet."""
    return lambda: alone.encode_batch_fast(texts)


def by_heedful(ours: Tokenizer, texts: list[str]) -> Callable[[], object]:
    """The same by heedful, as lists of ids."""
    return lambda: ours.encode_all(texts)


def reopen(ours: Tokenizer) -> tokenizers.Tokenizer:
    """The engine as anybody else gets it from the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        ours.write(path)
        return tokenizers.Tokenizer.from_file(str(path))


def zipf_words(count: int, seed: int = 0) -> Iterator[str]:
    """Words as a language has them: few of them often, most of them seldom (Zipf, 1935), one in 15 never seen."""
    dice = random.Random(seed)
    parts = [a + b for a in ("", *"bcdfghklmnprstvwz", "st", "tr", "sch") for b in ("a", "e", "i", "o", "u", "ä", "ie")]
    known = ["".join(dice.choices(parts, k=1 + at % 4)) + dice.choice(("", "n", "s", "t")) for at in range(KNOWN)]
    often = list(accumulate(1 / (at + 1) for at in range(KNOWN)))
    while count > 0:
        for word in dice.choices(known, cum_weights=often, k=min(count, 10_000)):
            yield word + "".join(dice.choices(parts, k=4)) if dice.random() < 1 / 15 else word
        count -= 10_000


def join_words(words: list[str], length: int) -> list[str]:
    """Texts of so many words each."""
    return [f"{' '.join(words[at : at + length])} ." for at in range(0, len(words), length)]


def memory(kind: str, megabytes: int = MEGABYTES) -> int:
    """The most bytes that the process `heedful tokenizer train` takes for a file of so many megabytes."""
    import resource
    import subprocess

    with tempfile.TemporaryDirectory() as folder:
        path, seed = Path(folder) / "text", 0
        with path.open("w", encoding="utf-8") as file:
            while file.tell() < megabytes * 1_000_000:
                file.write("\n".join(join_words(list(zipf_words(WORDS, seed)), 12)) + "\n")
                seed += 1
        command = [sys.executable, "-m", "heedful", "tokenizer", "train", str(path), "--kind", kind]
        subprocess.run(
            [*command, "--out", str(path.with_name("tokenizer.json"))], check=True, stdout=subprocess.DEVNULL
        )
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # the largest of all children's so far


if __name__ == "__main__":
    for one in sys.argv[1:] or ("bpe", "unigram"):
        most = memory(one)
        say(f"{one}: {most / 1e9:.2f} GB to train on {MEGABYTES} MB; {'fits' if most < LIMIT else 'TOO MUCH'}")
