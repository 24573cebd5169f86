"""Looking never changes what is seen: every promise of `look`, over every family of models and every mechanism."""

import contextlib
import itertools
import warnings

import pytest
import torch
from torch import nn

from heedful.attention import Bias, Causal, FixedMemory, Mask, Memory, Sight
from heedful.attention.mechanism import repeat_kv
from heedful.attention.mechanisms import Mechanism
from heedful.errors import Refusal
from heedful.looking import Seen, look
from tests.laws import families
from tests.laws.cases import EXACT, gradients

FAMILIES = pytest.mark.parametrize("name", families.FAMILIES)
WORDS = pytest.mark.parametrize("word", families.WORDS)
PAIRS = pytest.mark.parametrize(("name", "word"), families.PAIRS)
PRECISIONS = [torch.float32, torch.float64, torch.bfloat16, "autocast"]


def made(name, word="softmax", precision=torch.float64, **numbers):
    """A model, and its inputs, in a precision."""
    bias = "buckets" if families.obeys(word, name, "bias buckets") else "none"
    position = "rotary" if families.turns(word) else "sine"
    model = families.model(name, word, **{"bias": bias, "position": position, **numbers})
    return in_precision(model, families.together(name), precision)


def in_precision(model, inputs, precision):
    dtype = torch.float32 if precision == "autocast" else precision
    return model.to(dtype), [x.to(dtype) if x.is_floating_point() else x for x in inputs]


def run(model, inputs, precision=None):
    torch.manual_seed(0)
    wide = torch.autocast("cpu", torch.bfloat16) if precision == "autocast" else contextlib.nullcontext()
    with wide:
        return model(*inputs)


@pytest.fixture(autouse=True)
def _refused(request: pytest.FixtureRequest) -> None:
    given = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if {"name", "word"} <= given.keys() and not families.obeys(given["word"], given["name"]):
        pytest.skip("refused, as the golden table says")


def hooks(model):
    return [
        hook for m in model.modules() for kept in (m._forward_hooks, m._forward_pre_hooks) for hook in kept.values()
    ]


@PAIRS
def test_outputs_are_bit_identical_with_and_without_looking(name, word):
    whole, given = made(name, word, dropout=0.3)
    for precision in PRECISIONS:
        model, inputs = in_precision(whole, given, precision)
        for training in (False, True):
            model.train(training)
            plain = run(model, inputs, precision)
            with look(model) as seen:
                looked = run(model, inputs, precision)
            assert plain.isfinite().all()
            assert torch.equal(plain, looked), (precision, training)
            assert seen.paths
        assert not torch.equal(looked, run(model.eval(), inputs, precision)), "dropout did nothing"


@FAMILIES
def test_gradients_are_bit_identical_with_and_without_looking(name):
    model, inputs = made(name, precision=torch.float32)
    plain = gradients(run(model, inputs), [*model.parameters()])
    with look(model):
        looked = gradients(run(model, inputs), [*model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(plain, looked, strict=True))


def reachable(x, found=None):
    """Every tensor that can be reached from x without going through a model."""
    found = {} if found is None else found
    if id(x) in found:
        return []
    found[id(x)] = x
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, Mechanism):
        return []
    if isinstance(x, dict):
        inner = [*x.values()]
    elif isinstance(x, (list, tuple)):
        inner = list(x)
    else:
        inner = [*vars(x).values()] if isinstance(x, (Seen, Sight, Mask, Bias)) else []
    return [tensor for part in inner for tensor in reachable(part, found)]


def held(seen):
    """How many bytes are kept alive, views counted as the whole of what they look into."""
    stores = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in reachable(seen) if t.numel()}
    return sum(stores.values())


