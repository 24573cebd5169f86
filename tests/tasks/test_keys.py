"""Each reader has keys of `data` and each objective has numbers; what means nothing is refused, and not ignored."""

import pytest
import torch
import yaml

from heedful.errors import Refusal
from heedful.tasks import TASKS
from heedful.training import run
from heedful.training.prepare import prepare
from heedful.training.pretraining_stages import run_of_recipe
from heedful.training.spec import recipes
from heedful.training.spec.older_runs import DATA, begun_spec
from heedful.training.spec.run_spec import validate_spec

CPU = torch.device("cpu")
FEW = ["data=toy", "data.samples=60", "data.held_out=12", "training.steps=1", "training.batch=8"]
UNKNOWN = {
    "bart-text": ["apart=false", "whole_words=true"],
    "t5-text": ["apart=false", "whole_words=true"],
    "bert-text": ["apart=false", "near=3", "merge_dropout=0.1", "form=raw"],
    "chat-text": ["noise=0.1", "merge_dropout=0.1"],
    "glove": ["apart=false", "noise=0.4", "negatives=3", "frequent=0.1", "longest=9", "stride=3"],
    "word2vec": ["apart=false", "noise=0", "whole_words=true"],
    "gpt-text": ["near=3", "negatives=3", "whole_words=true", "too_long=drop", "pixels=8", "bleu=char", "divide=file"],
    "classify": ["document=line", "apart=false", "whole_words=true", "longest=9", "stride=3", "divide=share"],
    "tag": ["form=raw"],
    "answer": ["split_seed=1"],
    "listops": ["tokenizer=words", "noise=0.1"],
    "sets": ["tokenizer=words", "horizon=9"],
    "series": ["split_seed=3", "shortest=2", "too_long=drop", "dimensions=3"],
    "translate": ["noise=0.1", "stride=3", "augment=[flip]", "longest=9", "split_seed=3", "form=raw"],
    "summarise": ["bleu=char", "shortest=3"],
    "reverse": ["bleu=char", "languages=en-de"],
    "in-context": ["split_seed=3", "horizon=9"],
    "vit": ["longest=9", "tokenizer=words", "too_long=drop", "languages=en-de"],
    "mae": ["noise=0.1"],
}


@pytest.mark.parametrize(("recipe", "change"), [(recipe, key) for recipe, keys in UNKNOWN.items() for key in keys])
def test_a_key_that_a_reader_does_not_have_is_refused_by_name(recipe, change):
    with pytest.raises(Refusal, match=rf"^unknown key 'data\.{change.partition('=')[0]}'.* known: data\."):
        recipes.resolve(recipe, [*FEW, f"data.{change}"])


def test_every_key_that_data_had_before_readers_owned_theirs_has_an_owner():
    owned = set().union(*(reader.model_fields for task in TASKS.values() for reader in task.readers.values()))
    assert owned >= DATA


MOVED = {"smoothing": "translate", "guidance": "translate", "disagreement": "vit", "span": "gpt-text"}


@pytest.mark.parametrize(("number", "recipe"), MOVED.items())
def test_a_number_of_a_loss_is_the_objectives_and_refused_elsewhere(number, recipe):
    with pytest.raises(
        Refusal, match=rf"^training\.{number} is a number of the objective's; write objective\.{number}=0\.5"
    ):
        recipes.resolve(recipe, ["data=toy", f"training.{number}=0.5"])
    assert dict(recipes.resolve(recipe, ["data=toy", f"objective.{number}=0.5"]).objective)[number] == 0.5
    with pytest.raises(Refusal, match=r"^unknown key 'objective\.guidance'"):
        recipes.resolve("vit", ["data=toy", "objective.guidance=1"])
    with pytest.raises(Refusal, match=rf"^objective\.{number}=-1 does not fit: it should be 0 or more"):
        recipes.resolve(recipe, ["data=toy", f"objective.{number}=-1"])


@pytest.mark.parametrize("recipe", recipes.names())
def test_a_task_knows_what_its_recipes_and_their_runs_say_of_data(recipe):
    for name in (None, "toy", "elsewhere", *recipes.sets(recipe)):
        spec = recipes.resolve(recipe, [f"data={name}"] if name else [])
        again = validate_spec(yaml.safe_load(spec.text()))
        assert again == spec


def test_what_is_trained_first_takes_over_the_keys_that_it_knows():
    mine = recipes.resolve("classify", ["data=mine.tsv", "data.too_long=drop", "data.split_seed=7", "data.noise=0.2"])
    data = run_of_recipe("recipe:bert-text data.longest=30", mine).data
    assert (data.name, data.noise, data.split_seed, data.longest) == ("mine.tsv", 0.2, 7, 30)
    spec = recipes.resolve("classify-sst", ["data.too_long=drop"])
    data = run_of_recipe("recipe:bert-text data.longest=30", spec).data
    assert (data.name, data.noise, data.longest, data.long_samples) == ("sst", 0.3, 30, "refuse")
    assert run_of_recipe("recipe:classify-sst-phrases", spec).data.form == "sentences"


def test_a_run_that_was_begun_goes_on_and_is_scored_whatever_its_keys(tmp_path):
    out = tmp_path / "run"
    run.train(recipes.resolve("gpt-text", FEW), out, False, CPU)
    said = yaml.safe_load((out / "run.yaml").read_text())
    said["data"]["near"] = 3
    (out / "run.yaml").write_text(yaml.safe_dump(said))
    assert prepare(begun_spec(out / "run.yaml"), CPU, out).task.name == "language-modelling"
    _, task = run.load_trained(out)
    assert len(run.reopen_run(out, task, ["data.stride=9"], "test")[1])
    with pytest.raises(Refusal, match=r"unknown key 'data\.negatives'"):
        run.reopen_run(out, task, ["data.negatives=3"], "test")
