"""Each task knows some keys of `data`; a key that means nothing to it is refused, and not ignored."""

import pytest
import torch
import yaml

from heedful.data.data_spec import DataSpec
from heedful.errors import Refusal
from heedful.tasks import TASKS, task_of
from heedful.tasks.closed import ALL
from heedful.tasks.task import Task
from heedful.training import recipes, run
from heedful.training.adapt.pretraining_stages import named
from heedful.training.older_runs import begun_spec
from heedful.training.prepare import prepare
from heedful.training.run_spec import validated

CPU = torch.device("cpu")
FEW = ["data=toy", "data.samples=60", "data.held_out=12", "training.steps=1", "training.batch=8"]
IGNORED = {
    "t5-text": ["apart=false", "whole_words=true"],
    "bart-text": ["apart=false", "whole_words=true"],
    "vit": ["longest=9", "tokenizer=words", "too_long=drop", "languages=en-de"],
    "mae": ["noise=0.1"],
}
UNKNOWN = {
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
}


@pytest.mark.parametrize(("recipe", "change"), [(recipe, key) for recipe, keys in IGNORED.items() for key in keys])
def test_a_key_that_means_nothing_to_a_task_is_refused_by_name(recipe, change):
    spec = recipes.resolve(recipe, [*FEW, f"data.{change}"])
    key = change.partition("=")[0]
    with pytest.raises(Refusal, match=rf"^data\.{key} is nothing that task '{spec.task}' knows; leave it out$"):
        prepare(spec, CPU)


@pytest.mark.parametrize(("recipe", "change"), [(recipe, key) for recipe, keys in UNKNOWN.items() for key in keys])
def test_a_key_that_a_reader_does_not_have_is_refused_by_name(recipe, change):
    with pytest.raises(Refusal, match=rf"^unknown key 'data\.{change.partition('=')[0]}'.* known: data\."):
        recipes.resolve(recipe, [*FEW, f"data.{change}"])


def test_each_key_is_known_to_some_task_and_none_is_known_that_is_not_there():
    closed = [task for task in TASKS.values() if not isinstance(task, Task)]
    open = [
        reader.model_fields for task in TASKS.values() if isinstance(task, Task) for reader in task.readers.values()
    ]
    assert ALL.union(*(task.keys for task in closed), *open) == DataSpec.model_fields.keys()
    assert not any(task.keys & ALL for task in closed)


@pytest.mark.parametrize("recipe", recipes.names())
def test_a_task_knows_what_its_recipes_and_their_runs_say_of_data(recipe):
    for name in (None, "toy", "elsewhere", *recipes.sets(recipe)):
        spec = recipes.resolve(recipe, [f"data={name}"] if name else [])
        again = validated(yaml.safe_load(spec.text()))
        if not isinstance(task_of(spec.task), Task):
            task_of(spec.task).hears(dict(spec.data))
            task_of(spec.task).hears(dict(again.data))
        assert again == spec


def test_what_is_trained_first_takes_over_the_keys_that_it_knows():
    mine = recipes.resolve("classify", ["data=mine.tsv", "data.too_long=drop", "data.split_seed=7", "data.noise=0.2"])
    data = named("recipe:bert-text data.longest=30", mine).data
    assert (data.name, data.noise, data.split_seed, data.longest) == ("mine.tsv", 0.2, 7, 30)
    spec = recipes.resolve("classify-sst", ["data.too_long=drop"])
    data = named("recipe:bert-text data.longest=30", spec).data
    assert (data.name, data.noise, data.longest, data.long_samples) == ("sst", 0.3, 30, "refuse")
    assert named("recipe:classify-sst-phrases", spec).data.form == "sentences"


def test_a_run_that_was_begun_goes_on_and_is_scored_whatever_its_keys(tmp_path):
    out = tmp_path / "run"
    run.train(recipes.resolve("gpt-text", FEW), out, False, CPU)
    said = yaml.safe_load((out / "run.yaml").read_text())
    said["data"]["near"] = 3
    (out / "run.yaml").write_text(yaml.safe_dump(said))
    assert prepare(begun_spec(out / "run.yaml"), CPU, out).task.name == "continuation"
    _, task = run.trained(out)
    assert len(run.samples(out, task, ["data.stride=9"], "test"))
    with pytest.raises(Refusal, match=r"unknown key 'data\.negatives'"):
        run.samples(out, task, ["data.negatives=3"], "test")