@PAIRS
@torch.no_grad()
def test_nothing_is_kept_that_grows_with_rows_times_columns(name, word):
    sizes = []
    for times in (4, 8, 16):
        model, inputs = made(name, word, torch.float32, length=256)
        inputs = [x.repeat(1, times, *[1] * (x.dim() - 2)) if x.dim() > 1 else x for x in inputs]
        with look(model) as seen:
            model(*inputs)
        sizes.append(held(seen))
        tensors = reachable(seen)
        lengths = {x.shape[1] for x in inputs if x.dim() > 1}
        assert len(tensors) > 2 * len(seen.paths)
        assert not [t.shape for t in tensors if sum(size in lengths for size in t.shape) > 1]
        for path in seen.paths:
            seen.weights(path)
            seen.weights(path, rows=[0, 1])
        assert held(seen) == sizes[-1], "asking keeps nothing either"
    first, second = sizes[1] - sizes[0], sizes[2] - sizes[1]
    assert second <= 2.1 * first, "twice as long, twice as much"


def far(one, two):
    """The root of the mean square of a difference: a maximum would hang on one element in thousands."""
    return (one - two).square().mean().sqrt()


class Asked:
    """Queries, keys, values, sight and output of every mechanism of a model, kept by hooks of our own."""

    def __init__(self, model):
        self.calls = []
        self.hooks = [m.register_forward_hook(self.keep) for m in model.modules() if isinstance(m, Mechanism)]

    def keep(self, mechanism, given, y):
        self.calls.append((mechanism, *given, y))


@pytest.mark.parametrize("precision", [torch.bfloat16, "autocast", torch.float32], ids=str)
@PAIRS
@torch.no_grad()
def test_weights_times_values_are_as_close_to_the_kernel_as_twice_the_unfused_error(name, word, precision):
    model, inputs = made(name, word, precision, length=256)
    inputs = [x.repeat(1, 9, *[1] * (x.dim() - 2)) if x.dim() > 1 else x * 9 for x in inputs]
    asked = Asked(model)
    with look(model) as seen:
        run(model, inputs, precision)
    assert len(seen.paths) == len(asked.calls)
    by_mechanism = {id(seen._at(path)[0][0]): path for path in seen.paths}
    for mechanism, q, k, v, sight, y in asked.calls:
        path, heads = by_mechanism[id(mechanism)], q.shape[1]
        exact = seen.weights(path)
        assert exact.dtype == torch.float32
        unfused = (mechanism.weights(q, k, sight.afresh()) @ repeat_kv(v, heads)).double()
        truth = mechanism.weights(q.double(), k.double(), sight.afresh()) @ repeat_kv(v, heads).double()
        said = (exact @ repeat_kv(v, heads).float()).double()
        allowed = 2 * far(unfused, truth)
        assert far(y.double(), truth) <= allowed, f"{path}: the kernel is further from the truth"
        assert far(said, y.double()) <= allowed, path
        assert far(said, truth) <= 1e-5 * v.abs().max(), path


@WORDS
@pytest.mark.parametrize("name", ["predictor of labels"])
@torch.no_grad()
def test_weights_asked_for_under_autocast_are_exact_all_the_same(name, word):
    model, inputs = made(name, word, "autocast")
    with torch.autocast("cpu", torch.bfloat16), look(model) as seen:
        model(*inputs)
        inside = [seen.weights(path) for path in seen.paths]
    for weights, path in zip(inside, seen.paths, strict=True):
        assert weights.dtype == torch.float32
        assert torch.equal(weights, seen.weights(path))


@PAIRS
def test_gradient_flows_through_what_is_seen(name, word):
    model, inputs = made(name, word)
    asked = Asked(model)
    with look(model) as seen:
        model(*inputs)
    by_mechanism = {id(seen._at(path)[0][0]): path for path in seen.paths}
    leaves = [*model.parameters()]
    for mechanism, q, k, _, sight, _ in asked.calls:
        path = by_mechanism[id(mechanism)]
        one, two = seen.weights(path), mechanism.weights(q, k, sight.afresh())
        assert torch.equal(one, two)
        pairs = [*zip(gradients(one, leaves), gradients(two, leaves), strict=True)]
        assert all(torch.allclose(a, b, atol=1e-12) for a, b in pairs)
        looks = any(g.any() for g in gradients(two, [q, k]))  # a mean, and what is hard-coded, does not
        assert any(a.any() for a, _ in pairs) or not looks, path


