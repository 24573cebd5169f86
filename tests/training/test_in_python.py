"""Training from Python: samples in memory, records and models of one's own, callbacks, and a plain torch loop."""

import dataclasses
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

import heedful
from heedful.data.readers.in_memory import in_memory
from heedful.data.splits import Splits
from heedful.decoding import Decoding
from heedful.errors import Refusal
from heedful.models.specs import Special
from heedful.models.writer import LanguageModel, Writer
from heedful.objectives.objective import combine, primary
from heedful.tasks import TASKS
from heedful.tasks.sets.set_classification import TASK as SETS
from heedful.training.callbacks import Callback

FEW = ["training.steps=30", "training.batch=16", "training.evaluate_every=30", "training.log_every=10"]
DICE = random.Random(1)
TEXTS = [(f"{a} {b} film {at}", a) for at in range(40) for a in ("good", "bad") for b in ("old", "new")]
SETS_HERE = [([[DICE.random(), k] for _ in range(3 + at % 3)], str(k)) for at in range(60) for k in (0, 1)]


class Lines(Dataset):
    """A torch Dataset, which has a length and places and no iterator."""

    def __len__(self):
        return len(TEXTS)

    def __getitem__(self, at):
        if not 0 <= at < len(TEXTS):
            raise AssertionError(at)
        return TEXTS[at]


@pytest.mark.parametrize("samples", [TEXTS, Lines()], ids=["a list", "a torch Dataset"])
def test_a_recipe_learns_of_samples_that_lie_in_memory(samples, tmp_path):
    small = {"family": "bert", "width": 16, "heads": 2, "depth": 1, "length": 16}
    run = heedful.train("classify", samples, model=small, keys=[*FEW, "training.rate=0.01"], out=tmp_path / "run")
    assert run.scores["accuracy"] == run.evaluate(TEXTS[:10])["accuracy"] == 1.0
    assert [one.name for one in run.predict("good old film 3", "bad new film 99")] == ["good", "bad"]
    assert (tmp_path / "run" / "report.html").exists() and run.look("good old film 3").maps
    assert heedful.load(tmp_path / "run").spec.width == 16


def test_callbacks_hear_of_a_run_from_its_beginning_to_its_end():
    class Heard(Callback):
        said: list[tuple] = []  # noqa: RUF012

        def on_begin(self, run):
            self.said.append(("begin", run["task"]))

        def on_log(self, step, values):
            self.said.append(("log", step, *values))

        def on_evaluate(self, step, split, scores):
            self.said.append((split, step, *scores))

        def on_end(self, result):
            self.said.append(("end", result["step"]))

    heedful.train("sets", SETS_HERE, keys=FEW, callbacks=[Heard()])
    logged = [("log", step, "loss", "rate", "samples_a_second") for step in (10, 20, 30)]
    scored = [(split, 30, "accuracy") for split in ("valid", "test")]
    assert Heard.said == [("begin", "sets"), *logged, *scored, ("end", 30)]


