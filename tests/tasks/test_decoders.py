"""Decoders from elsewhere that learn classes: begun with a folder of transformers', asked, scored and written back."""

import json
from pathlib import Path

import pytest
import torch

import heedful
from heedful.data.formats.labelled_text import Sentence
from heedful.errors import Refusal
from heedful.formats import native
from heedful.models.text.gpt import ReadingGPT
from heedful.pipelines.encoder_text import output_of
from heedful.training import run
from heedful.training.prepare import prepare
from heedful.training.spec import recipes
from heedful.training.trained_run import load_trained, reopen_run, usable
from tests.answered import plain
from tests.tasks.encoders import folder
from tests.tasks.test_classify import CPU, ROWS, rows, spec

TEXTS = [line.split("\t")[0] for line in ROWS]


def gpt2(path: Path) -> Path:
    """A tiny GPT-2 as transformers writes it, with its tokenizer."""
    import tokenizers
    import transformers

    torch.manual_seed(0)
    words = tokenizers.Tokenizer(tokenizers.models.BPE())
    words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words.train_from_iterator(TEXTS, trainer)
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|endoftext|>").save_pretrained(path)
    numbers = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "bos_token_id": 0, "eos_token_id": 0}
    transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=300, **numbers)).save_pretrained(path)
    return path


def test_a_decoder_learns_classes_and_is_asked_scored_and_written(tmp_path: Path) -> None:
    import transformers

    start = gpt2(tmp_path / "gpt2")
    changes = ["training.steps=60", "training.batch=5", "training.rate=0.01", "training.warmup=5", "model.dropout=0.0"]
    result = run.train(spec(rows(tmp_path), f"start={start}", *changes), tmp_path / "run", False, CPU)
    model, task = load_trained(tmp_path / "run")
    assert isinstance(model, ReadingGPT) and model.spec.output == "classes" and model.spec.labels == ["no", "yes"]
    said = plain(task.predict(model, TEXTS))
    assert said == [line.split("\t")[1] for line in ROWS] and result["scores"]["accuracy"] == 1.0
    task, samples = reopen_run(tmp_path / "run", task, [], "test")
    assert task.score(model, samples)["accuracy"] == 1.0
    native.convert(tmp_path / "run", tmp_path / "hf", "hf")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "hf").eval()
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    for text, label in zip(TEXTS, said, strict=True):
        logits = theirs(**read(text, return_tensors="pt")).logits
        assert theirs.config.id2label[int(logits.argmax())] == label
    (tmp_path / "hf" / "task.json").unlink()
    again, use = usable(tmp_path / "hf")
    assert use.name == "classification" and plain(use.predict(again, TEXTS)) == said


def test_what_a_decoder_has_learned_is_taken_over_and_its_last_token_asked(tmp_path: Path) -> None:
    start = gpt2(tmp_path / "gpt2")
    ready = prepare(spec(rows(tmp_path), f"start={start}"), CPU)
    other = heedful.load(start)
    assert torch.equal(ready.model.inputs.table.weight, other.inputs.table.weight)
    assert torch.equal(ready.model.decoder.norm.weight, other.decoder.norm.weight)
    assert ready.start.endswith("anew: outputs.matrix.weight)")
    batch = ready.task.batch(ready.splits.train)
    ready.model.eval()
    wider = {name: torch.nn.functional.pad(one, (*(0, 3) * (one.dim() - 1), 0, 4)) for name, one in batch.items()}
    (one, count), (two, same) = (ready.task.loss(ready.model, given) for given in (batch, wider))
    torch.testing.assert_close(one, two)
    assert int(count) == int(same) == len(ROWS)


def test_a_task_that_writes_refuses_a_model_that_is_asked_for_a_class() -> None:
    changes = ["data=toy", "model.output=classes", "model.classes=2"]
    with pytest.raises(Refusal, match=r"language-modelling asks for model.output=next, and this model's is classes"):
        prepare(recipes.resolve("gpt-text", changes), CPU)


def test_where_several_classes_may_hold_each_is_told_with_its_chance(tmp_path: Path) -> None:
    place = folder(tmp_path / "bert", "classes", classes=3, labels=["a", "b", "c"], multi_label=True)
    assert json.loads((place / "config.json").read_text())["problem_type"] == "multi_label_classification"
    model, use = usable(place)
    (answer,) = plain(use.predict(model, ["the cat sat"]))
    (given,) = output_of(model, use.learned.join([Sentence(("the cat sat",), "")]))
    chances = [float(part.split()[1]) for part in answer.split("\t")]
    assert [part.split()[0] for part in answer.split("\t")] == ["a", "b", "c"]
    torch.testing.assert_close(torch.tensor(chances), given.sigmoid(), rtol=0.0, atol=1e-4)
    with pytest.raises(Refusal, match=r"model.multi_label=True: a model learns one class for each text here"):
        prepare(spec(rows(tmp_path), "model.multi_label=true"), CPU)