@FAMILIES
def test_paths_are_the_dotted_names_of_the_attentions(name):
    model, inputs = made(name)
    with look(model) as seen:
        assert seen.paths == ()
        model(*inputs)
    mechanisms = [path for path, m in model.named_modules() if isinstance(m, Mechanism)]
    assert [f"{path}.mechanism" for path in seen.paths] == mechanisms
    for path in seen.paths:
        assert isinstance(model.get_submodule(path).mechanism, Mechanism)
        assert seen.calls(path) == 1


def test_the_paths_of_a_transformer():
    model, inputs = made("transformer")
    with look(model) as seen:
        model(*inputs)
    assert seen.paths == (
        "encoder.blocks.0.attention",
        "encoder.blocks.1.attention",
        "decoder.blocks.0.attention",
        "decoder.blocks.0.cross",
        "decoder.blocks.1.attention",
        "decoder.blocks.1.cross",
    )
    assert seen.weights("decoder.blocks.1.cross").shape == (3, 6, 7, 7)


@PAIRS
@torch.no_grad()
def test_heads_and_rows_are_those_of_all(name, word):
    model, inputs = made(name, word)
    with look(model) as seen:
        model(*inputs)
    choices = (None, [2], [5, 0]), (None, [3], [6, 0, -1], torch.tensor([1, 1]), range(2))
    for path in seen.paths:
        whole = seen.weights(path)
        for heads, rows in itertools.product(*choices):
            part = seen.weights(path, heads=heads, rows=rows)
            expected = whole if heads is None else whole[:, heads]
            expected = expected if rows is None else expected[:, :, torch.as_tensor(rows)]
            torch.testing.assert_close(part, expected, **EXACT)
        assert seen.weights(path, heads=[], rows=[]).shape == (3, 0, 0, whole.shape[-1])


def test_an_unknown_path_is_refused_with_the_known_ones():
    model, inputs = made("transformer")
    with look(model) as seen:
        with pytest.raises(Refusal, match=r"unknown path 'encoder\.blocks\.0\.attention'; known: none"):
            seen.weights("encoder.blocks.0.attention")
        model(*inputs)
    with pytest.raises(Refusal, match=r"did you mean 'decoder\.blocks\.0\.cross'\?") as refusal:
        seen.weights("decoder.block.0.cross")
    assert all(path in str(refusal.value) for path in seen.paths)
    with pytest.raises(Refusal, match="unknown path"):
        seen.calls("decoder")


def test_hooks_are_gone_afterwards_and_nothing_more_is_seen():
    model, inputs = made("transformer")
    with look(model) as seen:
        assert len(hooks(model)) == 6
        model(*inputs)
    assert not hooks(model)
    model(*inputs)
    assert {seen.calls(path) for path in seen.paths} == {1}


def test_hooks_are_gone_after_an_exception():
    model, _ = made("transformer")
    with pytest.raises(KeyError), look(model):
        raise KeyError
    assert not hooks(model)
    with pytest.raises(TypeError), look(model):
        model()
    assert not hooks(model)
    model.compile(backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="eagerly"), look(model):
            pytest.fail("a warning that is an error comes before the body")
    assert not hooks(model)


def test_nested_looks_both_see():
    model, inputs = made("transformer")
    with look(model) as outer:
        model(*inputs)
        with look(model.encoder) as inner:
            model(*inputs)
        model(*inputs)
    assert inner.paths == ("blocks.0.attention", "blocks.1.attention")
    for path in inner.paths:
        assert (inner.calls(path), outer.calls(f"encoder.{path}")) == (1, 3)
        assert torch.equal(inner.weights(path), outer.weights(f"encoder.{path}", call=1))
    assert not hooks(model)


def test_each_call_can_be_asked_for():
    model, (series,) = made("forecaster")
    with look(model) as seen:
        model(series)
        model(series + torch.arange(7.0)[:, None])
    (path, _) = seen.paths
    assert seen.calls(path) == 2
    assert torch.equal(seen.weights(path), seen.weights(path, call=1))
    assert not torch.allclose(seen.weights(path, call=0), seen.weights(path, call=1))


