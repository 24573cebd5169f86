"""The state of a decoder between two steps. Every search stands on it: on a context and a memory, whatever was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from heedful.attention import Memory
from heedful.decoding.generated_answer import Answer
from heedful.decoding.logits_rules import FREE, Rules
from heedful.engines import Weights, runner
from heedful.engines.engine import Model
from heedful.errors import Failure, Refusal
from heedful.models.writer import Beginning, Writer, longest

if TYPE_CHECKING:
    from heedful.attention.kv_cache_tree import TreeMemory

BEYOND = 50  # an answer may be this much longer than its source, where not told (Vaswani et al., 2017)
# The log-probabilities of the next tokens (B V), the place of each target among all, and the step -> tokens (B).
Choose = Callable[[Tensor, Tensor, int], Tensor]


class Steps:
    """Targets being written: owns what is written (B T), what is remembered of it and what it looks at.

    Without a memory the whole of what is written is read again at every step: slow, and the proof of the other way.
    """

    def __init__(self, model: Writer, context: Beginning, memory: Memory | None, rules: Rules = FREE) -> None:
        self.model, self.context, self.memory, self.rules = model, context, memory, rules
        self.special, begun = model.special, context.prompt
        self.ends = (*(model.special.ends if rules.ends else ()), *rules.also)
        self._ends = begun.new_tensor(self.ends)
        self.written, self.begun = begun, begun.shape[1]  # of which so many tokens stood there at first
        self.sources = torch.arange(len(begun), device=begun.device)  # of which source each target is

    def __len__(self) -> int:
        """How many targets are being written."""
        return self.sources.shape[0]

    @property
    def length(self) -> int:
        """How many tokens have been written behind what stood there at first."""
        return self.written.shape[1] - self.begun

    def chances(self) -> Tensor:
        """The log-probability of each next token, as the rules leave it: B V. What is never written has none."""
        scores = self.rules.weigh(self.scores(), self.written)
        chances = scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        self.checked(chances)
        for never in self.special.never:
            chances[:, never] = -torch.inf
        self.rules.forbid(chances, self.written)
        return chances if self.length or self.special.first is None else certain(chances, self.special.first)

    def checked(self, chances: Tensor) -> None:
        """Fails where scores are not numbers."""
        if chances[:, 0].isnan().any():  # one score that is no number makes all of its row so
            raise Failure("the model's scores are not numbers, so no token can be chosen; train it at a lower rate")

    def scores(self) -> Tensor:
        """What the model says of each next token: B V. The scores behind every token of a prompt would be many."""
        if self.memory is not None and self.length:  # which knows where each target goes on
            new, at = self.written[:, -1:], None
        else:
            new, at = self.written.clamp(min=0), extend_places(self.context.places, self.length)
        states = self.model.states(new, self.context, self.memory, at)
        scores: Tensor = self.model.outputs(states[:, -1:])[:, -1]
        return scores

    def write(self, tokens: Tensor) -> None:
        """Writes one token (B) behind each target."""
        self.written = torch.cat((self.written, tokens[:, None]), 1)

    def answers(self, which: Tensor) -> Tensor:
        """The tokens of these targets so far."""
        return self.written[which, self.begun :]

    def ended(self) -> Tensor:
        """Which targets (B) came to their end with the newest token."""
        ended = (self.written[:, -1:] == self._ends).any(1)
        if self.rules.stops is None:
            return ended
        return ended | ended.new_tensor([self.rules.stops(said) for said in self.written[:, self.begun :].tolist()])

    def take(self, index: Tensor) -> None:
        """Goes on with the targets at `index` alone, in that order; many targets of one source share what it says."""
        index, sources = index.flatten(), self.sources
        if self.memory is not None:
            self.memory.take(index)
        self.written, self.sources = self.written[index], self.sources[index]
        if not torch.equal(sources, self.sources):
            self.context = self.context.take(index)


class BranchingSteps(Steps):
    """The same with K targets of each source, side by side (B K), read as rows of one forward.

    What is remembered of them is not copied when they change places, and what a source says is read once for all.
    """

    def __init__(self, model: Writer, context: Beginning, memory: TreeMemory, rules: Rules = FREE) -> None:
        super().__init__(model, context, memory, rules)
        self.tree = memory
        self.open = len(self)  # sources whose targets are being written

    def scores(self) -> Tensor:
        """The model's scores of each next token: (B K) V."""
        new = self.written[:, -1].view(self.open, -1)
        return self.model.decode(new, self.context, self.tree).flatten(0, 1)

    def take(self, index: Tensor) -> None:
        """Goes on with the targets at `index`: B K, for each source that stays as many targets of its own."""
        width = len(self) // self.open
        if len(index) < self.open:
            stays = index[:, 0] // width
            self.context = self.context.take(stays)
            self.tree.take(stays)
            self.open = len(index)
        self.tree.follow(index % width)
        index = index.flatten()
        self.written, self.sources = self.written[index], self.sources[index]


