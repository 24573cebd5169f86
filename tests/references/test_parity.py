"""Every class of transformers of which `load` reads a folder answers here with its numbers: a table that lacks none."""

import copy
import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.errors import Refusal
from heedful.formats.foreign_config import Config
from heedful.formats.layout_registry import LAYOUTS
from heedful.models import FAMILIES
from heedful.models.vision.image_spec import ImageSpec
from tests.formats.layouts import CONFIGS

CLOSE = {"rtol": 1e-5, "atol": 2e-5}
Pair = tuple[Tensor, Tensor]  # what ours says, and what theirs does
How = Callable[[nn.Module, Any], Pair]


def text(config: Any) -> tuple[Tensor, Tensor]:
    """Two rows, the second padded on the right, each with two tokens that end a text; and which are there."""
    tokens = torch.randint(6, 20, (2, 5), generator=torch.Generator().manual_seed(3))
    there = torch.arange(5) < torch.tensor([[5], [3]])
    ends = config.eos_token_id if isinstance(config.eos_token_id, int) else 2
    tokens[:, 0] = tokens[0, 4] = tokens[1, 2] = ends
    return tokens.masked_fill(~there, config.pad_token_id), there


def said(out: Any, own: Tensor) -> Tensor:
    """Their answer, of the same shape as ours."""
    if "start_logits" in out:
        return torch.stack((out.start_logits, out.end_logits), -1)
    names = ("logits", "prediction_logits", "pooler_output", "last_hidden_state")
    return next(out[name] for name in names if name in out and out[name].shape == own.shape)


def reads(own: nn.Module, theirs: Any) -> Pair:
    """A text, and what is asked of it: the next tokens, a class, tags, a span, what is hidden, states."""
    tokens, there = text(theirs.config)
    one, out = own(tokens), theirs(input_ids=tokens, attention_mask=there.long())
    two = said(out, one)
    return (one[there], two[there]) if one.dim() == 3 else (one, two)


def writes(own: nn.Module, theirs: Any) -> Pair:
    """A text and what is written of it so far: the next tokens."""
    (source, there), target = text(theirs.config), torch.tensor([[3, 4, 5], [6, 7, 8]])
    out = theirs(input_ids=source, attention_mask=there.long(), decoder_input_ids=target)
    return own(source, target), out.logits


def states(own: nn.Module, theirs: Any) -> Pair:
    """A folder without an output, of a model that writes: what ours reads the next token off."""
    kept: list[Tensor] = []
    own.outputs.register_forward_pre_hook(lambda part, given: kept.append(given[0]))  # type: ignore[union-attr]
    tokens, there = text(theirs.config)
    if not theirs.config.is_encoder_decoder:
        own(tokens)
        return kept[0][there], theirs(input_ids=tokens, attention_mask=there.long()).last_hidden_state[there]
    target = torch.tensor([[3, 4, 5], [6, 7, 8]])
    own(tokens, target)
    out = theirs(input_ids=tokens, attention_mask=there.long(), decoder_input_ids=target)
    return kept[0], out.last_hidden_state


def images(own: Any) -> Tensor:
    """Two images of the size that a model is for, or smaller."""
    high, wide = (min(side, 64) for side in (own.spec.high, own.spec.wide))
    return torch.randn(2, own.spec.channels, high, wide, generator=torch.Generator().manual_seed(1))


def sees(own: nn.Module, theirs: Any) -> Pair:
    """An image: its class, or what the pooled vector is."""
    one, out = own(images(own)), theirs(images(own))
    return one, out.logits if "logits" in out else out.pooler_output.flatten(1)


def first(own: nn.Module, theirs: Any) -> Pair:
    """An image: the vector of its class token."""
    return own(images(own)), theirs(images(own)).last_hidden_state[:, 0]