@torch.no_grad()
def test_weights_in_training_are_those_before_dropout():
    model, inputs = made("predictor of tokens", "softmax(dropout=0.5)")
    kept = []
    for training in (True, False):
        with look(model.train(training)) as seen:
            y = run(model, inputs)
        kept.append((seen.weights(seen.paths[0]), y))
    (trained, noisy), (evaluated, clean) = kept
    assert torch.equal(trained, evaluated)
    assert not torch.allclose(noisy, clean)


@pytest.mark.parametrize("memory", [lambda: Memory(2), lambda: FixedMemory(9)])
@torch.no_grad()
def test_what_was_seen_in_steps_is_what_one_pass_shows(memory):
    model, (series,) = made("forecaster", position="rotary")
    with look(model) as whole:
        model(series)
    kept = memory()
    with look(model) as steps:
        for part in series.split(1, 1):
            model(part, kept)
    for path in whole.paths:
        assert steps.calls(path) == 7
        for t in range(7):
            now = steps.weights(path, call=t)  # asked after all steps, when the memory has been written further
            torch.testing.assert_close(now[..., : t + 1], whole.weights(path)[:, :, t : t + 1, : t + 1], **EXACT)
            assert not now[..., t + 1 :].any()


COMPILED = {
    "torch.compile": lambda model, backend: torch.compile(model, backend=backend),
    "model.compile": lambda model, backend: model.compile(backend=backend) or model,
}


@pytest.mark.parametrize("how", COMPILED)
@FAMILIES
def test_a_compiled_model_is_run_eagerly_and_says_so(name, how):
    def refuse(graph, inputs):
        raise AssertionError("compiled while it was looked at")

    model, inputs = made(name)
    with look(model) as plainly:
        plain = model(*inputs)
    compiled = COMPILED[how](model, refuse)
    expected = pytest.warns(UserWarning, match="a compiled model is run eagerly while it is looked at")
    with expected as said, look(compiled) as seen:
        looked = compiled(*inputs)
    assert said[0].filename == __file__
    assert torch.equal(plain, looked)
    assert seen.paths == plainly.paths
    assert all(torch.equal(seen.weights(path), plainly.weights(path)) for path in seen.paths)
    assert not hooks(model)


@pytest.mark.parametrize("how", COMPILED)
def test_a_model_that_has_been_compiled_is_looked_at_and_goes_on_compiled(how):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    model, inputs = made("predictor of vectors")
    plain = model(*inputs)
    compiled = COMPILED[how](model, backend)
    assert torch.allclose(compiled(*inputs), plain, atol=1e-12)
    before = len(graphs)
    assert before >= 1
    with pytest.warns(UserWarning, match="eagerly"), look(compiled) as seen:
        assert torch.equal(compiled(*inputs), plain)
    assert len(graphs) == before
    assert seen.calls("encoder.blocks.1.attention") == 1
    assert torch.allclose(compiled(*inputs), plain, atol=1e-12)
    assert seen.calls("encoder.blocks.1.attention") == 1


def test_a_model_compiled_in_part_is_run_eagerly_under_its_plain_names():
    model, inputs = made("predictor of tokens")
    plain = model(*inputs)
    model.encoder.blocks[0] = torch.compile(model.encoder.blocks[0], backend="eager")
    model.encoder.blocks[1].compile(backend="eager")
    with pytest.warns(UserWarning, match="eagerly"), look(model) as seen:
        assert torch.equal(model(*inputs), plain)
    assert seen.paths == ("encoder.blocks.0.attention", "encoder.blocks.1.attention")


def test_a_model_without_attention_shows_nothing():
    with look(nn.Linear(2, 2)) as seen:
        pass
    assert seen.paths == ()


def test_one_attention_can_be_looked_at_by_itself():
    model, _ = made("forecaster")
    attention, x = model.decoder.blocks[0].attention, torch.randn(2, 5, 24, dtype=torch.float64)
    with look(attention) as seen:
        attention(x, Causal().over(x))
    assert seen.paths == ("mechanism",)
    assert seen.weights("mechanism").shape == (2, 6, 5, 5)
