"""Language models of transformers beside ours, read from the very folder that transformers writes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import heedful
from heedful.attention import FixedMemory, Memory, standing
from heedful.formats.layout_registry import layout_for
from heedful.formats.name_rules import rules_of
from heedful.formats.weights import state

CLOSE = {"rtol": 0.0, "atol": 1e-5}
BATCH = 3


def stirred(model: nn.Module, std: float = 0.1) -> nn.Module:
    """The model, its weights far enough from their start that each of them matters."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * std)
    return model.eval()


def folder_of(theirs: nn.Module, folder: str) -> Path:
    """Where transformers has written a model."""
    theirs.save_pretrained(folder)  # type: ignore[operator]
    return Path(folder)


@contextmanager
def both(theirs: nn.Module) -> Iterator[tuple[nn.Module, nn.Module]]:
    """Our model, read from what transformers wrote of theirs, and theirs."""
    with tempfile.TemporaryDirectory() as folder:
        yield heedful.load(folder_of(stirred(theirs), folder)), theirs


def hidden(model: nn.Module, *given: Any) -> tuple[Tensor, list[Tensor]]:
    """What a decoder answers, and its states before the first block, after each, and after the last norm."""
    kept: list[Tensor] = []
    parts = [model.inputs, *model.decoder.blocks[:-1], model.decoder]  # type: ignore[union-attr,index,misc]
    hooks = [part.register_forward_hook(lambda part, given, made: kept.append(made)) for part in parts]
    answer = model(*given)
    for hook in hooks:
        hook.remove()
    return answer, kept


def same_states(ours: nn.Module, theirs: nn.Module, tokens: Tensor) -> None:
    """Logits and every hidden layer."""
    answer, kept = hidden(ours, tokens)
    other = theirs(tokens, output_hidden_states=True)
    assert len(kept) == len(other.hidden_states)
    for number, (one, two) in enumerate(zip(kept, other.hidden_states, strict=True)):
        torch.testing.assert_close(one, two, **CLOSE, msg=lambda m, n=number: f"layer {n}: {m}")
    torch.testing.assert_close(answer, other.logits, **CLOSE)
    assert other.logits.std() > 0.1, "nothing is said by numbers as small as these"


def same_gradients(ours: nn.Module, theirs: nn.Module, tokens: Tensor) -> None:
    """The gradients of all weights, by the names in the file."""
    along = torch.randn(*tokens.shape, theirs.config.vocab_size, generator=torch.Generator().manual_seed(1)) / 30
    (ours(tokens) * along).sum().backward()
    (theirs(tokens).logits * along).sum().backward()
    given = {name: p.grad for name, p in ours.named_parameters()}
    wanted = {name: p.grad for name, p in theirs.named_parameters()}
    layout, _ = layout_for(ours.spec)
    rules = rules_of(given, layout.table(ours.spec))
    made = {one: g for name, rule in rules.items() for one, g in zip(rule.names, rule.write(given[name]), strict=True)}
    assert made.keys() == wanted.keys()
    for name, gradient in made.items():
        torch.testing.assert_close(gradient, wanted[name], rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


@torch.no_grad()
def same_padded(ours: nn.Module, theirs: nn.Module, tokens: Tensor) -> None:
    """Padding on the left and on the right, and what goes on behind it, in one pass and with a memory."""
    length = tokens.shape[1]
    lengths = torch.tensor([length, max(1, length // 2), 1])[:, None]
    for there in (torch.arange(length) < lengths, torch.arange(length) >= length - lengths):
        at = standing(there)
        told = {"attention_mask": there.long(), "position_ids": at.clamp(min=0)}
        wanted = theirs(tokens, **told).logits
        torch.testing.assert_close(ours(tokens, None, at)[there], wanted[there], **CLOSE)
        for memory in (Memory(2), FixedMemory(length)):
            cut = max(1, length - 2)
            parts = [ours(tokens[:, a:b], memory, at[:, a:b]) for a, b in ((0, cut), (cut, length)) if b > a]
            torch.testing.assert_close(torch.cat(parts, 1)[there], wanted[there], **CLOSE)


@torch.no_grad()
def same_steps(ours: nn.Module, theirs: nn.Module, tokens: Tensor) -> None:
    """Token by token with a memory, beside transformers with its own."""
    memory, past = Memory(2), None
    for new in tokens.split(1, 1):
        told = theirs(new, past_key_values=past, use_cache=True)
        past = told.past_key_values
        torch.testing.assert_close(ours(new, memory), told.logits, **CLOSE)


@torch.no_grad()
def same_written(ours: nn.Module, theirs: nn.Module, tokens: Tensor) -> None:
    """What we write, transformers reads with no tensor missing or left over, and answers the same."""
    with tempfile.TemporaryDirectory() as folder:
        heedful.save(ours, Path(folder) / "model", layout="hf")
        again, told = type(theirs).from_pretrained(Path(folder) / "model", output_loading_info=True)
    assert not any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    torch.testing.assert_close(again.eval()(tokens).logits, theirs(tokens).logits, rtol=0.0, atol=0.0)


def same(theirs: nn.Module, length: int) -> None:
    """All of the above, on tokens drawn for it."""
    torch.manual_seed(length)
    tokens = torch.randint(3, theirs.config.vocab_size, (BATCH, length))
    with both(theirs) as (ours, other):
        same_states(ours, other, tokens)
        same_padded(ours, other, tokens)
        same_steps(ours, other, tokens)
        same_written(ours, other, tokens)
        same_gradients(ours, other, tokens)
    assert state(ours).keys()
