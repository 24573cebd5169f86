"""What heedful says of itself: every key has a meaning, every recipe a goal, and the doctor names what is missing."""

import json
import shlex
from importlib import metadata

import pytest
import torch

from heedful.cli import doctor_verb
from heedful.cli.examples import EXAMPLES
from heedful.tasks import TASKS
from heedful.training.spec import keys, recipes, recipes_by_goal
from heedful.training.spec.run_spec import RunSpec
from tests.cli.conftest import Program
from tests.cli.test_verbs import verbs

# ---------------------------------------------------------------------- keys


@pytest.fixture(scope="module")
def groups() -> list[keys.Group]:
    return keys.every_key()


def test_every_key_has_a_meaning_that_is_a_sentence(groups: list[keys.Group]) -> None:
    found = {(group.title, key.key, key.meaning) for group in groups for key in group.keys}
    assert [one for one in found if not one[2]] == []
    assert [one for one in found if not (one[2][:1].isupper() and one[2].endswith("."))] == []


def test_every_group_of_keys_says_what_it_is_of(groups: list[keys.Group]) -> None:
    assert [group.title for group in groups if not group.about] == []


def test_every_key_of_every_recipe_is_listed_for_its_task() -> None:
    for name in recipes.names():
        run = recipes.resolve(name)
        listed = {key.key for group in keys.keys_of_task(run.task) for key in group.keys}
        for part in ("data", "model", "training", "objective", "decoding"):
            there = getattr(run, part)
            own = there if isinstance(there, dict) else there.model_dump()
            assert {f"{part}.{key}" for key in own if key != "size"} - listed == set(), name
    assert RunSpec.model_fields.keys() - {key.key for key in keys.run_keys().keys} == set(keys.WITHIN)


def test_a_key_is_told_with_its_type_its_default_and_its_bounds(heedful: Program) -> None:
    said = heedful("keys", "classify", "training.layer_decay")
    assert (said.status, said.err) == (0, "")
    assert said.lines[1].split("  ")[1:4] == ["training.layer_decay", "number > 0, ≤ 1", "1.0"]
    rows = json.loads(heedful("keys", "vit", "model.patch", "--json").out)
    assert {"key": "model.patch", "type": "integer ≥ 1", "default": "16"}.items() <= rows[0]["keys"][0].items()


def test_keys_without_a_task_list_the_tasks_and_an_unknown_one_is_refused(heedful: Program) -> None:
    assert heedful("keys").lines == list(TASKS)
    assert "did you mean 'classify'?" in heedful("keys", "clasify").err
    assert heedful("keys", "classify", "no-such-word").status == 2


def test_a_part_from_elsewhere_may_describe_its_keys_by_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    from pydantic import BaseModel, Field

    class Own(BaseModel):
        size: int = Field(3, ge=1, description="How large it is.")

    assert keys.rows(Own, "data.") == (keys.Key("data.size", "integer ≥ 1", "3", "How large it is."),)


# ---------------------------------------------------------------------- recipes


def test_every_recipe_of_ours_stands_under_a_goal() -> None:
    groups = recipes_by_goal.by_goal()
    assert recipes_by_goal.OTHERS not in groups
    assert sorted(one[0].recipe for found in groups.values() for one in found) == recipes.names()


def test_a_recipe_is_told_whole(heedful: Program) -> None:
    said = heedful("recipes", "gpt-shakespeare")
    assert said.status == 0
    for part in ("52 s on one H200", "with seeds 2 and up: -1.43, -1.44", "nanoGPT", "data=FILE", "optimiser: muon"):
        assert part in said.out
    assert "unknown recipe 'gpt-shakespear'; did you mean" in heedful("recipes", "gpt-shakespear").err


def test_times_say_the_hardware_alone() -> None:
    for found in recipes_by_goal.by_goal().values():
        for version in (one for versions in found for one in versions):
            assert version.expected.where in ("one CPU core", "two CPU cores", "one H200"), version.command


# ---------------------------------------------------------------------- doctor


def test_the_doctor_says_what_is_here_and_what_to_install(heedful: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    rows = {row["name"]: row for row in json.loads(heedful("doctor", "--json").out)}
    assert torch.__version__ in rows["torch"]["found"] and rows["Python"]["state"] == "ok"
    assert rows["data sst"]["cure"] == "heedful data get sst"
    assert heedful("doctor").status == 0


def test_the_doctor_fails_where_something_needed_is_missing(heedful: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["torch>=999", "no-such-package", 'no-such-peer; extra == "bench"']
    monkeypatch.setattr(metadata, "requires", lambda name: asked)
    said = heedful("doctor")
    assert said.status == 1
    assert f"not met: torch>=999 (here: {torch.__version__}), no-such-package" in said.out
    assert "not installed: no-such-peer" in said.out and 'pip install "heedful[bench]"' in said.out


def test_the_doctor_knows_every_extra_that_users_install() -> None:
    extras = set(metadata.metadata("heedful").get_all("Provides-Extra") or ())
    assert doctor_verb.EXTRAS.keys() == extras - {"test", "docs"}


# ---------------------------------------------------------------------- examples


def test_every_verb_has_examples() -> None:
    assert EXAMPLES.keys() == verbs().keys()


@pytest.mark.parametrize("example", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_is_a_call_that_the_program_understands(example: str) -> None:
    program, *words = shlex.split(example.partition(" < ")[0])
    assert program == "heedful"
    name = " ".join(words[:2]) if " ".join(words[:2]) in verbs() else words[0]
    verbs()[name].make_context(name, words[len(name.split()) :])


def test_the_help_of_a_verb_ends_with_its_examples(heedful: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for verb, lines in EXAMPLES.items():
        said = heedful(*verb.split(), "--help").out
        assert all(line in said.partition("Examples:")[2] for line in lines), verb
