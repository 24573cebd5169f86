"""`heedful.testing.check` passes what obeys, and tells what breaks a law, in one sentence that names the law."""

import random
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import pytest
import torch
import yaml

from heedful.attention import Bias, Mask
from heedful.attention.card import Card
from heedful.attention.masks.sparse import Window
from heedful.attention.mechanisms import Softmax
from heedful.data.readers.vector_sets import Clouds
from heedful.errors import Refusal
from heedful.formats.hf.gpt import GPT2
from heedful.metrics.accuracy import Accuracy
from heedful.models import FAMILIES, part_tables
from heedful.models.sets.predictor import FAMILY, Predictor, PredictorSpec
from heedful.objectives.classification import Classification
from heedful.objectives.objective import Loss
from heedful.tasks import TASKS
from heedful.tasks.sets.set_classification import TASK as SETS
from heedful.testing import BrokenLaw, check
from heedful.training.spec import recipes

CARD = Card("A paper of nobody's (Nobody, 2030)", 2030, "T^2")
ELSEWHERE = {  # tasks of which a law is not true, or that cannot be asked so, and why; tests/tasks has them
    "masked-image-modelling": "a trained model teaches it",
    "self-distillation": "its loss compares the samples of a batch",
    "image-tokenizer": "its loss compares the samples of a batch",
    "masked-autoencoding": "what it hides is drawn by the place of a sample among others",
}
BY_RECIPE = ("classify-several", "word2vec", "glove")  # the toys of recipes, for samples with columns or words
FEW = ["data=toy", "data.samples=60", "data.held_out=24"]


@pytest.mark.parametrize("name", [name for name in TASKS if name not in ELSEWHERE])
def test_the_tasks_of_the_house_obey(name):
    check(TASKS[name], samples=recipes.resolve(name, FEW).data if name in BY_RECIPE else None)


@pytest.mark.parametrize("name", ["linear", "reformer", "average"])
def test_mechanisms_of_the_house_obey_in_the_cases_that_they_do_not_refuse(name):
    check(part_tables.MECHANISMS[name])


@pytest.mark.parametrize(
    "part", [*part_tables.MASKS.values(), *filter(None, part_tables.BIASES.values())], ids=lambda part: part.__name__
)
def test_masks_and_biases_of_the_house_obey(part):
    check(part)


@pytest.mark.parametrize("family", ["predictor", "gpt", "vit"])
def test_families_of_the_house_obey(family):
    check(FAMILIES[family])


def test_readers_metrics_objectives_formats_and_recipes_of_the_house_obey():
    check(Clouds, on="sets")
    check(Accuracy, on="sets")
    check(Classification, on="sets")
    check(GPT2())
    check("sets")


class Nameless(Softmax):
    """A mechanism without a card."""

    card = None


class Louder(Softmax):
    """Its forward is not what its weights say."""

    def forward(self, q, k, v, sight):
        return 1.001 * super().forward(q, k, v, sight)


