"""Block kernels are handed the same definition: flex attention's block mask and its mods against the dense sight."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import pad

from heedful.attention import (
    Axial,
    BigBird,
    Causal,
    Fixed,
    FixedMemory,
    Local,
    Longformer,
    Padding,
    Sight,
    Strided,
    TaskBlocks,
    Window,
    lowering_cache,
    per_sequence,
)
from heedful.attention.masks import sparse
from heedful.attention.masks.parts import Every
from heedful.attention.mechanism import repeat_kv
from heedful.attention.mechanisms import Softmax, softmax
from heedful.attention.order import Order
from heedful.models import part_tables
from tests.laws import cases
from tests.laws.cases import (
    BATCH,
    EXACT,
    HEADS,
    LENGTH,
    MECHANISMS,
    Case,
    agree,
    mechanism,
    parameters,
    queries_keys_values,
)

BLOCK_BIASES = ["none", "buckets", "table of two axes", "alibi of one head for all"]
LONG, SIDE = 300, 128  # three blocks of flex attention's size, the last one ragged


def sights(mask):
    memory = FixedMemory(LONG)
    memory.sight(mask, torch.empty(BATCH, 20))
    coins = torch.Generator().manual_seed(0)
    ordered, gathered, both = (mask.over(torch.empty(BATCH, LONG)) for _ in range(3))
    ordered.order, gathered.gathered, both.order, both.gathered = (
        Order(torch.randperm(LONG, generator=coins)) for _ in range(4)
    )
    yield "itself", mask.over(torch.empty(BATCH, LONG))
    yield "remembered", memory.sight(mask, torch.empty(BATCH, 200))
    yield "in an order", ordered
    yield "with gathered columns", gathered
    yield "with both", both


def laid_out(sight):
    """The dense mask in the sight's order, for all sequences and heads."""
    dense = sight.dense.expand(BATCH, HEADS, sight.rows.shape[-1], sight.columns.shape[-1])
    columns = sight.gathered or sight.order
    return dense if columns is None else dense[:, :, sight.in_order][..., columns.at]


def indices(rows, columns):
    b, h, i, j = (torch.arange(n) for n in (BATCH, HEADS, rows, columns))
    return b[:, None, None, None], h[:, None, None], i[:, None], j


def tiles(dense):
    """Blocks of SIDE x SIDE, what lies beyond the edge being hidden: B H rows columns (SIDE SIDE)."""
    rows, columns = (-n % SIDE for n in dense.shape[-2:])
    return pad(dense, (0, columns, 0, rows)).unfold(2, SIDE, SIDE).unfold(3, SIDE, SIDE).flatten(-2)


def listed(count, index, shape):
    """The blocks that a block mask lists, as a boolean."""
    there = torch.zeros(*index.shape[:2], *shape, dtype=torch.bool)
    for place in torch.cartesian_prod(*(torch.arange(n) for n in count.shape)):
        b, h, i = place.tolist()
        there[b, h, i, index[b, h, i, : count[b, h, i]].long()] = True
    return there


@pytest.mark.parametrize("name", cases.masks())
def test_the_block_mask_covers_exactly_the_blocks_of_the_dense_mask(name):
    for kind, sight in sights(cases.masks(LONG)[name]):
        blocks, dense = sight.blocks, laid_out(sight)
        said = blocks.mask_mod(*indices(*dense.shape[-2:])).expand_as(dense)
        assert torch.equal(said, dense), kind
        tiled = tiles(dense)
        full, some = tiled.all(-1), tiled.any(-1)
        shape = some.shape[-2:]
        whole = listed(blocks.full_kv_num_blocks, blocks.full_kv_indices, shape)
        part = listed(blocks.kv_num_blocks, blocks.kv_indices, shape)
        assert torch.equal(whole.expand_as(full), full), kind
        assert torch.equal(part.expand_as(some), some & ~full), kind


def plainly(q, k, v, score_mod, block_mask, scale, enable_gqa):
    """What flex attention promises to compute, without its kernels."""
    assert enable_gqa == (k.shape[1] != q.shape[1])
    scores = q @ repeat_kv(k, q.shape[1]).mT * scale
    places = indices(*scores.shape[-2:])
    seen = block_mask.mask_mod(*places).expand_as(scores)
    scores = scores if score_mod is None else score_mod(scores, *places)
    blind = ~seen.any(-1, keepdim=True)
    weights = scores.masked_fill(~seen & ~blind, -torch.inf).softmax(-1).masked_fill(blind, 0.0)
    return weights @ repeat_kv(v, q.shape[1])


