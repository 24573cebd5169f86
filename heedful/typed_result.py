"""Typed result: what every kind of answer says of itself, in a line, as JSON, on a page and in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from heedful.errors import Refusal, unknown_word
from heedful.looking import page
from heedful.looking.page import Section

if TYPE_CHECKING:
    from heedful.looking.notebook import Row

LONG = 400  # characters of a value that a notebook shows


@dataclass(frozen=True)
class Result(ABC):
    """Prediction: a value with a type. `Result.read(one.json()) == one`, for every kind there is."""

    kinds: ClassVar[dict[str, type[Result]]] = {}
    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.kind = cls.__name__.lower()
        known = Result.kinds.get(cls.kind)
        if known is not None and known.__module__ != cls.__module__:
            raise Refusal(f"results of kind {cls.kind!r} are those of {known.__module__}; give yours another name")
        Result.kinds[cls.kind] = cls

    @abstractmethod
    def plain(self) -> str:
        """The answer in one line, for a terminal."""

    def scored(self) -> str:
        """The answer in one line, with its likelihood, where it has one."""
        return self.plain()

    def best(self, count: int) -> Sequence[Result]:
        """The likeliest answers, at most so many, of those that this one knows of; refused where it is the only one."""
        raise Refusal(f"--best is for answers with likelihoods, and this model's is a {self.kind}; leave it out")

    def json(self) -> dict[str, Any]:
        """The answer for a program: its kind, and all that it holds."""
        return {"kind": self.kind, **asdict(self)}

    def section(self) -> Section:
        """The answer as a part of a page."""
        return page.Text("Answer", (self.plain(),))

    def rows(self) -> list[Row]:
        """The answer as a notebook shows it: a name and a value a row."""
        found = [(name.replace("_", " "), value) for name, value in self.json().items() if name != "kind"]
        return [(name, said if len(said := str(value)) <= LONG else f"{said[:LONG]}…") for name, value in found]

    def _repr_html_(self) -> str:
        from heedful.looking import notebook

        return notebook.table(self.kind.capitalize(), self.rows())

    @staticmethod
    def read(given: dict[str, Any]) -> Result:
        """The result that a program was given as JSON."""
        values = {key: freeze(value) for key, value in given.items() if key != "kind"}
        if given.get("kind") not in Result.kinds:
            raise unknown_word("kind of result", str(given.get("kind")), Result.kinds)
        try:
            return Result.kinds[given["kind"]](**values)
        except TypeError as error:
            raise Refusal(f"this is no result of kind {given['kind']!r}: {error}; give it as it was written") from None


def freeze(value: Any) -> Any:
    """Lists as tuples, at any depth: what is frozen holds nothing that is not."""
    return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Unread(Result):
    """Input that could not be read, in the place of its answer, and why."""

    why: str

    def plain(self) -> str:
        return ""
