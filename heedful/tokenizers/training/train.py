"""Tokenizers trained on texts or files: words are counted first, so that memory is bounded and order plays no part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from heedful.errors import Refusal
from heedful.terminal import progress
from heedful.tokenizers import rust_engines
from heedful.tokenizers.text_files import lines_of
from heedful.tokenizers.tokenizer import Tokenizer
from heedful.tokenizers.trainer_config import Plan
from heedful.tokenizers.training.counts import Letters, Words
from heedful.tokenizers.training.learn import LEARNERS, alphabet_of


def train(
    texts: Iterable[str],
    kind: str = "bpe",
    size: int = 8000,
    special: Sequence[str] = (),
    digits: str = "apart",
    punctuation: str = "apart",
    alphabet: int | None = None,
    lower: bool = False,
    said: Callable[[str], object] = lambda line: None,
) -> Tokenizer:
    """A tokenizer of `size` tokens at most, trained on texts.

    Digits and punctuation are `joined` with the letters beside them, stand `apart` in runs of their own, or each is
    `single`. Only the `alphabet` most frequent characters are learnt, where that is given. With `lower` all letters are
    small ones, in what is learnt and in what is read later. `said` is told what was left out.
    """
    plan = Plan(kind, size, tuple(special), digits, punctuation, alphabet, lower)
    counted = counter(plan)
    with progress("counting words") as heard:
        for text in texts:
            counted.add(text, heard)
    return learn(plan, counted, said)


def train_files(
    paths: Iterable[str | Path],
    kind: str = "bpe",
    size: int = 8000,
    special: Sequence[str] = (),
    digits: str = "apart",
    punctuation: str = "apart",
    alphabet: int | None = None,
    lower: bool = False,
    said: Callable[[str], object] = lambda line: None,
    heard: Callable[[int], object] = lambda read: None,
) -> Tokenizer:
    """The same of files, plain or gzipped, each line a text; `heard` is told how many bytes were read each time."""
    plan = Plan(kind, size, tuple(special), digits, punctuation, alphabet, lower)
    counted = counter(plan)
    for path in paths:
        for block in lines_of(Path(path), heard):
            counted.add_lines(block)
    return learn(plan, counted, said)


def counter(plan: Plan) -> Letters | Words:
    """What counts in texts that which is learnt from."""
    return (Letters if plan.kind == "characters" else Words)(plan.special, lower=plan.lower)


def learn(plan: Plan, counted: Letters | Words, said: Callable[[str], object]) -> Tokenizer:
    """The tokenizer, of what was counted; tells how long that takes."""
    with progress(f"a tokenizer learns its {plan.size:,} tokens"):
        return learn_tokenizer(plan, counted, said)


def learn_tokenizer(plan: Plan, counted: Letters | Words, said: Callable[[str], object]) -> Tokenizer:
    """The tokenizer, of what was counted."""
    if isinstance(counted, Letters):
        known = alphabet_of(plan, counted.characters)
        plan.room(len(known))
        engine = rust_engines.characters(known, plan.special, plan.lower)
    else:
        split = rust_engines.splitter(plan.kind, plan.digits, plan.punctuation)
        counts = counted.split(lambda text: [part for part, _ in split.pre_tokenize_str(text)])
        if not counts.words:
            raise Refusal("there is no text to learn from; give at least one line")
        if counts.let_go:
            said(f"{counts.let_go:,} rare words were let go, to keep the memory bounded")
        engine = rust_engines.of_words(
            plan.kind, LEARNERS[plan.kind](plan, counts, said), split, plan.special, plan.lower
        )
    made = Tokenizer(engine)
    if len(made) < plan.size and plan.kind != "characters":
        said(f"{len(made):,} tokens and not {plan.size:,}: there is no more to learn from this text")
    return made
