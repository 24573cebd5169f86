"""An encoder of any family docks to a decoder of any: found by name, trained, asked, kept and begun with."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import pytest
import torch
from torch import nn

import heedful
from heedful import models
from heedful.attention import Context, Memory, Padding
from heedful.decoding import Decoding, search
from heedful.errors import Refusal
from heedful.formats.weights import state
from heedful.models import FAMILIES
from heedful.models.cases import Cases
from heedful.models.encoder_protocol import Encoder
from heedful.models.family import Family
from heedful.models.specs import SPECIAL, Count, Spec
from heedful.models.writer import Decoder
from heedful.tasks.checks import checks
from heedful.training.prepare import prepare
from heedful.training.record import Record
from heedful.training.spec import recipes
from tests.training.runs import CPU, assert_same, contents, killed_at, short, train

IMAGE = {"channels": 3, "high": 16, "wide": 16}
ENCODERS = {
    "resnet": {**IMAGE, "width": 4, "depths": [1, 1], "stem": "small"},
    "vit": {**IMAGE, "patch": 4, "width": 24, "heads": 2},
    "convit": {**IMAGE, "patch": 4, "width": 8, "heads": 2, "local_up_to_layer": 1},
    "beit": {**IMAGE, "patch": 4, "width": 8, "heads": 2},
    "swin": {**IMAGE, "patch": 4, "width": 8, "heads": 2, "depths": [1, 1]},
    "bert": {"vocab": 13, "width": 16, "heads": 2},
    "albert": {"vocab": 13, "width": 16, "heads": 2, "embedding_size": 8},
    "transformer_encoder": {"vocab": 13, "width": 16, "heads": 2, "position": "rotary"},
    "test_recurrent_encoder": {"vocab": 13, "width": 8},
}
DECODERS = {
    "transformer_decoder": {"vocab": 11, "width": 24, "heads": 2, "depth": 1},
    "test_recurrent_decoder": {"vocab": 11, "width": 8},
}
DOCKED = [
    "model.family=composite",
    "model.encoder.family=transformer_encoder",
    "model.decoder.family=transformer_decoder",
]
KEYS = ["model.width=32", "model.family=swin"]
SMALL = ["data=toy", "data.samples=60", "data.held_out=12"]


class RecurrentEncoderSpec(Spec):
    """A recurrent encoder's keys: no heads, no position, no norm."""

    family: Literal["test_recurrent_encoder"] = "test_recurrent_encoder"
    vocab: Count
    width: Count = 8


