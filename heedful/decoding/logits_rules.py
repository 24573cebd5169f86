"""Rules of writing: what of the model's own scores is changed, what may not be written, and when an answer ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from heedful.errors import Refusal


@dataclass(frozen=True)
class Rules:
    """What holds for whatever is written, however it is searched for: greedily, with beams or by chance.

    Scores are changed before they become chances, by the bias and then by the penalty; what is forbidden loses its
    chance, which nobody else is given. A ban is a row of ids: where all but its last were just written, the last one
    may not follow. With `ends` false END is a token as any other; tokens of `also` end an answer too, and `stops` says
    of the tokens of an answer whether it ends there.
    """

    repetition_penalty: float = 1.0  # above 1: what was read or written before is less likely (Keskar et al., 2019)
    no_repeat_ngram: int = 0  # of so many tokens no row comes twice (Paulus et al., 2018); 0: it may
    bans: Sequence[Sequence[int]] = ()
    bias: Mapping[int, float] = field(default_factory=dict)  # what is added to the scores of tokens
    ends: bool = True
    also: tuple[int, ...] = ()
    stops: Callable[[Sequence[int]], bool] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.repetition_penalty < math.inf:
            raise Refusal(
                f"repetition_penalty={self.repetition_penalty} cannot divide scores; give a finite number above 0"
            )
        if self.no_repeat_ngram < 0:
            raise Refusal(f"no_repeat_ngram={self.no_repeat_ngram} is below 0; give how many tokens, or 0 for none")
        for token, added in self.bias.items():
            if not math.isfinite(added):
                raise Refusal(f"a bias of {added} for token {token} is not finite; ban what should never be written")
        if not all(self.bans):
            raise Refusal("a ban of no tokens would forbid everything; give each at least one")

    def weigh(self, scores: Tensor, before: Tensor) -> Tensor:
        """The model's scores (B V) as the bias and the penalty change them; `before` (B T) is read and written."""
        if self.bias:
            scores = scores.index_add(1, self._at(scores), self._added(scores).expand(len(scores), -1))
        if self.repetition_penalty != 1.0:
            said = occurring(before, scores.shape[1])
            less = torch.where(scores > 0, scores / self.repetition_penalty, scores * self.repetition_penalty)
            scores = torch.where(said, less, scores)
        return scores

    def forbid(self, chances: Tensor, before: Tensor) -> None:
        """Takes from log-probabilities (B V) what may not be written behind `before` (B T)."""
        for ban in self.bans:
            *led, last = ban
            if not led:
                chances[:, last] = -torch.inf
            elif len(led) <= before.shape[1]:
                follows = (before[:, -len(led) :] == before.new_tensor(led)).all(1)
                chances[follows, last] = -torch.inf
        if 0 < self.no_repeat_ngram <= before.shape[1]:
            self._forbid_repeats(chances, before)

    def _forbid_repeats(self, chances: Tensor, before: Tensor) -> None:
        rows = before.unfold(1, self.no_repeat_ngram, 1)  # B N n
        newest = before[:, before.shape[1] - self.no_repeat_ngram + 1 :]  # B n-1: what the next token would close
        repeats = (rows[:, :, :-1] == newest[:, None]).all(-1) & (rows >= 0).all(-1)
        b, n = repeats.nonzero(as_tuple=True)
        chances[b, rows[b, n, -1]] = -torch.inf

    def _at(self, scores: Tensor) -> Tensor:
        return torch.tensor(list(self.bias), device=scores.device)

    def _added(self, scores: Tensor) -> Tensor:
        return torch.tensor(list(self.bias.values()), dtype=scores.dtype, device=scores.device)


FREE = Rules()


def occurring(tokens: Tensor, vocab: int) -> Tensor:
    """Which tokens of the vocabulary occur in each row of ids (B T, padding below 0): B V."""
    found = torch.zeros(len(tokens), vocab + 1, dtype=torch.bool, device=tokens.device)
    return found.scatter_(1, tokens.masked_fill(tokens < 0, vocab), True)[:, :vocab]
