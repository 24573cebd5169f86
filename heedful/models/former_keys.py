"""Former keys of model specs: what each is called now, for all families in one table.

In recipes and on the command line a former key is refused with the new one named. The spec.json of a model, or the
run.yaml of a run, that was written when it was still called so is read: keys are renamed, and those of the days when
every family had all keys, whether or not they said something to it, are left out where they say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.models.specs import SHARED

RENAMED: Mapping[str, Mapping[str, str]] = {  # by family: the key before, and the one now
    "dino": {
        "prototypes": "out_dim",
        "projected": "bottleneck_dim",
        "between": "hidden_dim",
        "small": "local_crops",
        "share": "global_crop_scale",
        "sharp": "teacher_temp",
        "soft": "student_temp",
        "momentum": "teacher_momentum",
        "centring": "center_momentum",
        "spread": "koleo_weight",
    },
    "mae": {"hides": "mask_ratio"},
    "beit": {"hides": "mask_ratio", "coder": "tokenizer_width"},
    "swin": {"spread": "mlp_ratio"},
    "convit": {"local": "local_up_to_layer", "strength": "locality_strength"},
    "albert": {"narrow": "embedding_size", "distinct": "hidden_groups", "inner": "inner_group"},
    "t5": {"scaled": "scale_outputs"},
    **{family: {"scaled": "scale_embedding", "normed": "normalize_embedding"} for family in ("bart", "marian")},
}
OF_ALL = {"several": "multi_label"}  # and of every family that had it
NEEDLESS = SHARED | {"classes", "labels", "pool", "leading", "distilled"}  # that families had to which they say nothing


def renames_of(family: str) -> dict[str, str]:
    """What a family's former keys are called now."""
    return {**OF_ALL, **RENAMED.get(family, {})}


def brought_up_to_date(values: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a spec that was written before, by the keys that its family has now."""
    names = renames_of(str(values.get("family")))
    made = {key if key in known else names.get(key, key): value for key, value in values.items()}
    return {key: value for key, value in made.items() if key in known or key not in NEEDLESS}