def begin(model: Writer, batch: Mapping[str, Tensor], weights: Weights = "float32") -> Beginning:
    """What a batch says to a model that answers: the context that a search goes on from."""
    if missing := sorted((model.reads or {"prompt"}) - batch.keys()):
        raise Refusal(f"the batch has no {' and no '.join(missing)}, which the model reads; add it")
    with answering(model, weights) as running:
        return running.begin(batch)


def limits(model: Writer, context: Beginning, max_new_tokens: int | None) -> Tensor:
    """How many tokens each answer (B) may have, END counted: what was asked, or 50 more than there was to read."""
    room = model.room(context)
    if room < 1:
        raise Refusal(f"the prompt takes all {longest(model)} positions that the model has learned; shorten it")
    if max_new_tokens is None:
        return (context.lengths + BEYOND).clamp(max=room)
    if max_new_tokens < 1:
        raise Refusal(f"max_new_tokens={max_new_tokens} leaves nothing to write; give 1 or more")
    if max_new_tokens > room:
        raise Refusal(
            f"max_new_tokens={max_new_tokens} is beyond the positions that the model has learned; give at most {room}"
        )
    return torch.full_like(context.lengths, max_new_tokens)


def extend_places(places: Tensor | None, count: int) -> Tensor | None:
    """Positions (B T) and those of `count` tokens more; none where they are not told."""
    if places is None:
        return None
    return torch.cat((places, places[:, -1:] + torch.arange(1, count + 1, device=places.device)), 1)


def certain(chances: Tensor, token: int) -> Tensor:
    """Log-probabilities (B V) by which one token comes for certain."""
    return torch.full_like(chances, -torch.inf).index_fill_(1, torch.tensor([token], device=chances.device), 0.0)


@contextmanager
def answering(model: Model, weights: Weights = "float32") -> Iterator[Model]:
    """The model as it answers, run by the engines that serve it (see `engines.runner`); it stays as it is itself."""
    with quiet(model):
        yield runner(model, weights)


@contextmanager
def quiet(model: nn.Module) -> Iterator[None]:
    """Inside, nothing learns: there are no dropout and no gradients. Afterwards all is as it was."""
    learning = [part for part in model.modules() if part.training]
    for part in learning:
        part.training = False
    try:
        with torch.no_grad(), without_cudnn_attention():
            yield
    finally:
        for part in learning:
            part.training = True


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Without cuDNN's attention, which plans for a tenth of a second whenever a sequence has another length."""
    plans = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(plans)


@contextmanager
def searching(model: Model) -> Iterator[Model]:
    """The model as it answers in words alone: no tensor is given out, so that torch need not keep account of any.

    Where hooks watch the model, as `heedful.look` does, what they keep is to be reckoned with later: there it must.
    """
    watched = any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    with answering(model) as running, nullcontext() if watched else torch.inference_mode():
        yield running


def write(steps: Steps, choose: Choose, limit: Tensor) -> list[Answer]:
    """The answer of every target, in their order: until END, or as many tokens as its source's limit (B) says.

    What is finished leaves the batch.
    """
    answers: dict[int, Answer] = {}
    going = torch.arange(len(steps), device=limit.device)
    scores, limit, count = torch.zeros(len(steps), device=limit.device), limit[steps.sources], len(steps)
    while len(steps):
        chances = steps.chances()
        tokens = choose(chances, going, steps.length)
        scores = scores + chances.gather(1, tokens[:, None]).squeeze(1)
        steps.write(tokens)
        ends = steps.ended() | (limit <= steps.length)
        if ends.any():
            wrote = going[ends].tolist(), steps.answers(ends).tolist(), scores[ends].tolist()
            answers |= {place: Answer.of(said, score, steps.ends) for place, said, score in zip(*wrote, strict=True)}
            steps.take((~ends).nonzero().flatten())
            scores, going, limit = scores[~ends], going[~ends], limit[~ends]
    return [answers[place] for place in range(count)]
