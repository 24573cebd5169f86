"""Looking never changes what is seen: hooks keep references to queries, keys and sight, and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from heedful.attention import Sight
from heedful.attention.mechanisms import Mechanism
from heedful.errors import unknown_word

if TYPE_CHECKING:
    from heedful.looking.drawn import Drawn

Call = tuple[Mechanism, Tensor, Tensor, Sight]


class Seen:
    """What every attention of a model was asked while it was looked at; weights are computed when asked for."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._calls: dict[str, list[Call]] = {path: [] for path in paths}

    @property
    def paths(self) -> tuple[str, ...]:
        """The dotted paths of the attentions that were called, in the model's order."""
        return tuple(path for path, calls in self._calls.items() if calls)

    def calls(self, path: str) -> int:
        """How often the attention at a path was called."""
        return len(self._at(path))

    def asked(self, path: str, call: int = -1) -> Call:
        """The mechanism there, with the queries, keys and sight that it was asked about."""
        return self._at(path)[call]

    def sight(self, path: str, call: int = -1) -> Sight:
        """Who could see whom there."""
        return self._at(path)[call][3]

    def weights(
        self, path: str, heads: Sequence[int] | None = None, rows: Sequence[int] | None = None, call: int = -1
    ) -> Tensor:
        """How much each row took of each column, B H T S, for the heads and rows asked for.

        This is the mechanism's definition in float32 or better, on the very queries and keys that the kernel saw, and
        before dropout. It carries gradient where the model did.
        """
        mechanism, q, k, sight = self._at(path)[call]
        exact = torch.promote_types(q.dtype, torch.float32)
        with torch.autocast(q.device.type, enabled=False):
            q, k = q.to(exact), k.to(exact)
            if rows is None:
                weights = mechanism.weights(q, k, sight.afresh())
            else:
                chosen = torch.as_tensor(rows, dtype=torch.long, device=q.device)
                weights = mechanism.rows(q, k, sight.afresh(), chosen)
        if heads is None:
            return weights
        # Not weights[:, heads]: an index is copied to the GPU, which no CUDA graph can hold.
        return torch.cat([weights[:, :0], *(weights.narrow(1, head, 1) for head in heads)], 1)

    def show(self, tokens: Sequence[str] | None = None, source: Sequence[str] | None = None, item: int = 0) -> Drawn:
        """Attention maps to look at in a notebook, or to `save`: what `heedful.draw` draws."""
        from heedful.looking.drawn import draw

        return draw(self, tokens, source, item)

    def _repr_html_(self) -> str:
        return self.show()._repr_html_() if self.paths else "<i>nothing was seen</i>"

    def _at(self, path: str) -> list[Call]:
        if not self._calls.get(path):
            raise unknown_word("path", path, self.paths)
        return self._calls[path]


def attends(model: nn.Module) -> bool:
    """Whether there is attention in a model to look at."""
    return any(isinstance(part, Mechanism) for part in model.modules())


@contextmanager
def look(model: nn.Module) -> Iterator[Seen]:
    """Keeps what every mechanism of the model is asked inside the `with`: T x D each, never T x S. Changes no bit.

    A compiled model is run eagerly while it is looked at, and says so.
    """
    mechanisms = {_uncompiled_path(path): m for path, m in model.named_modules() if isinstance(m, Mechanism)}
    seen = Seen(list(mechanisms))

    def keeper(path: str) -> Any:
        def keep(mechanism: Mechanism, given: tuple[Any, ...]) -> None:
            q, k, _, sight = given
            seen._calls[path].append((mechanism, q, k, sight.afresh()))

        return keep

    hooks = [m.register_forward_pre_hook(keeper(path)) for path, m in mechanisms.items()]
    try:
        with _eagerly(model):
            yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _uncompiled_path(path: str) -> str:
    """The path of an attention, whose name does not tell that it was compiled."""
    return path.replace("_orig_mod.", "").removesuffix(".mechanism")


@contextmanager
def _eagerly(model: nn.Module) -> Iterator[None]:
    if not any("_orig_mod" in m._modules or m._compiled_call_impl is not None for m in model.modules()):
        yield
        return
    warnings.warn("a compiled model is run eagerly while it is looked at", stacklevel=5)
    with torch.compiler.set_stance("force_eager"):
        yield