class RecurrentEncoder(Encoder):
    """Reads tokens both ways by GRUs."""

    reads: ClassVar = frozenset({"source"})

    def __init__(self, spec):
        super().__init__()
        self.spec, self.inputs = spec, nn.Embedding(spec.vocab, spec.width)
        self.cells = nn.GRU(spec.width, spec.width // 2, batch_first=True, bidirectional=True)

    @property
    def width(self):
        return self.spec.width

    def encode(self, batch: Mapping[str, torch.Tensor]) -> Context:
        source = batch["source"]
        lengths = (source != 0).sum(-1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.inputs(source), lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(
            self.cells(packed)[0], batch_first=True, total_length=source.shape[1]
        )
        return Context(states, Padding(lengths))


class RecurrentDecoderSpec(Spec):
    """A recurrent decoder's keys."""

    family: Literal["test_recurrent_decoder"] = "test_recurrent_decoder"
    vocab: Count
    width: Count = 8


class State(Memory):
    """A hidden state, however long the past."""

    hidden: torch.Tensor | None = None

    def take(self, index):
        self.hidden = None if self.hidden is None else self.hidden[index]


class RecurrentDecoder(Decoder):
    """Writes by a GRU whose first state is the mean of what it looks at, and which sees that mean at every step."""

    special = SPECIAL

    def __init__(self, spec):
        super().__init__()
        self.spec, self.inputs = spec, nn.Embedding(spec.vocab, spec.width)
        self.cell, self.outputs = nn.GRUCell(2 * spec.width, spec.width), nn.Linear(spec.width, spec.vocab)

    @property
    def width(self):
        return self.spec.width

    def states(self, tokens, context, memory=None, positions=None):
        there = torch.arange(context.states.shape[1]) < context.mask.lengths[:, None]
        mean = (context.states * there[..., None]).sum(1) / there.sum(1, keepdim=True).clamp(min=1)
        hidden = mean if memory is None or memory.hidden is None else memory.hidden
        made = []
        for one in self.inputs(tokens).unbind(1):
            hidden = self.cell(torch.cat((one, mean), 1), hidden)
            made.append(hidden)
        if memory is not None:
            memory.hidden = hidden
        return torch.stack(made, 1)

    def memory(self, beams=1):
        return State()


class Tokens(Cases):
    def inputs(self, dtype):
        source = torch.randint(4, self.model.spec.vocab, (3, 7))
        source[1, 4:] = 0
        return (source,)


LAST = ("test_recurrent_encoder", "test_recurrent_decoder")
PAIRS = [*((one, "transformer_decoder") for one in ENCODERS), LAST]


@pytest.fixture(scope="module", autouse=True)
def registered():
    """The families of these tests are known in these tests alone."""
    FAMILIES.register("test_recurrent_encoder")(Family(RecurrentEncoderSpec, RecurrentEncoder, {"vocab": 11}, Tokens))
    FAMILIES.register("test_recurrent_decoder")(Family(RecurrentDecoderSpec, RecurrentDecoder, {"vocab": 11}, Tokens))
    yield
    del FAMILIES.known["test_recurrent_encoder"], FAMILIES.known["test_recurrent_decoder"]


def docked(encoder, decoder="transformer_decoder", **more):
    torch.manual_seed(0)
    return models.build(
        "composite",
        encoder={"family": encoder, **ENCODERS[encoder]},
        decoder={"family": decoder, **DECODERS[decoder], **more},
    )


@pytest.mark.parametrize(("encoder", "decoder"), PAIRS)
def test_the_laws_hold_whatever_is_docked_and_every_weight_learns(encoder, decoder):
    model = docked(encoder, decoder)
    assert isinstance(model.bridge, nn.Linear) == (model.encoder.width != model.decoder.width)
    assert [law.name for law in checks(model) if not law.holds] == []
    model.train()(*FAMILIES["composite"].cases(model).inputs(torch.float32)).sum().backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize(("encoder", "decoder"), [("resnet", "transformer_decoder"), LAST])
@pytest.mark.parametrize("how", [{}, {"beams": 3}, {"temperature": 1.2, "top_k": 4}])
def test_what_is_docked_writes_the_same_beside_others_and_alone(encoder, decoder, how):
    model = docked(encoder, decoder).double().eval()
    source, _ = FAMILIES["composite"].cases(model).inputs(torch.float64)
    (field,) = model.reads
    together = search(model, {field: source}, Decoding(max_new_tokens=6, **how), seed=1)
    for at, found in enumerate(together):
        alone = search(model, {field: source[at : at + 1]}, Decoding(max_new_tokens=6, **how), seed=1, numbers=[at])
        assert [one.tokens for one in found] == [one.tokens for one in alone[0]]


def test_a_nested_spec_reads_back_whole(tmp_path):
    model = docked("resnet")
    heedful.save(model, tmp_path / "model")
    again = heedful.load(tmp_path / "model")
    assert again.spec == model.spec and again.spec.encoder.depths == [1, 1] and again.spec.decoder.heads == 2
    assert all(torch.equal(one, state(again)[name]) for name, one in state(model).items())
    assert model.spec.stacked == {"decoder.depth": 1}


def run(*keys):
    return recipes.resolve("reverse", [*SMALL, *DOCKED, *keys])


def test_dotted_keys_reach_the_parts_and_so_do_the_facts_of_the_data():
    spec = prepare(run("model.encoder.width=24", "model.decoder.depth=1", "model.encoder.heads=2"), CPU).model.spec
    assert (spec.encoder.width, spec.encoder.heads, spec.decoder.depth, spec.decoder.width) == (24, 2, 1, 128)
    assert spec.encoder.vocab == spec.decoder.vocab == spec.vocab > 30
    sized = models.spec(
        "composite",
        encoder={"family": "vit", "size": "tiny/16", **IMAGE},
        decoder={"family": "transformer_decoder", "vocab": 11},
    )
    assert (sized.encoder.width, sized.encoder.patch) == (192, 16)


def test_another_family_of_a_part_drops_what_was_said_of_the_one_before():
    base = {"family": "vit", "width": 96, "patch": 4}
    values = {"model": {"family": "composite", "encoder": dict(base), "decoder": dict(base)}}
    recipes.put(values, "model.encoder.family", "resnet")
    assert values["model"]["encoder"] == {"family": "resnet"} and values["model"]["decoder"] == base
    over = recipes.merge_values(values, {"model": {"decoder": {"family": "resnet", "width": 8}}})
    assert over["model"]["decoder"] == {"family": "resnet", "width": 8}
    one, two = (recipes.resolve("vit", keys).model for keys in (KEYS, KEYS[::-1]))  # in whatever order
    assert one == two and one["family"] == "swin" and one["width"] == 32 and "depth" not in one and "pool" not in one


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["model.encoder.heats=2"], r"unknown key 'model\.encoder\.heats'; did you mean 'model\.encoder\.heads'\?"),
        (["model.encoder.family=transformr"], r"unknown family 'transformr'; did you mean 'transformer'\?"),
        (["model.width=32"], r"composite has no model\.width, .* give model\.encoder\.width or model\.decoder\.width$"),
        (["model.encoder.family=gpt"], r"model\.encoder\.family=gpt is no encoder; choose one of albert, .*vit$"),
        (
            ["model.decoder.family=gpt"],
            r"decoder\.family=gpt is no decoder; choose one of .*transformer_decoder",
        ),
        (["model.encoder.family=dino", "model.encoder.channels=3"], r"model\.encoder\.family=dino is no encoder"),
        (["model.encoder.family=resnet"], r"model\.encoder\.channels is not given; add model\.encoder\.channels="),
        (
            ["model.encoder.family=resnet", "model.encoder.channels=3"],
            r"model\.family=composite cannot learn task 'pairs'",
        ),
        (["model.encoder.width=wide"], r"model\.encoder\.width=wide does not fit: it should be a whole number"),
        (["model.decoder.vocab=7"], r"model\.decoder\.vocab=7 contradicts the data, which say \d+; leave it out"),
        (["model.decoder.mechanism=softmaxx"], r"unknown mechanism 'softmaxx'; did you mean 'softmax'\?"),
        (["model.family=gpt"], r"model\.family=gpt cannot learn task 'pairs'; set model\.family=transformer"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_whole_key(keys, said):
    with pytest.raises(Refusal, match=said):
        prepare(run(*keys), CPU)


def test_a_recurrent_translator_from_outside_learns_and_goes_on_after_a_kill(tmp_path):
    words = {"model__family": "composite", "model__encoder__family": "test_recurrent_encoder"}
    spec = short("reverse", **words, model__decoder__family="test_recurrent_decoder", training__steps=9)
    train(spec, tmp_path / "whole")
    with killed_at(Record, "learned", 2):
        train(spec, tmp_path / "cut")
    train(spec, tmp_path / "cut", resume=True)
    assert_same(contents(tmp_path / "whole"), contents(tmp_path / "cut"))


def test_parts_begin_with_the_parts_of_other_models_or_say_why_they_cannot(tmp_path):
    sizes = {"vocab": 40, "width": 16, "heads": 2, "depth": 1, "length": 32}
    vocab = prepare(run(), CPU).model.spec.vocab
    whole = heedful.build("transformer", **sizes | {"vocab": vocab})
    heedful.save(whole, tmp_path / "transformer")
    wide = ["width=16", "heads=2", "depth=1", "length=32"]
    own = [f"model.{part}.{word}" for part in ("encoder", "decoder") for word in wide]
    begun = [f"start.{part}={tmp_path / 'transformer'}" for part in ("encoder", "decoder")]
    ready = prepare(run(*own, *begun), CPU)
    there = state(whole)
    assert torch.equal(ready.model.encoder.inputs.table.weight, there["inputs.table.weight"])
    for name, tensor in state(ready.model.decoder).items():
        assert torch.equal(tensor, there[name]), name
    assert "encoder: " in ready.start and "decoder: " in ready.start
    heedful.save(ready.model, tmp_path / "composite")
    again = prepare(run(*own, f"start.encoder={tmp_path / 'composite'}"), CPU)  # the part of a composite
    assert torch.equal(again.model.encoder.inputs.table.weight, there["inputs.table.weight"])
    assert not torch.equal(again.model.decoder.inputs.table.weight, there["inputs.table.weight"])
    shapes = rf"inputs\.table\.weight is \[{vocab}, 16\] there and \[{vocab}, 24\] here; set model\.encoder\.width=16"
    with pytest.raises(Refusal, match=rf"^start\.encoder=.*transformer: {shapes}, or leave it out$"):
        prepare(run(*own, "model.encoder.width=24", begun[0]), CPU)
    with pytest.raises(Refusal, match="gives a transformer or transformer_decoder or transformer_encoder"):
        prepare(run("model.encoder.family=bert", begun[0]), CPU)
    with pytest.raises(Refusal, match=r"no such part .* give start\.encoder or start\.decoder"):
        prepare(run(f"start.eye={tmp_path / 'composite'}"), CPU)
    with pytest.raises(Refusal, match=r"start\.encoder cannot be set, for start is .*; leave one of them out"):
        prepare(run(f"start={tmp_path / 'composite'}", begun[0]), CPU)
    with pytest.raises(
        Refusal, match=r"^start\.encoder=.*: decoder\..* begins anew, and training\.freeze would leave it"
    ):
        prepare(run(*own, begun[0], "training.freeze=[decoder]"), CPU)
    with pytest.raises(Refusal, match=r"a part begins with a folder; train the recipe first"):
        prepare(run("start.encoder=recipe:reverse"), CPU)
    with pytest.raises(Refusal, match=r"no such part .* give start=FOLDER"):
        prepare(recipes.resolve("reverse", [*SMALL, begun[0]]), CPU)
