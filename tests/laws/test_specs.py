"""A family has the keys that say something to it, and no others; its spec reads back from its own JSON as itself."""

import re
from pathlib import Path

import pytest
import torch

import heedful
from heedful import models
from heedful.errors import Refusal
from heedful.models import FAMILIES
from heedful.models.cases import Readings
from heedful.models.former_keys import OF_ALL, RENAMED
from heedful.models.heads_asked import NEXT, word_asked
from heedful.testing.family_laws import toy_keys as toy

CHOICE, SCALE = {"output": "classes", "classes": 3}, {"mean": [0.5] * 3, "deviation": [1.0] * 3}
SIDES = {part: {"family": f"transformer_{part}", "vocab": 11, "width": 16} for part in ("encoder", "decoder")}
VALUES: dict[str, object] = {  # of keys: such as change a toy, where nothing else is said
    "begin": 7, "bias": "alibi", "biased": True, "block": "bottleneck", "bottleneck_dim": 12, "channels": 2, "classes":
    5, "decoder_depth": 1, "decoder_heads": 1, "decoder_hidden": 8, "decoder_width": 32, "depth": 3, "depths": [2, 1],
    "distilled": True, "dropout": 0.5, "embedding_size": 16, "end": 9, "feedforward": "tanh", "first": 5, "groups": 1,
    "heads": 4, "hidden": 8, "hidden_dim": 8, "hidden_groups": 2, "high": 24, "inner_group": 2, "input_dropout": 0.5,
    "join": "routed", "join_bias": False, "key": 6, "key_norm": True, "layers": [[2, 8], [2, 16]], "leading": 3,
    "length": 16, "letters": 20, "locality_strength": 2.0, "mechanism": "linear", "merge_norm": "rms", "mlp_ratio":
    2.0, "norm": "rms", "normalize_embedding": False, "order": "post", "out_dim": 8, "output_bias": False,
    "output_dropout": 0.5, "pad": 8, "patch": 8, "pool": "mean", "position": "learned", "project": "collaborative",
    "project_bias": False, "scale_embedding": True, "segments": 5, "source_vocab": 17, "stack": "realformer", "stem":
    "matrix", "tied": False, "vocab": 13, "wide": 24, "width": 48, "window": 2,
}  # fmt: skip
MORE: dict[str, list[tuple[object, dict[str, object]]]] = {  # other values, and what must be said beside
    "bias": [("none", {})],
    "both_ways": [(False, {}), (True, {})],
    "cell": [("gru", {})],
    "context": [("last", {})],
    "embedding": [(5, {})],
    "classes": [(5, CHOICE)],
    "encoder": [(SIDES["encoder"] | {"depth": 3}, {})],
    "decoder": [(SIDES["decoder"] | {"depth": 3}, {})],
    "deviation": [([2.0] * 3, SCALE)],
    "feedforward": [("relu", {})],
    "join_bias": [(True, {})],
    "last_first": [(True, CHOICE)],
    "local_up_to_layer": [(2, {"depth": 3})],
    "mean": [([0.0] * 3, SCALE)],
    "mechanism": [("softmax", {}), ("additive", {})],
    "members": [(2, CHOICE)],
    "norm": [("layer", {})],
    "normalize_embedding": [(True, {})],
    "order": [("pre", {}), ("before", {})],
    "output": [("classes", {"classes": 3})],
    "pool": [("first", {})],
    "pooler": [("relu", CHOICE), ("tanh", CHOICE)],
    "position": [("sine", {})],
    "project_bias": [(True, {})],
    "reverse": [(True, {"both_ways": False})],
    "scale_embedding": [(False, {})],
    "scale_outputs": [(False, {"tied": True})],
    "stem": [("small", {})],
    "channels": [(4, {"vocab": None, "channels": 3})],
    "tasks": [(3, {"bias": "camtl"})],
    "tied": [(True, {}), (False, {"output": "masked"})],
    "tokenizer_width": [(8, {"classes": None, "vocab": 8})],
    "transform": [("relu", {"output": "masked"})],
    "vocab": [(13, {"classes": None})],
}
ELSEWHERE = {  # what is done by them is not the model's: they are read in a task, or where a text or a picture is
    **dict.fromkeys(("pad", "begin", "end", "length", "labels", "multi_label", "processor"), "anywhere"),
    **dict.fromkeys(("mask_ratio", "widths", "depths", "many_heads", "many_hidden", "budget"), "objectives"),
    **dict.fromkeys(("local_crops", "global_crop_scale", "student_temp", "koleo_weight"), "objectives"),
    **dict.fromkeys(
        ("teacher_temp", "teacher_momentum", "center_momentum", "temperature"), "models"
    ),  # while it learns
}


def told(family: str, said: dict[str, object]) -> list[object]:
    """All that a toy says and is: its answers, asked and while it learns, its parts, weights and special tokens."""
    torch.manual_seed(0)
    model = models.build(family, **toy(family) | said)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(weight.numel())) * 0.3)
    cases = (FAMILIES[family].cases if word_asked(model.spec) == NEXT else Readings)(model)
    found: list[object] = [
        repr(model),
        getattr(model, "special", None),
        [(name, tuple(one.shape)) for name, one in model.state_dict().items()],
    ]
    for learning in (False, True):
        torch.manual_seed(1)
        with torch.no_grad():
            made = model.train(learning)(*cases.inputs(torch.float32))
        found += [part.tolist() for part in (made if isinstance(made, tuple) else (made,))]
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_no_family_has_a_key_that_changes_nothing(family):
    plain = told(family, {})
    for key in FAMILIES[family].spec.model_fields.keys() - {"family"}:
        tried = [(value, {}) for name, value in VALUES.items() if name == key] + MORE.get(key, [])
        assert tried or key in ELSEWHERE, f"{key} is new: say here what it changes"
        changed = False
        for value, beside in tried:
            try:
                before = told(family, beside) if beside else plain
                changed = changed or told(family, beside | {key: value}) != before
            except (Refusal, RuntimeError):  # of a word that does not suit this family; another does
                continue
        assert changed or key in ELSEWHERE, f"{family}: {key} changes nothing"


@pytest.mark.parametrize(("key", "where"), ELSEWHERE.items())
def test_what_changes_nothing_in_a_model_is_read_elsewhere(key, where):
    home = Path(heedful.__file__).parent / where.replace("anywhere", ".")
    assert any(re.search(rf"spec\.{key}\b", path.read_text(encoding="utf-8")) for path in home.rglob("*.py"))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_spec_reads_back_from_its_own_json_as_itself(family):
    made = models.spec(family, **FAMILIES[family].toy)
    assert type(made).model_validate_json(made.model_dump_json()) == made
    assert models.spec_as_written(made.model_dump(mode="json")) == made
    assert models.spec(**made.model_dump(exclude_none=True)) == made


@pytest.mark.parametrize("family", RENAMED)
def test_a_former_key_is_refused_with_its_name_of_now(family):
    for before, now in (RENAMED[family] | OF_ALL).items():
        assert before not in FAMILIES[family].spec.model_fields
        if now in FAMILIES[family].spec.model_fields:
            with pytest.raises(Refusal, match=rf"^model\.{before} is called model\.{now} now; write that$"):
                models.build(family, **FAMILIES[family].toy, **{before: 1})