def rebuilds(own: Any, theirs: Any) -> Pair:
    """An image of which few patches are seen: every patch, pixel by pixel in the order of theirs."""
    x = images(own)
    cells, channels = (own.spec.high // 4) * (own.spec.wide // 4), own.spec.channels
    noise = torch.rand(2, cells, generator=torch.Generator().manual_seed(2))
    order = torch.arange(16 * channels).view(4, 4, channels).permute(2, 0, 1).flatten()
    seen = noise.argsort(1)[:, : int(cells * (1 - theirs.config.mask_ratio))]
    return own(x, seen), theirs(x, noise=noise).logits[..., order]


def guesses(own: Any, theirs: Any) -> Pair:
    """An image some of whose patches are hidden: their visual tokens."""
    x = images(own)
    hidden = torch.rand(2, (x.shape[2] // 4) * (x.shape[3] // 4), generator=torch.Generator().manual_seed(0)) < 0.6
    return own.guess(x, hidden), theirs(x, bool_masked_pos=hidden).logits


CHOOSES: dict[str, How] = {"ForSequenceClassification": reads, "ForTokenClassification": reads}
DECODER = {"Model": states, "ForCausalLM": reads, **CHOOSES}
ENCODER = {"Model": reads, "ForMaskedLM": reads, "ForQuestionAnswering": reads, **CHOOSES}
PRETRAINED = {**ENCODER, "ForPreTraining": reads}
WRITER = {"Model": states, "ForConditionalGeneration": writes}
BART = {**WRITER, "ForSequenceClassification": reads, "ForQuestionAnswering": reads}
IMAGE = {"Model": sees, "ForImageClassification": sees}
TABLE: dict[str, dict[str, How]] = {
    "gpt2": {"Model": states, "LMHeadModel": reads, "ForQuestionAnswering": reads, **CHOOSES},
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3"), DECODER),
    **dict.fromkeys(("roberta", "camembert", "distilbert"), ENCODER),
    **dict.fromkeys(("bert", "albert"), PRETRAINED),
    **{"t5": WRITER, "bart": BART, "mbart": BART, "pegasus": WRITER, "marian": {"Model": states, "MTModel": writes}},
    **{"vit": {**IMAGE, "Model": first}, "dinov2": IMAGE, "swin": IMAGE, "resnet": IMAGE},
    "deit": {**IMAGE, "Model": first, "ForImageClassificationWithTeacher": sees},
    "vit_mae": {"ForPreTraining": rebuilds},
    "beit": {**IMAGE, "ForMaskedImageModeling": guesses},
}
OWN = ("architectures", "id2label", "problem_type", "classifier_dropout")  # keys of a config that are of some classes
OWN += ("image_mean", "image_std")  # and those that nobody computes with there
FITTING: dict[str, dict[str, Any]] = {
    "ForQuestionAnswering": {"num_labels": 2},
    "BeitForMaskedImageModeling": {"use_mask_token": True},
    "ViTMAEForPreTraining": {"image_size": 16},
}


def classes(kind: str) -> dict[str, Any]:
    """The classes of transformers for a model_type, by what stands behind its name in theirs."""
    auto = import_module("transformers.models.auto.configuration_auto")
    name = auto.model_type_to_module_name(kind)
    module = import_module(f"transformers.models.{name}.modeling_{name}")
    config = auto.CONFIG_MAPPING[kind]
    stem = config.__name__.removesuffix("Config")
    base = import_module("transformers").PreTrainedModel
    own = {name.removeprefix(stem): one for name, one in vars(module).items() if name.startswith(stem)}
    return {
        end: one
        for end, one in own.items()
        if inspect.isclass(one) and issubclass(one, base) and not end.endswith("rainedModel")
    }


@pytest.mark.filterwarnings("ignore:.* are left out:UserWarning")
@pytest.mark.parametrize("kind", LAYOUTS)
def test_every_class_whose_folders_are_read_answers_as_transformers_does(kind: str, tmp_path: Path) -> None:
    read = set()
    for end, made in classes(kind).items():
        theirs = build(kind, made, CONFIGS[kind][0])
        if theirs is None:
            continue
        theirs.save_pretrained(tmp_path / end)
        try:
            own = heedful.load(tmp_path / end)
        except Refusal:
            continue
        read.add(end)
        assert end in TABLE[kind], f"load reads {made.__name__}, and nothing says how its numbers are compared"
        with torch.no_grad():
            one, two = TABLE[kind][end](own, theirs)
        torch.testing.assert_close(one, two, **CLOSE, msg=lambda said, end=end: f"{end}: {said}")
        assert two.std() > 0.01
    assert read == TABLE[kind].keys()


def build(kind: str, made: Any, numbers: dict[str, Any]) -> Any:
    """A model of theirs with random weights all of which matter; none where the class takes no config alone."""
    auto = import_module("transformers.models.auto.configuration_auto")
    kept = {key: value for key, value in numbers.items() if key not in OWN}
    kept |= {"tie_word_embeddings": True} if "vocab_size" in kept and made.__name__.endswith("Model") else {}
    more = next((one for end, one in FITTING.items() if made.__name__.endswith(end)), {"num_labels": 3})
    torch.manual_seed(0)
    try:
        theirs = made(auto.CONFIG_MAPPING[kind](**kept | more))
    except (TypeError, ValueError):
        return None
    with torch.no_grad():
        if made.__name__ == "ViTMAEForPreTraining":  # within a model it leaves its tables of sines at zero
            alone = type(theirs.vit.embeddings)(theirs.config)
            alone.initialize_weights()
            theirs.vit.embeddings.position_embeddings.copy_(alone.position_embeddings)
            theirs.decoder.initialize_weights(16)
        for tensor in theirs.parameters():
            tensor.add_(torch.randn(tensor.shape) * 0.3 * tensor.requires_grad)  # sines stay as they are
    return theirs.eval()


def other(value: Any) -> Any:
    """Another value of the same type."""
    changed: dict[type, Any] = {bool: not value, int: 3, float: 0.5, str: "relu"}
    return changed.get(type(value), value)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_keys_that_are_called_harmless_change_no_number_of_transformers(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harmless: set[str] = set()
    monkeypatch.setattr(Config, "harmless", lambda config, *keys: harmless.update(keys))
    monkeypatch.setattr(Config, "finish", lambda config: None)
    end, made = next((end, made) for end, made in classes(kind).items() if end in TABLE[kind])
    theirs = build(kind, made, CONFIGS[kind][0])
    theirs.save_pretrained(tmp_path)
    own, config = heedful.load(tmp_path), copy.deepcopy(theirs.config)
    for key in harmless & vars(config).keys() - {"architectures", "pooler_output_size"}:  # of a pooler that is left out
        setattr(config, key, other(getattr(config, key)))
    again = made(config).eval()
    assert not again.load_state_dict(theirs.state_dict(), strict=False).missing_keys
    with torch.no_grad():
        torch.testing.assert_close(*TABLE[kind][end](own, again), **CLOSE)


SEEING = [kind for kind in LAYOUTS if issubclass(FAMILIES[LAYOUTS[kind].family].spec, ImageSpec)]


@pytest.mark.parametrize("times", [2, 4])  # so that the patches of a row and a column are once a square number
@pytest.mark.parametrize("kind", SEEING)
def test_images_that_are_not_square_are_answered_as_there_or_refused_by_their_key(
    kind: str, times: int, tmp_path: Path
) -> None:
    read, refusals = 0, []
    for at, config in enumerate(CONFIGS[kind]):
        side = config.get("image_size", 16)
        side = min(side) if isinstance(side, list) else side
        for end, made in classes(kind).items():
            theirs = build(kind, made, config | {"image_size": [side, times * side]}) if end in TABLE[kind] else None
            if theirs is None:
                continue
            theirs.save_pretrained(tmp_path / f"{at} {end}")
            try:
                own = heedful.load(tmp_path / f"{at} {end}")
            except Refusal as refused:
                refusals.append(str(refused))
                continue
            with torch.no_grad():
                one, two = TABLE[kind][end](own, theirs)
            torch.testing.assert_close(one, two, **CLOSE, msg=lambda said, end=end: f"{end}: {said}")
            read += 1
    assert (read > 0) == (kind not in ("beit", "dinov2"))
    assert all("image_size is" in said for said in refusals)