class Ahead(Softmax):
    """It sees what is hidden, by its definition too."""

    def scores(self, q, k):
        return super().scores(q, k)

    def weights(self, q, k, sight):
        return super().scores(q, k.repeat_interleave(q.shape[1] // k.shape[1], 1)).softmax(-1)

    def forward(self, q, k, v, sight):
        return self.weights(q, k, sight) @ v.repeat_interleave(q.shape[1] // v.shape[1], 1)


class Sullen(Softmax):
    """It refuses and says nothing of a cure."""

    def forward(self, q, k, v, sight):
        if sight.bias is not None:
            raise Refusal("sullen will not")
        return super().forward(q, k, v, sight)


class Acausal(Softmax):
    """Its card says of it what is not so."""

    card = replace(CARD, causal=False)


class Crowd(Mask):
    """A row sees as far as the last row that is asked about."""

    card = CARD

    def sees(self, b, h, i, j):
        return j <= i.max()


class Numbers(Mask):
    """It says numbers."""

    card = CARD

    def sees(self, b, h, i, j):
        return (i >= j).float()


class Nearer(Window):
    """It says that less is near than it sees."""

    def near(self, rows, length):
        return rows


class Relative(Bias):
    """What it adds depends on all that it is asked about."""

    def adds(self, b, h, i, j):
        return (i - j) / j.max().clamp_min(1)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Nameless, "has no card"),
        (Louder, r"forward\(q, k, v, sight\) == weights\(q, k, sight\) @ v"),
        (Ahead, "hidden keys weigh nothing and have no gradient"),
        (Sullen, "a refusal names the cure"),
        (Acausal, "a card says whether a mechanism can hide the future"),
        (Crowd, "it says of a pair what it says of that pair among all"),
        (Numbers, "no booleans"),
        (Nearer, "what helps speed alone is true"),
        (Relative, "it says of a pair what it says of that pair among all"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_attention_that_breaks_a_law_is_told_which(part, said):
    with pytest.raises(BrokenLaw, match=said) as broken:
        check(part)
    assert str(broken.value).startswith(part.__name__) and "\n" not in str(broken.value)


class MutteringSpec(PredictorSpec):
    """The spec of a family of one's own."""

    family: Literal["muttering"] = "muttering"


class Muttering(Predictor):
    """It reads padding as if it were there."""

    def forward(self, x, lengths=None):
        return super().forward(x, torch.full_like(self.lengths(x), x.shape[1]))


class Deaf(Predictor):
    """It takes a key and ignores it."""

    def __init__(self, spec):
        super().__init__(spec.model_copy(update={"mechanism": "softmax", "bias": "none"}))
        self.spec = spec


@pytest.mark.parametrize(("model", "said"), [(Muttering, "padded == unpadded"), (Deaf, "is ignored")])
def test_a_family_that_breaks_a_law_is_told_which(model, said, monkeypatch):
    family = replace(FAMILY, spec=MutteringSpec, model=model)
    with pytest.raises(BrokenLaw, match="is not known as 'muttering'; register it"):
        check(family)
    monkeypatch.setattr(FAMILIES, "known", dict(FAMILIES.known))
    FAMILIES.register("muttering")(family)
    with pytest.raises(BrokenLaw, match=f"^muttering breaks a law: .*{said}"):
        check(family)


@dataclass
class Forgetful(Accuracy):
    """It counts what it saw last."""

    names: ClassVar[tuple[str, ...]] = ("forgetful",)

    def merge(self, other):
        self.right, self.count = other.right, other.count + 1

    def compute(self):
        return {"forgetful": super().compute()["accuracy"]}


@dataclass
class Misnamed(Accuracy):
    """It gives another score than it names."""

    names: ClassVar[tuple[str, ...]] = ("right",)


@dataclass(frozen=True)
class Mean(Classification):
    """It gives the mean of a batch for its sum."""

    def losses(self, model, batch, learned):
        (loss,) = super().losses(model, batch, learned).values()
        return {"loss": Loss(loss.sum / loss.count, loss.count)}


@dataclass(frozen=True)
class Whim(Classification):
    """How many samples it counts depends on the weights."""

    def losses(self, model, batch, learned):
        (loss,) = super().losses(model, batch, learned).values()
        sure = model(*(batch[name] for name in self.reads)).abs().amax(1)
        return {"loss": Loss(loss.sum, (sure > sure.mean() + 0 * next(model.parameters()).mean()).sum() + 1)}


@dataclass(frozen=True)
class Unnamed(Classification):
    """It gives a loss of another name."""

    def losses(self, model, batch, learned):
        return {"other": super().losses(model, batch, learned)["loss"]}


class Restless(Clouds):
    """Its samples are others whenever it is read."""

    def read(self, seed):
        return super().read(random.randrange(10**6))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Forgetful, "what two processes have seen merges to what one has seen of all"),
        (Misnamed, r"names \('right',\) and gives"),
        (Mean, "the losses of a batch are those of its samples, summed"),
        (Whim, "counts"),
        (Unnamed, r"it names \('loss',\) and gives \('other',\)"),
        (Restless, "one seed gives the same samples"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_part_of_a_task_that_breaks_a_law_is_told_which(part, said):
    with pytest.raises(BrokenLaw, match=said):
        check(part, on="sets")


def test_a_task_that_breaks_a_law_is_told_which():
    with pytest.raises(BrokenLaw, match="task 'sets' breaks a law: the score to choose by is one of its scores"):
        check(replace(SETS, watch="beauty"))
    with pytest.raises(BrokenLaw, match=r"makes no data on the fly; give some to check\(task, samples="):
        check(replace(SETS, readers={"files": SETS.readers["files"]}))
    check(SETS, samples=[([[at, side]], str(side)) for at in range(40) for side in (0, 1)])


class Lossy(GPT2):
    """It writes less of a matrix than there is."""

    def table(self, spec):
        return super().table(spec)[1:]


def test_a_format_that_breaks_a_law_is_told_which(monkeypatch):
    with pytest.raises(BrokenLaw, match="Lossy is not known as 'gpt2'; register it"):
        check(Lossy)
    from heedful.formats.layout_registry import LAYOUTS

    monkeypatch.setitem(LAYOUTS.known, "gpt2", Lossy())
    with pytest.raises(BrokenLaw, match="Lossy breaks a law: names and tensors are a bijection"):
        check(Lossy)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"expected": None}, "it states no score"),
        ({"expected": {"score": {"beauty": 1.0}, "seconds": 1.0, "where": "here"}}, "does not state accuracy"),
        ({"task": "nonsense"}, "unknown task 'nonsense'"),
    ],
)
def test_a_recipe_that_breaks_a_law_is_told_which(changes, said, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(recipes.values("sets") | changes), encoding="utf-8")
    with pytest.raises(BrokenLaw, match=said):
        check(str(path))


def test_what_has_no_laws_is_refused():
    with pytest.raises(Refusal, match="3 is no part that has laws"):
        check(3)
    with pytest.raises(Refusal, match="int is no part that has laws"):
        check(int)
    with pytest.raises(Refusal, match=r"Accuracy is measured on a task; name one: check\(Accuracy, on='sets'\)"):
        check(Accuracy)
