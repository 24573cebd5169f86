"""BERT, RoBERTa, CamemBERT, DistilBERT and ALBERT: the numbers of transformers, from its folders and back."""

import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import heedful
from heedful.blocks import PostNormBlock
from heedful.formats.layout_registry import LAYOUTS
from heedful.formats.name_rules import rules_of
from heedful.formats.weights import state

CLOSE = {"rtol": 0.0, "atol": 1e-5}
STEMS = {"bert": "Bert", "roberta": "Roberta", "camembert": "Camembert", "distilbert": "DistilBert", "albert": "Albert"}
ENDS = ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]
VOCAB = 23
FAMILIES = pytest.mark.parametrize("family", STEMS)


def config(family: str, **said: Any) -> Any:
    """A config of transformers', told in the words of BERT's."""
    import transformers

    if family == "distilbert":
        other = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}
        other |= {"intermediate_size": "hidden_dim", "hidden_act": "activation"}
        said = {other.get(key, key): value for key, value in said.items() if key not in ("type_vocab_size",)}
        said = {key: value for key, value in said.items() if key != "layer_norm_eps"}
    if family != "albert":
        said = {key: value for key, value in said.items() if key not in ALBERT}
    return getattr(transformers, f"{STEMS[family]}Config")(vocab_size=VOCAB, initializer_range=0.2, **said)


ALBERT = ("embedding_size", "num_hidden_groups", "inner_group_num")


def made(family: str, end: str, said: Any) -> nn.Module:
    import transformers

    torch.manual_seed(0)
    model = getattr(transformers, STEMS[family] + end)(said).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # norms and biases too
            parameter += 0.1 * torch.randn(parameter.shape)
    return model


@st.composite
def numbers(draw: Any) -> dict[str, Any]:
    heads, depth = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return {
        "num_attention_heads": heads,
        "hidden_size": heads * draw(st.sampled_from([2, 5, 8])),
        "num_hidden_layers": depth,
        "intermediate_size": draw(st.integers(1, 20)),
        "hidden_act": draw(st.sampled_from(["gelu", "gelu_new", "relu"])),
        "max_position_embeddings": draw(st.integers(8, 12)),
        "type_vocab_size": draw(st.integers(1, 3)),
        "layer_norm_eps": draw(st.sampled_from([1e-12, 1e-5])),
        "num_labels": draw(st.integers(1, 4)),
        "embedding_size": draw(st.integers(2, 7)),
        "num_hidden_groups": draw(st.integers(1, depth)),
        "inner_group_num": draw(st.integers(1, 2)),
    }


