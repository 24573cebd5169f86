"""Models that were made of a spec: what all families have in common beside being a torch module."""

from __future__ import annotations

from typing import Any

from torch import nn

from heedful.looking import notebook


class Model(nn.Module):
    """Model: a torch module that was made of a spec, which a notebook shows with its parts and their weights."""

    def _repr_html_(self) -> str:
        spec: Any = self.spec
        told = [(key, str(value)) for key, value in spec.model_dump(exclude_defaults=True).items() if key != "family"]
        parts = [(name, f"{type(part).__name__}, {count_weights(part)}") for name, part in self.named_children()]
        title = f"{spec.family}, {count_weights(self)}"
        return notebook.table(title, told) + notebook.table("parts", parts)


def count_weights(module: nn.Module) -> str:
    """How many weights a module has, and how many of them learn, in words."""
    every = sum(one.numel() for one in module.parameters())
    learn = sum(one.numel() for one in module.parameters() if one.requires_grad)
    return f"{every:,} weights" + (f", {learn:,} of them learn" if learn < every else "")
