"""Text to ids and back, on the Rust `tokenizers`: one class for every kind, kept as one `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import tokenizers

from heedful.errors import Refusal
from heedful.safe import outfile
from heedful.tokenizers import length_bounds, rust_engines
from heedful.tokenizers.batches import ahead, batches
from heedful.tokenizers.pieces import goals_of, is_named_byte, readable, words_of
from heedful.tokenizers.rust_engines import refusing, unfit
from heedful.tokenizers.tokenizer_json import SPECIAL, Layout

if TYPE_CHECKING:
    from heedful.tokenizers.encoding import Joined
    from heedful.tokenizers.explain import Explanation

__all__ = ["SPECIAL", "Tokenizer"]


class Tokenizer:
    """Text to ids and back, kept as one `tokenizer.json`."""

    theirs = "PreTrainedTokenizerFast"  # which class of transformers reads what is written

    def __init__(self, engine: tokenizers.Tokenizer, text: str | None = None) -> None:
        self.layout = Layout(engine, text)
        self.engine, self._ready = self.layout.engine(), self.layout.ready()
        before = (self.layout.parts["normalizer"], self.layout.parts["pre_tokenizer"])
        self._bound = length_bounds.bound_of(*before).spelt(self.engine.model)
        self.kind = self.layout.kind
        self.special = self.layout.special
        self._silent = frozenset(self.special.values())
        self._added = self.engine.num_special_tokens_to_add(False)

    @classmethod
    def of_characters(cls, texts: Iterable[str]) -> Tokenizer:
        """A token for every character that occurs, in the order of the alphabet."""
        return cls(rust_engines.characters(sorted({character for text in texts for character in text})))

    @classmethod
    def read(cls, path: str | Path) -> Tokenizer:
        """The tokenizer of a `tokenizer.json`, whoever made it, or of a SentencePiece `.model`."""
        from heedful.tokenizers import read_tokenizer

        return read_tokenizer.read_file(Path(path), cls)

    def with_special(self, names: Sequence[str]) -> Tokenizer:
        """The same, with more tokens that are no text, behind all others."""
        engine = tokenizers.Tokenizer.from_str(self.layout.text)
        engine.add_special_tokens([tokenizers.AddedToken(name, special=True, normalized=False) for name in names])
        return Tokenizer(engine)

    def continues(self, other: Tokenizer) -> bool:
        """Whether it knows all tokens of another by the same ids; it may have more behind them."""
        return other.layout.known.items() <= self.layout.known.items()

    def write(self, path: str | Path) -> None:
        """Writes it as a `tokenizer.json`, whole or not at all."""
        outfile.write(path, self.layout.text)

    def __len__(self) -> int:
        return self._size

    @property
    def room(self) -> int:
        """How many characters of a text it takes at once, whatever they are."""
        return self._bound.room

    @cached_property
    def _size(self) -> int:
        return max(self.layout.known.values(), default=-1) + 1

    def encode(self, text: str, longest: int | None = None) -> list[int]:
        """The ids of a text, the first `longest` of them; what is not known becomes the unknown token."""
        return self.encode_all([text], longest)[0]

    def encode_all(self, texts: Sequence[str], longest: int | None = None) -> list[list[int]]:
        """The ids of many texts."""
        if longest is None:
            return self._encoded(texts)
        if not self._added:
            return [ids[:longest] for ids in self._encoded(texts)]
        with self._cut(longest, self._added):
            return self._encoded(texts)

    def join(self, texts: Sequence[tuple[str, ...]], longest: int | None = None) -> list[Joined]:
        """One text each or a pair, with the tokens that belong around them; the longer is cut first."""
        from heedful.tokenizers.encoding import as_input, join

        if self.ours:
            return self._framed(texts, longest)
        added = self.engine.num_special_tokens_to_add(any(len(one) > 1 for one in texts))
        if not added and any(len(one) > 1 for one in texts):
            raise Refusal("this tokenizer puts nothing between two texts; give them to it one by one")
        ready = [tuple(self._readied(list(one))) for one in texts]
        with self._cut(longest, added), refusing([part for one in texts for part in one]):
            return [join(*both) for both in zip(ready, self.engine.encode_batch(as_input(ready)), strict=True)]

    @property
    def ours(self) -> bool:
        """Whether it begins with the four tokens of ours, which only a program sets."""
        return tuple(self.layout.control) == SPECIAL

    def _framed(self, texts: Sequence[tuple[str, ...]], longest: int | None) -> list[Joined]:
        from heedful.tokenizers.encoding import frame_texts

        if longest is not None and longest < 3:
            raise Refusal(f"longest={longest} leaves no room for a text between two tokens and behind one; raise it")
        parts = [part for one in texts for part in one]
        with refusing(parts):
            made = iter(self.engine.encode_batch(self._readied(parts)))
        return [frame_texts(one, [next(made) for _ in one], longest) for one in texts]

    @contextmanager
    def _cut(self, longest: int | None, added: int) -> Iterator[None]:
        """Within it the engine cuts texts, and keeps what is added to them."""
        if longest is not None and longest < added:
            raise Refusal(f"longest={longest} is less than the {added} tokens that this tokenizer adds to a text")
        if longest is not None:
            self.engine.enable_truncation(longest)
        try:
            yield
        finally:
            self.engine.no_truncation()

    def _encoded(self, texts: Sequence[str]) -> list[list[int]]:
        made: list[list[int]] = []
        with refusing(texts):
            for batch in ahead(self._batch, list(batches(texts, self._bound.times))):
                made += [one.ids for one in batch]
        return made

    def _batch(self, texts: list[str]) -> list[tokenizers.Encoding]:
        return self.engine.encode_batch_fast(self._readied(texts))

    def _readied(self, texts: list[str]) -> list[str]:
        self._bound.check(texts)
        return self._ready(texts) if self._ready else texts

    def by_words(self, texts: Sequence[str]) -> Iterator[list[tuple[int, ...]]]:
        """The ids of each text, word by word, as the engine cuts it into words."""
        from heedful.tokenizers.encoding import group_by_word

        for batch in batches(texts, self._bound.times):
            for one in self.engine.encode_batch(self._readied(batch)):
                yield list(group_by_word(one.ids, one.word_ids))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens left out."""
        return self._decoded([self._heard(ids)])[0]

    def decode_all(self, many: Sequence[Sequence[int]]) -> list[str]:
        """The texts of many rows of ids, special tokens left out."""
        return self._decoded([self._heard(ids) for ids in many])

    def _decoded(self, many: list[list[int]]) -> list[str]:
        try:
            return self.engine.decode_batch(many)
        except BaseException as error:  # it panics at a pattern for which it would search without end
            raise unfit([], error) if rust_engines.is_panic(error) else error from None

    def _heard(self, ids: Sequence[int]) -> list[int]:
        return [at for at in self._checked(ids) if at not in self._silent]

    def _checked(self, ids: Sequence[int]) -> Sequence[int]:
        if len(ids) and not 0 <= min(ids) <= max(ids) < len(self):
            wrong = next(at for at in ids if not 0 <= at < len(self))
            raise Refusal(f"{wrong} is no id of this tokenizer, which has {len(self)}: 0 to {len(self) - 1}")
        return ids

    def stream(self, ids: Iterable[int]) -> Iterator[str]:
        """The text of ids as they come, in whole characters; what is given joins to what `decode` gives."""
        said: list[int] = []
        new: list[int] = []
        for at in ids:
            new += self._heard([at])
            if new and not is_named_byte(self.engine.id_to_token(new[-1])):  # bytes go on until another token comes
                text = self._beyond(said, new)
                if text and not text.endswith("�"):
                    said, new = new, []
                    yield text
        rest = self._beyond(said, new)
        if rest:
            yield rest

    def _beyond(self, said: list[int], new: list[int]) -> str:
        both, before = self._decoded([said + new, said])
        return both[len(before) :]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The tokens of ids, each as text; bytes that are no whole character by their names, such as <0xE2>."""
        return [self._table[at] for at in self._checked(list(ids))]

    @cached_property
    def _table(self) -> list[str]:
        read, names = readable(self.layout), {at: name for name, at in self.layout.known.items()}
        text = {at: name if at in self._silent else read(name) for at, name in names.items()}
        return [text.get(at, SPECIAL[3]) for at in range(len(self))]

    def words(self, ids: Sequence[int]) -> tuple[list[str], list[int]]:
        """The words of what ids decode to, split at white space, and for each id the place of its word.

        A blank belongs to the word behind it; a special token belongs to none: -1.
        """
        kept = [at not in self._silent for at in self._checked(ids)]
        heard = self._heard(ids)
        grown = [""]
        grown += self._decoded([heard[:end] for end in range(1, len(heard) + 1)])
        reached = [0]
        for keep in kept:
            reached.append(reached[-1] + keep)
        return words_of([grown[at] for at in reached[1:]], kept)

    def cut(self, text: str) -> list[tuple[str, int]]:
        """The parts of a text, as they are once it is made ready, each with its id."""
        ready = self._readied([text])[0]
        one = self.engine.encode(ready)
        return [(ready[start:end], at) for (start, end), at in zip(one.offsets, one.ids, strict=True)]

    def placed(self, text: str) -> list[int]:
        """For each id of a text the place of its word, split at white space; what is not known has a place too."""
        ready = self._readied([text])[0]
        begun = goals_of(ready)
        places = []
        for start, end in self.engine.encode(ready).offsets:
            blank = next((at for at in range(start, end) if not ready[at].isspace()), end)
            places.append(min(begun[blank], len(ready.split()) - 1))
        return places

    def explain(self, text: str) -> Explanation:
        """How a text becomes tokens: pieces, ids and, for BPE, merge by merge how they arose."""
        from heedful.tokenizers.explain import explain_encoding

        ready = self._readied([text])[0]
        try:
            return explain_encoding(self, self.engine.encode(ready))
        except (TypeError, UnicodeEncodeError) as error:
            raise unfit([text], error) from None