def batch(family: str, spec: Any, length: int, side: str) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
    """What ours and theirs are given: a whole row, and one that is padded on a side; and which tokens are none."""
    coins = torch.Generator().manual_seed(length)
    tokens = torch.randint(4, VOCAB, (2, length), generator=coins)
    there = torch.ones_like(tokens, dtype=torch.bool)
    if side == "right":
        there[1, length // 2 :] = False
    if side == "left":
        there[1, : length - length // 2] = False
    tokens[~there] = spec.pad
    places = (there.cumsum(-1) - 1).clamp(min=0) + (spec.pad + 1 if family in ("roberta", "camembert") else 0)
    ours, theirs = {"tokens": tokens}, {"input_ids": tokens, "attention_mask": there.long(), "position_ids": places}
    if spec.segments > 1:
        ours["segments"] = theirs["token_type_ids"] = torch.arange(length).expand(2, -1) * spec.segments // length
    return ours, theirs, there


def layers(model: nn.Module, given: dict[str, Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The answer of ours, and its states before the first layer and after each."""
    seen: list[Tensor] = []
    steps = [model.inputs, *(part for part in model.modules() if isinstance(part, PostNormBlock))]
    hooks = [step.register_forward_hook(lambda part, given, states: seen.append(states)) for step in steps]
    answer = model(**given)
    for hook in hooks:
        hook.remove()
    return answer, seen


def answer_of(said: Any) -> Tensor:
    """The answer of theirs, as ours gives it."""
    if "start_logits" in said:
        return torch.stack((said.start_logits, said.end_logits), -1)
    return said.logits if "logits" in said else said.last_hidden_state


def same_gradients(ours: nn.Module, theirs: nn.Module, one: Tensor, two: Tensor) -> None:
    along = torch.randn(one.shape, generator=torch.Generator().manual_seed(1))
    (one * along).sum().backward()
    (two * along).sum().backward()
    layout = LAYOUTS[ours.spec.family]
    parameters = dict(theirs.named_parameters(remove_duplicate=False))
    there = {said: parameters[name].grad for name, said in layout.named(parameters).items()}
    named = dict(ours.named_parameters())
    for name, rule in rules_of(state(ours), layout.table(ours.spec)).items():
        if named[name].grad is None:  # a pooler that was not asked
            assert name.startswith("outputs.pooler") and all(there[other] is None for other in rule.names)
            continue
        wanted = rule.read([there[other] for other in rule.names])
        scale = max(1.0, float(wanted.abs().max()))
        torch.testing.assert_close(
            named[name].grad, wanted, rtol=0.0, atol=1e-5 * scale, msg=lambda m, n=name: f"{n}: {m}"
        )


@FAMILIES
@settings(max_examples=6, deadline=None, derandomize=True)
@given(said=numbers(), end=st.sampled_from(ENDS), side=st.sampled_from(["none", "left", "right"]), short=st.booleans())
def test_states_answers_and_gradients_are_those_of_transformers(tmp_path_factory, family, said, end, side, short):
    if end == "ForQuestionAnswering":
        said["num_labels"] = 2
    folder = tmp_path_factory.mktemp(family)
    theirs = made(family, end, config(family, **said))
    theirs.save_pretrained(folder / "theirs")
    ours = heedful.load(folder / "theirs")
    given, told, there = batch(family, ours.spec, 5 if short else ours.spec.length, side)
    one, states = layers(ours, given)
    two = theirs(**told, output_hidden_states=True)
    assert len(states) == len(two.hidden_states)
    for mine, other in zip(states, two.hidden_states, strict=True):
        torch.testing.assert_close(mine[there], other[there], **CLOSE)
    # theirs takes the first token of a row that is padded on the left for its begin
    kept = there if one.dim() == 3 else torch.tensor([True, side != "left"])
    torch.testing.assert_close(one[kept], answer_of(two)[kept], **CLOSE)
    same_gradients(ours, theirs, one[kept], answer_of(two)[kept])
    heedful.save(ours, folder / "ours", layout="hf")
    again = type(theirs).from_pretrained(folder / "ours").eval()
    assert torch.equal(answer_of(again(**told)), answer_of(theirs(**told)))


@FAMILIES
def test_the_pooler_is_read_and_written(family, tmp_path):
    theirs = made(family, "Model", config(family, **SMALL))
    theirs.save_pretrained(tmp_path / "theirs")
    ours = heedful.load(tmp_path / "theirs")
    if family == "distilbert":
        assert ours.spec.output == "states"
        return
    given, told, _ = batch(family, ours.spec, 6, "right")
    pooled = ours.outputs.pooler(ours(**given), ours.positions(given["tokens"]))
    torch.testing.assert_close(pooled, theirs(**told).pooler_output, **CLOSE)
    heedful.save(ours, tmp_path / "ours", layout="hf")
    again = type(theirs).from_pretrained(tmp_path / "ours").eval()
    assert torch.equal(again(**told).pooler_output, theirs(**told).pooler_output)


SMALL = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 9}
SMALL |= {"max_position_embeddings": 12, "embedding_size": 5}


@FAMILIES
def test_names_of_classes_go_both_ways(family, tmp_path):
    names = {0: "good", 1: "bad", 2: "neither"}
    for end in ("ForSequenceClassification", "ForTokenClassification"):
        theirs = made(family, end, config(family, **SMALL, id2label=names, label2id={n: at for at, n in names.items()}))
        theirs.save_pretrained(tmp_path / end)
        ours = heedful.load(tmp_path / end)
        assert ours.spec.labels == ["good", "bad", "neither"] and ours.spec.classes == 3
        heedful.save(ours, tmp_path / f"{end} of ours", layout="hf")
        assert type(theirs).from_pretrained(tmp_path / f"{end} of ours").config.id2label == names


@FAMILIES
@pytest.mark.parametrize("end", ENDS)
def test_one_that_was_made_here_is_read_by_transformers(family, end, tmp_path):
    import transformers

    torch.manual_seed(0)
    word = {"Model": "states"} | dict(zip(ENDS[1:], ["masked", "classes", "tags", "answer"], strict=True))
    small = {"vocab": VOCAB, "width": 12, "heads": 3, "hidden": 10, "depth": 2, "length": 8, "output": word[end]}
    ours = heedful.build(family, **small, classes=3 if word[end] in ("classes", "tags") else None).eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    heedful.save(ours, tmp_path / "ours", layout="hf")
    theirs = getattr(transformers, STEMS[family] + end).from_pretrained(tmp_path / "ours").eval()
    given, told, there = batch(family, ours.spec, 7, "right")
    one, two = ours(**given), answer_of(theirs(**told))
    kept = there if one.dim() == 3 else slice(None)
    torch.testing.assert_close(one[kept], two[kept], **CLOSE)


def test_groups_of_blocks_are_used_in_the_order_of_transformers(tmp_path):
    said = {**SMALL, "num_hidden_layers": 5, "num_hidden_groups": 2}
    theirs = made("albert", "Model", config("albert", **said))
    theirs.save_pretrained(tmp_path)
    ours = heedful.load(tmp_path)
    given, told, there = batch("albert", ours.spec, 6, "right")
    torch.testing.assert_close(ours(**given)[there], theirs(**told).last_hidden_state[there], **CLOSE)


@FAMILIES
@pytest.mark.parametrize("output", ["classes", "tags"])
def test_padding_on_either_side_changes_no_answer(family, output):
    torch.manual_seed(0)
    small = {"vocab": VOCAB, "width": 12, "heads": 2, "depth": 2, "length": 8, "output": output, "classes": 3}
    model = heedful.build(family, **small).eval()
    tokens = torch.randint(4, VOCAB, (1, 5))
    alone, pad = model(tokens), torch.full((1, 3), model.spec.pad)
    left, right = model(torch.cat((pad, tokens), 1)), model(torch.cat((tokens, pad), 1))
    both = (left, right) if output == "classes" else (left[:, 3:], right[:, :5])
    for padded in both:
        torch.testing.assert_close(padded, alone, **CLOSE)


def test_what_older_files_hold_and_how_they_name_it_is_read(tmp_path):
    theirs = made("bert", "ForPreTraining", config("bert", **SMALL))
    theirs.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    older = {"Norm.weight": "Norm.gamma", "Norm.bias": "Norm.beta"}
    old = {}
    for name, tensor in tensors.items():
        for new, was in older.items():
            name = name.replace(new, was)
        old[name] = tensor
    old["bert.embeddings.position_ids"] = torch.arange(12)[None]
    old["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
    save_file(old, tmp_path / "model.safetensors")
    with pytest.warns(UserWarning, match=r"bert.pooler.dense and cls.seq_relationship are left out: 'masked' is asked"):
        ours = heedful.load(tmp_path)
    given, told, there = batch("bert", ours.spec, 6, "right")
    torch.testing.assert_close(ours(**given)[there], theirs(**told).prediction_logits[there], **CLOSE)


def test_tokens_are_padding_by_their_id_unless_positions_say_otherwise(tmp_path):
    theirs = made("bert", "Model", config("bert", **SMALL))
    theirs.save_pretrained(tmp_path)
    ours = heedful.load(tmp_path)
    tokens = torch.tensor([[5, 0, 7, 8]])
    whole = theirs(tokens).last_hidden_state
    torch.testing.assert_close(ours(tokens, positions=torch.arange(4)[None]), whole, **CLOSE)
    assert not torch.allclose(ours(tokens), whole, atol=1e-3)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"architectures": ["BertForMultipleChoice"]}, "architectures is .*; known: BertModel, BertForMaskedLM"),
        ({"position_embedding_type": "relative_key"}, "only absolute is supported"),
        ({"is_decoder": True}, "is_decoder is 'True', which is not supported"),
        ({"id2label": {"0": "a", "2": "b"}, "architectures": ["BertForTokenClassification"]}, "name the classes 0, 1"),
        ({"hidden_act": "quick_gelu"}, "known: gelu_new"),
    ],
)
def test_a_config_that_cannot_be_met_is_refused(tmp_path, said, line):
    made("bert", "Model", config("bert", **SMALL)).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | said))
    with pytest.raises(heedful.errors.Refusal, match=line):
        heedful.load(tmp_path)