class Mean(torch.nn.Module):
    """A model of one's own, which knows nothing of heedful: classes of the mean of a set."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))

    def forward(self, vectors, lengths):
        return self.layers(vectors.sum(1) / lengths[:, None])


def test_a_module_and_a_record_of_ones_own_are_trained_scored_and_asked(tmp_path):
    sharper = dataclasses.replace(SETS, name="my sets", objective=dataclasses.replace(SETS.objective, smoothing=0.1))
    keys = [*FEW, "training.rate=0.05"]
    run = heedful.train(sharper, SETS_HERE, model=Mean(), keys=keys, out=tmp_path / "run")
    assert run.scores["accuracy"] == 1.0 and type(run.model) is Mean
    assert run.predict("0.5,1; 0.2,1")[0].name == "1"
    small = {"width": 16, "heads": 2, "depth": 1, "family": "predictor", "position": "none"}
    kept = heedful.train(sharper, SETS_HERE, model=small, keys=keys)
    typed = kept.predict("0.5,1; 0.2,1", [[0.5, 1], [0.2, 1]], torch.tensor([[0.5, 1], [0.2, 1]]))
    assert kept.task.task is sharper and typed[0] == typed[1] == typed[2]
    with pytest.raises(Refusal, match=r"a model of one.s own is taken as it is; leave model\.width=3 out"):
        heedful.train("sets", SETS_HERE, model=Mean(), keys=[*FEW, "model.width=3"])


def test_a_run_in_python_goes_on_to_the_same_bits(tmp_path):
    def train(out, **more):
        return heedful.train("sets", SETS_HERE, keys=[*FEW, "training.save_every=10"], out=tmp_path / out, **more)

    class Enough(Callback):
        def on_log(self, step, values):
            if step == 20:
                raise KeyboardInterrupt

    whole = train("whole")
    with pytest.raises(KeyboardInterrupt):
        train("cut", callbacks=[Enough()])
    again = train("cut", resume=True)
    for one, two in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(one, two)


def test_samples_may_be_split_already_and_too_few_are_refused():
    run = heedful.train("sets", Splits(SETS_HERE[:80], SETS_HERE[80:100], SETS_HERE[100:]), keys=FEW)
    assert run.scores["accuracy"] > 0.5
    with pytest.raises(Refusal, match="what lies in memory has 3 samples"):
        heedful.train("sets", SETS_HERE[:3], keys=FEW)


class Brightness(torch.nn.Module):
    """Classes of images by how bright they are."""

    def __init__(self):
        super().__init__()
        self.outputs = torch.nn.Linear(1, 2)

    def forward(self, images):
        return self.outputs(8 * (images.mean((1, 2, 3))[:, None] - 0.5))


def picture(at, side=8):
    return (np.random.default_rng(at).integers(0, 128, (side, side, 3)) + 127 * (at % 2)).astype(np.uint8)


KINDS_OF_IMAGES = {
    "arrays": lambda at: (picture(at), at % 2),
    "tensors": lambda at: (torch.from_numpy(picture(at)).permute(2, 0, 1).float() / 255, torch.tensor(at % 2)),
    "images of unlike sizes": lambda at: (Image.fromarray(picture(at, 8 + at % 3)), str(at % 2)),
}


@pytest.mark.parametrize("kind", KINDS_OF_IMAGES)
def test_images_that_lie_in_memory_are_learned_of(kind):
    samples = [KINDS_OF_IMAGES[kind](at) for at in range(60)]
    keys = [*FEW, "training.rate=0.1", "training.warmup=0"]
    run = heedful.train("image-classification", samples, model=Brightness(), keys=keys)
    assert run.scores["accuracy"] == run.evaluate(samples[:8])["accuracy"] == 1.0
    assert [one.name for one in run.predict(samples[0][0], samples[1][0])] == ["0", "1"]
    assert run.task.learned.size == (3, 8, 8)


@pytest.mark.parametrize(
    ("task", "given"),
    [
        ("chat", {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}),
        ("chat", [("hi", "ho")]),
        ("answer", ("who sat?", "the cat sat", "cat")),
        ("answer", ("who sat?", "the cat sat", [("cat", 4)])),
        ("classify", ("so good", 1)),
        ("sets", ([[0.5, 1.0]], torch.tensor(1))),
        ("tag", (["a", "cat"], ["O", np.int64(1)])),
    ],
)
def test_a_sample_in_memory_is_as_one_of_a_file(task, given):
    one = in_memory(TASKS[task].reader("files"), Splits([given], [], []), {}).read(1).train[0]
    said = {"chat": ("turns", (("hi", "ho"),)), "answer": ("answers", (("cat", 4),)), "tag": ("tags", ("O", "1"))}
    name, wanted = said.get(task, ("label", "1"))
    assert getattr(one, name) == wanted


@pytest.mark.parametrize(
    ("task", "given", "said"),
    [
        ("chat", ["hi", "ho"], "a turn is what is said and what is answered"),
        ("chat", [{"role": "user", "content": "hi"}], "the last message has no answer"),
        ("answer", ("who sat?", "the cat sat", "dog"), "'dog' does not stand in the text"),
        ("classify", (3, "a"), "3 is no text"),
        ("classify", ("a", None), "None is no label"),
        ("tag", (["a", "cat"], ["O"]), "TaggedWords"),
        ("pairs", (1, 2), "1 is no text"),
        ("language-modelling", 7, "7 is no text"),
        ("image-classification", (3, "a"), "image 0 of those in memory cannot be read: its type is int; give an array"),
    ],
)
def test_a_sample_in_memory_that_is_no_sample_is_refused(task, given, said):
    with pytest.raises(Refusal, match=said):
        in_memory(TASKS[task].reader("files"), Splits([given], [], []), {})


def test_a_recipe_in_a_file_is_trained_from_python_too(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "{task: sets, data: {name: clouds, samples: 60, held_out: 16}, model: {family: predictor, width: 8, heads: 2}}"
    )
    run = heedful.train(str(tmp_path / "mine.yaml"), SETS_HERE, keys=[*FEW, "model.position=none"])
    assert run.task.name == "sets" and run.model.spec.width == 8


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"samples": iter(SETS_HERE)}, "samples are a list_iterator, which has no length; give a list"),
        ({"samples": [3] * 50}, "a sample in memory is not as VectorSets gives them"),
        ({"samples": SETS_HERE, "callbacks": [print]}, "is not a callback; give an object of a class made from"),
    ],
)
def test_what_cannot_be_learned_from_in_python_is_refused(given, said):
    with pytest.raises(Refusal, match=said):
        heedful.train("sets", keys=FEW, **given)


def test_nothing_changes_a_task_after_it_is_made():
    pairs = [(f"a {at}", f"{at} a") for at in range(60)]
    kind = TASKS["translation"].reader("files")
    work, splits = TASKS["translation"].open(in_memory(kind, pairs, {"bleu": "char"}), 1)
    learned, other = work.learned, in_memory(kind, Splits([], [], pairs), {})
    assert len(work.reopen(other, 1).test) == 60 and work.judging(other).learned.bleu == "char"
    assert work.judging(in_memory(kind, Splits([], [], pairs), {"bleu": "intl"})).learned.bleu == "intl"
    chosen = work.configured({"smoothing": 0.1}, splits)
    assert chosen.objective.smoothing == 0.1 and work.objective is TASKS["translation"].objective
    assert work.searched_by(Decoding(beams=3)).decoding.beams == 3 and work.decoding.beams == 1
    assert work.learned is learned and work.task is TASKS["translation"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        work.learned = None


def test_a_plain_torch_loop_over_the_parts_learns():
    task = TASKS["sets"]
    reader = task.reader("clouds")(name="clouds", samples=64, held_out=16, shortest=4, longest=9)
    work, splits = task.open(reader, 1)
    torch.manual_seed(0)
    model = heedful.build("predictor", width=16, heads=2, depth=1, **work.learned.facts())
    optimiser, first = torch.optim.AdamW(model.parameters(), 3e-3), None
    for _step in range(30):
        losses = task.objective.losses(model, task.collate.batch(splits.train, work.learned), work.learned)
        loss = combine(losses) / primary(losses).count
        loss.backward()
        first, last = first or loss.item(), loss.item()
        optimiser.step()
        optimiser.zero_grad()
    assert last < 0.9 * first
    assert set(work.score(model, splits.test)) == {"accuracy"}


class Recurrent(LanguageModel):
    """A language model of a user's own: a recurrent network that reads all that was written for every token."""

    special = Special(pad=0, begin=2, end=3)

    def __init__(self, vocab):
        super().__init__()
        self.spec = SimpleNamespace(vocab=vocab)
        self.table, self.cells = torch.nn.Embedding(vocab, 32), torch.nn.GRU(32, 32, batch_first=True)
        self.outputs = torch.nn.Linear(32, vocab)

    def read(self, tokens, memory=None, positions=None, documents=None):
        return self.cells(self.table(tokens))[0]

    def memory(self, beams=1):
        return None

    def forward(self, tokens, documents=None):
        return self.outputs(self.read(tokens, documents=documents))


class Silent(Writer):
    """It writes, and does not say what states it reads of a text."""


STORIES = [f"the {a} cat sat on the {b} mat and the {b} cat ran to the {a} mat" for a in "abcd" for b in "efgh"] * 4
WRITING = ["data.longest=32", *FEW, "training.rate=0.02"]


def test_a_language_model_of_ones_own_says_how_it_reads_and_learns_and_writes():
    vocab = heedful.train("language-modelling", STORIES, keys=[*WRITING, "training.steps=1"]).model.spec.vocab
    run = heedful.train("language-modelling", STORIES, model=Recurrent(vocab), keys=WRITING)
    assert run.scores["perplexity"] < 7 and run.predict("the a cat")[0].plain()


def test_a_model_that_does_not_say_how_it_reads_texts_is_refused_by_the_name_of_what_says_so():
    said = r"^Silent is no language model; derive it from heedful.models.writer.LanguageModel and give it `read\(tokens"
    with pytest.raises(Refusal, match=said):
        heedful.train("language-modelling", STORIES, model=Silent(), keys=WRITING)
