"""Export: whether a model can also be written in another layout is checked before the first step of its run."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from torch import nn

from heedful.errors import Refusal
from heedful.formats.layout_registry import PUBLISHED, layout_for
from heedful.models.specs import Spec
from heedful.training.spec.run_spec import RunSpec

NATIVE = "save it in the native layout"  # the cure of one who converts


def check_export(run: RunSpec, model: nn.Module) -> None:
    """Refuses a layout that could not say the model of a run."""
    for layout in run.export:
        if not isinstance(getattr(model, "spec", None), Spec):
            raise Refusal(f"export={layout} writes models of heedful's, and this one is your own; leave it out")
        try:
            check_hf(model) if layout == "hf" else check_onnx(model)
        except Refusal as refused:
            raise Refusal(f"export={layout}: {str(refused).replace(NATIVE, 'leave export out')}") from None


def check_hf(model: nn.Module) -> None:
    """Refuses a model that no layout of Hugging Face's can say."""
    spec: Any = model.spec
    layout_for(PUBLISHED[spec.family](model).spec if spec.family in PUBLISHED else spec)  # type: ignore[arg-type]


def check_onnx(model: nn.Module) -> None:
    """Refuses a model that is not written as graphs, or where what writes them is missing."""
    from heedful.formats import onnx

    if missing := [name for name in onnx.NEEDED if find_spec(name) is None]:
        raise Refusal(f"it needs {' and '.join(missing)}; pip install 'heedful[onnx]'")
    onnx.graphs(model)
