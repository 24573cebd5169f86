"""Calling an encoder of text: what it gives for a batch of inputs, with all that it asks to be told of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import standing
from heedful.data.collate import Batch


def encoder_output(model: nn.Module, batch: Batch, copies: int = 1) -> Tensor:
    """What a model gives for a batch of inputs, or copies of one; segments are told to those that know them."""
    tokens, known = batch["tokens"], getattr(model.spec, "segments", 0)
    positions = standing(torch.arange(tokens.shape[1], device=tokens.device) < batch["lengths"][:, None])
    told = {"segments": batch["segments"].clamp(max=known - 1)} if known else {}
    told |= {name: batch[name] for name in ("tasks", "letters") if name in batch}
    if copies > 1 and getattr(model.spec, "members", 1) > 1:
        answer: Tensor = model(tokens, positions=positions, copies=copies, **told)
    else:
        answer = model(tokens, positions=positions, **told)
    return answer


def letters_of(spec: Any) -> int:
    """How many n-grams of letters a model has vectors for."""
    return getattr(spec, "letters", 0)
