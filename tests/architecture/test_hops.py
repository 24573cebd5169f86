"""How many functions of heedful stand between calling a model and the fused kernel: one reads as many to follow it."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from heedful.attention.mechanisms import softmax

PACKAGE = Path(heedful.__file__).parent
SMALL = {"width": 16, "heads": 2, "depth": 1, "hidden": 32}
MOST = {  # frames of heedful's own, the model's forward the first of them
    "gpt": (6, {"vocab": 11, "length": 8}, torch.tensor([[3, 4, 5]])),
    "vit": (7, {"channels": 3, "high": 16, "wide": 16, "patch": 4, "classes": 3}, torch.zeros(1, 3, 16, 16)),
}


def hops(model: Any, given: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions of heedful, outermost first, within which the kernel was called."""
    found: list[str] = []
    kernel = softmax.scaled_dot_product_attention

    def asked(*words: Any, **more: Any) -> torch.Tensor:
        frame = sys._getframe(1)
        while frame is not None:
            if Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
                found.insert(0, f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")
            frame = frame.f_back
        return kernel(*words, **more)

    monkeypatch.setattr(softmax, "scaled_dot_product_attention", asked)
    with torch.no_grad():
        model(given)
    return found


@pytest.mark.parametrize("family", MOST)
def test_few_functions_stand_before_the_kernel(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most, words, given = MOST[family]
    found = hops(heedful.build(family, **SMALL, **words).eval(), given, monkeypatch)
    assert found[0] == f"{family}.forward" and found[-1] == "softmax.forward"
    assert len(found) <= most, found
