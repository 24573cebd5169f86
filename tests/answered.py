"""What a model answers, as `predict` prints it."""

from collections.abc import Iterable

from heedful.results import Result


def plain(results: Iterable[Result]) -> list[str]:
    return [one.plain() for one in results]
