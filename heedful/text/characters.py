"""Text as characters, on the Rust `tokenizers`: each character a token, and four special ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import tokenizers
from tokenizers import Regex, decoders, models, pre_tokenizers

from heedful.errors import Refusal

SPECIAL = ("<pad>", "<begin>", "<end>", "<unknown>")  # ids 0 to 3, as the models take them


class Tokenizer:
    """Text to ids and back, kept as one `tokenizer.json`."""

    def __init__(self, engine: tokenizers.Tokenizer) -> None:
        self.engine = engine

    @classmethod
    def of_characters(cls, texts: Iterable[str]) -> Tokenizer:
        """A token for every character that occurs, in the order of the alphabet."""
        known = (*SPECIAL, *sorted({character for text in texts for character in text}))
        engine = tokenizers.Tokenizer(models.WordLevel({token: at for at, token in enumerate(known)}, SPECIAL[3]))
        engine.pre_tokenizer = pre_tokenizers.Split(Regex("(?m:.)"), "isolated")
        engine.decoder = decoders.Fuse()
        return cls(engine)

    @classmethod
    def read(cls, path: Path) -> Tokenizer:
        """The tokenizer of a `tokenizer.json`."""
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except Exception as error:  # the engine raises plain Exceptions
            raise Refusal(f"{path} is no tokenizer: {error}") from None

    def write(self, path: Path) -> None:
        """Writes it as a `tokenizer.json`."""
        self.engine.save(str(path))

    def __len__(self) -> int:
        return self.engine.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """The ids of a text; what is not known becomes the unknown token."""
        return self.engine.encode(text).ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens left out."""
        return "".join(self.pieces([at for at in ids if at >= len(SPECIAL)]))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The tokens of ids, each as text."""
        return [self.engine.id_to_token(at) or SPECIAL[3] for at in ids]