@pytest.fixture
def in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block kernels wherever a GPU would use them."""
    monkeypatch.setattr(Sight, "pays_in_blocks", property(lambda sight: not sight.is_causal and not sight.is_open))
    monkeypatch.setattr(softmax, "flex", lambda *kind: plainly)


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("word", MECHANISMS)
def test_forward_in_blocks_is_weights_times_values(word):
    m = mechanism(word)
    for case in cases.cases(word, mask=cases.masks(), bias=BLOCK_BIASES, groups=[2], sight=["itself", "remembered"]):
        sight = case.seen()
        if case.sight == "itself":
            sight.order = Order(torch.tensor([3, 1, 0, 6, 2, 5, 4]))
        q, k, v = queries_keys_values(case, sight)
        defined = m.weights(q, k, sight) @ repeat_kv(v, HEADS)
        agree(m(q, k, v, sight), defined, [q, k, v, *parameters(m, sight.bias)], case)


@pytest.fixture
def gathering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that all rows see stand together however few they are, and nothing lasts from before."""
    monkeypatch.setattr(sparse, "FEW", 0)
    monkeypatch.setattr(lowering_cache, "LASTING", {})


SPANS = {
    "alone": Fixed(16),
    "causal": Causal() & Fixed(16, 3),
    "padded": Fixed(48, 2) & Padding(torch.tensor([200, 300, 7])) & Causal(),
    "a summary more than a block": Fixed(150, 140),
}


