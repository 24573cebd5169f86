"""What the Rust engine does not take, or panics at, as refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from heedful.errors import Refusal
from heedful.tokenizers import rust_engines


@contextmanager
def refusing(texts: Sequence[str]) -> Iterator[None]:
    """Within it, what the engine does not take is refused."""
    try:
        yield
    except Exception as error:  # the engine raises plain Exceptions
        raise error if isinstance(error, Refusal) else unfit(texts, error) from None
    except BaseException as error:  # and panics at a pattern for which it would search without end
        raise unfit(texts, error) if rust_engines.is_panic(error) else error from None


def unfit(texts: Sequence[str], error: BaseException) -> Exception:
    """What to say of texts that the engine did not take."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            return Refusal(f"{text[:50]!r} holds half characters (surrogates), which are no text; drop or mend them")
    what = "encoded" if texts else "decoded"
    return Refusal(f"a text cannot be {what}: {error}; use another tokenizer")