@pytest.mark.usefixtures("in_blocks", "gathering")
@pytest.mark.parametrize("name", SPANS)
def test_fixed_attention_gathers_its_summaries_with_the_same_numbers(name):
    sight = SPANS[name].over(torch.empty(BATCH, LONG))
    [turn] = sight.turns
    assert turn.gathered is not None and turn.order is None
    q = torch.randn(BATCH, HEADS, LONG, 4, dtype=torch.float64, requires_grad=True)
    k, v = (torch.randn(BATCH, 2, LONG, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    defined = Softmax().weights(q, k, sight) @ repeat_kv(v, HEADS)
    agree(Softmax()(q, k, v, sight), defined, [q, k, v], name)


@pytest.mark.parametrize("causal", [False, True])
def test_fixed_attention_of_long_sequences_looks_at_a_few_blocks(causal):
    length, size = 8192, 64
    mask = Causal() & Fixed(size) if causal else Fixed(size)
    [turn] = mask.over(torch.empty(1, length)).turns
    blocks = turn.blocks
    most = 3 + length // size // SIDE  # its own spans, the rest of which may lie in three blocks, and the summaries
    assert int((blocks.kv_num_blocks + blocks.full_kv_num_blocks).max()) <= most
    assert Fixed(size).over(torch.empty(1, 1024)).turns[0].gathered is None, "too short for it to pay"


@pytest.fixture
def by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of three rows wherever a CPU would use larger ones."""
    fits = property(
        lambda sight: (sight.counted or sight.start > 0) and sight.rows is sight.columns and not sight.is_open
    )
    monkeypatch.setattr(Sight, "pays_in_parts", fits)
    monkeypatch.setattr(softmax, "PART", 3)


@pytest.mark.usefixtures("by_parts")
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", cases.masks())
def test_forward_in_parts_is_weights_times_values(name, ordered):
    m = mechanism("softmax")
    for case in cases.cases("softmax", mask=[name], bias=BLOCK_BIASES, groups=[2]):
        sight = case.seen()
        if ordered:
            sight.order = Order(torch.tensor([3, 1, 0, 6, 2, 5, 4]))
        q, k, v = queries_keys_values(case, sight)
        defined = m.weights(q, k, sight) @ repeat_kv(v, HEADS)
        agree(m(q, k, v, sight), defined, [q, k, v, *parameters(m, sight.bias)], case)


PADDED = {
    "before": [list(range(LENGTH)), [-1, -1, 0, 1, 2, 3, 4], [-1] * LENGTH],  # the last sequence is padding alone
    "between": [[0, -1, 1, 2, -1, 3, 4], [-1, 2, 3, -1, 4, 5, 6], [5, 6, -1, -1, -1, -1, -1]],  # and counted from 2 on
}


@pytest.mark.usefixtures("by_parts")
@pytest.mark.parametrize("padding", PADDED)
@pytest.mark.parametrize("name", cases.masks())
def test_sequences_with_padding_before_them_look_one_by_one_with_the_same_numbers(name, padding, monkeypatch):
    monkeypatch.setattr(softmax, "LONG", 4)
    m, places = mechanism("softmax"), torch.tensor(PADDED[padding])
    for case in cases.cases("softmax", mask=[name], bias=BLOCK_BIASES, groups=[2]):
        sight, bias = case.seen(), case.seen().bias
        defining, looking = (Sight(sight.mask, places, places.clone(), BATCH, bias) for _ in range(2))
        q, k, v = queries_keys_values(case, sight)
        defined = m.weights(q, k, defining) @ repeat_kv(v, HEADS)
        agree(m(q, k, v, looking), defined, [q, k, v, *parameters(m, bias)], case)
        assert "dense" not in looking._made


@pytest.mark.usefixtures("by_parts")
def test_a_bias_of_tasks_stays_with_its_sequence_where_they_look_one_by_one(monkeypatch):
    monkeypatch.setattr(softmax, "LONG", 4)
    here = torch.arange(LENGTH)
    places = torch.stack((here, here - 2, here - 1)).clamp(min=-1)
    bias = cases.stir(TaskBlocks(LENGTH, tasks=2)).of(torch.tensor([1, 0, 1]))
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, 4, generator=torch.Generator().manual_seed(0)) for _ in range(3))
    defining, looking = (Sight(Causal(), places, places, BATCH, bias) for _ in range(2))
    torch.testing.assert_close(Softmax()(q, k, v, looking), Softmax().weights(q, k, defining) @ v)
    assert len(per_sequence.apart(looking)) == BATCH


FEW = {
    "window": Window(100) & Causal(),
    "strided": Strided(HEADS, 32),
    "fixed": Fixed(32) & Causal(),
    "longformer": Longformer(64),
    "bigbird": BigBird(32),
    "axial": Axial(HEADS, 32) & Padding(torch.tensor([1500])),
    "local": Local(64),
}


@pytest.mark.parametrize("name", FEW)
def test_long_sequences_that_see_few_go_in_parts_with_the_same_numbers(name, monkeypatch):
    q, k, v = (torch.randn(1, HEADS, 1537, 4, generator=torch.Generator().manual_seed(0)) for _ in range(3))
    sight, whole = (FEW[name].over(torch.empty(1, 1537)) for _ in range(2))
    assert sight.pays_in_parts
    y = Softmax()(q, k, v, sight)
    assert "dense" not in sight._made
    monkeypatch.setattr(Sight, "pays_in_parts", False)
    torch.testing.assert_close(y, Softmax()(q, k, v, whole), rtol=1e-5, atol=1e-5)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Flex attention as torch.compile sees it, without the kernels; and how many graphs it makes."""
    counters = torch._dynamo.utils.counters
    monkeypatch.setattr(softmax.torch, "compile", partial(torch.compile, backend="eager"))
    softmax.flex.cache_clear()
    torch.compiler.reset()
    counters.clear()
    yield counters["stats"]
    softmax.flex.cache_clear()
    torch.compiler.reset()


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.usefixtures("gathering")
def test_a_kind_is_compiled_twice_for_all_lengths_whatever_other_kinds_there_are(graphs):
    with torch.no_grad():
        for length in (40, 57, 64, 33):
            padding = Padding(torch.tensor([length, 20, 9]))
            for mask in (Window(3), Window(5), Causal() & Window(3), padding, Every(5), Every(4) & padding, Fixed(8)):
                q, k, v = (torch.randn(BATCH, HEADS, length, 16, dtype=torch.float64) for _ in range(3))
                [sight] = mask.over(q[:, 0]).turns
                y = softmax.blockwise(q, k, v, sight, 0.25)
                torch.testing.assert_close(y, Softmax().weights(q, k, sight) @ v, **EXACT)
    assert graphs["unique_graphs"] == 2 * 7


@pytest.mark.parametrize("word", part_tables.MASKS)
def test_positions_of_32_bits_as_kernels_have_them_see_the_same(word):
    mask = part_tables.mask(f"{word}(size=3)", HEADS)
    coins = torch.Generator().manual_seed(0)
    i, j = (torch.randint(0, 2**17, (20_000,), generator=coins) for _ in range(2))
    near = (i + torch.randint(-40, 40, i.shape, generator=coins)).clamp(min=0)
    for h, column in ((h, column) for h in range(HEADS) for column in (j, near)):
        b, h = torch.zeros((), dtype=torch.long), torch.tensor(h)
        exact = mask.sees(b, h, i, column)
        assert torch.equal(mask.sees(b.int(), h.int(), i.int(), column.int()), exact)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("groups", [HEADS, 2])
def test_flex_attention_itself_takes_what_it_is_handed(monkeypatch, groups):
    monkeypatch.setattr(softmax, "flex", lambda *kind: flex_attention)
    case = Case("causal & padding", "buckets", groups)
    sight = case.seen()
    sight.order = Order(torch.randperm(LENGTH, generator=torch.Generator().manual_seed(0)))
    with torch.no_grad():
        q, k, v = (x.detach() for x in queries_keys_values(case, sight))
        y = softmax.blockwise(q, k, v, sight, 0.5)  # a head's width is 4, and 0.5 the inverse of its root
        torch.testing.assert_close(y, Softmax().weights(q, k, sight) @ repeat_kv(v, HEADS), **EXACT)
