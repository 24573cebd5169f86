"""The same numbers as transformers: Longformer, BigBird, Nystromformer, Reformer and Informer, at random weights."""

import pytest
import torch
from transformers.models.big_bird import modeling_big_bird as big_bird
from transformers.models.informer import modeling_informer as informer
from transformers.models.longformer import modeling_longformer as longformer
from transformers.models.nystromformer import modeling_nystromformer as nystromformer
from transformers.models.reformer import modeling_reformer as reformer

from heedful.attention import Attention, BigBird, Everything, Given, Join, Longformer, MultiHead, Padding, SharedQK
from heedful.attention.mechanisms import Informer, Nystromformer, Reformer, Softmax
from heedful.blocks import GlobalRows
from tests.references.copying import copied

BATCH, HEADS, WIDTH = 2, 2, 12
CLOSE = {"rtol": 0.0, "atol": 1e-5}
SIZES = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "attention_probs_dropout_prob": 0.0}


def states(length):
    return torch.randn(BATCH, length, WIDTH, generator=torch.Generator().manual_seed(length))


def projected(module, x, names=("query", "key", "value")):
    return [getattr(module, name)(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for name in names]


def joined(y):
    return y.transpose(1, 2).flatten(2)


@pytest.mark.parametrize("everywhere", [0, 3])
def test_longformer_is_softmax_within_its_mask(everywhere):
    torch.manual_seed(0)
    config = longformer.LongformerConfig(attention_window=[8], num_hidden_layers=1, **SIZES)
    theirs, x, lengths = longformer.LongformerSelfAttention(config, 0).eval(), states(32), torch.tensor([32, 27])
    for name in ("query", "key", "value"):  # a mask has no projections of its own for global rows
        getattr(theirs, f"{name}_global").load_state_dict(getattr(theirs, name).state_dict())
    at = torch.arange(32).expand(BATCH, -1)
    is_hidden, is_global = at >= lengths[:, None], at < everywhere
    mask = torch.where(is_hidden, -10_000.0, torch.where(is_global, 10_000.0, 0.0))
    y = theirs(x, mask, is_hidden, is_global, everywhere > 0)[0]
    sight = (Longformer(5, everywhere) & Padding(lengths)).over(x)  # their window of 8 is 4 on each side
    ours = joined(Softmax()(*projected(theirs, x), sight))
    real = ~is_hidden
    torch.testing.assert_close(ours[real], y[real], **CLOSE)


def test_longformer_with_projections_of_its_own_is_theirs():
    torch.manual_seed(0)
    config = longformer.LongformerConfig(attention_window=[8], num_hidden_layers=1, **SIZES)
    theirs, x, lengths = longformer.LongformerSelfAttention(config, 0).eval(), states(32), torch.tensor([32, 27])
    at = torch.arange(32).expand(BATCH, -1)
    is_hidden, is_global = at >= lengths[:, None], at < 3
    mask = torch.where(is_hidden, -10_000.0, torch.where(is_global, 10_000.0, 0.0))
    y = theirs(x, mask, is_hidden, is_global, True)[0]
    plain = lambda: Attention(MultiHead(WIDTH, HEADS), Softmax(), Join(WIDTH, WIDTH))  # noqa: E731
    ours = GlobalRows(plain, 5, everywhere=3)
    for project, name in ((ours.near.project, "{}"), (ours.project, "{}_global")):
        parts = [getattr(theirs, name.format(one)) for one in ("query", "key", "value")]
        for kind in ("weight", "bias"):
            copied([([getattr(project.to_qkv, kind)], [getattr(part, kind) for part in parts])])
    torch.nn.init.eye_(ours.near.join.weight)
    torch.nn.init.zeros_(ours.near.join.bias)
    real = ~is_hidden
    torch.testing.assert_close(ours(x, Padding(lengths).over(x))[real], y[real], **CLOSE)


@pytest.mark.parametrize("factor", [1, 3])
def test_informer_is_theirs_where_all_keys_are_asked_who_is_chosen(monkeypatch, factor):
    torch.manual_seed(0)
    given = {"num_heads": HEADS, "dropout": 0.0, "is_decoder": False, "bias": True, "sampling_factor": factor}
    theirs, x = informer.InformerProbSparseAttention(WIDTH, **given).eval(), states(16)
    monkeypatch.setattr(torch, "randint", lambda *given, **more: torch.arange(16))  # theirs draws some of them
    y = theirs(x)[0]
    q, k, v = projected(theirs, x, ("q_proj", "k_proj", "v_proj"))
    ours = theirs.out_proj(joined(Informer(factor)(q, k, v, Everything().over(x))))
    torch.testing.assert_close(ours, y, **CLOSE)
    assert not torch.allclose(theirs.out_proj(joined(Softmax()(q, k, v, Everything().over(x)))), y, atol=1e-3)


def test_bigbird_is_softmax_within_its_mask(monkeypatch):
    length, size = 32, 2
    config = big_bird.BigBirdConfig(block_size=size, num_random_blocks=2, max_position_embeddings=length, **SIZES)
    torch.manual_seed(0)
    theirs, x, links = big_bird.BigBirdBlockSparseAttention(config, seed=1).train(), states(length), []
    drawn = theirs._bigbird_block_rand_mask_with_head
    monkeypatch.setattr(
        theirs, "_bigbird_block_rand_mask_with_head", lambda **given: links.extend(drawn(**given)) or links
    )
    hidden = torch.ones(BATCH, length)
    blocked, band, of_rows, of_columns = big_bird.BigBirdModel.create_masks_for_block_sparse_attn(hidden, size)
    y = theirs(x, band, of_rows, of_columns, blocked, blocked)[0]
    blocks = length // size
    layout = torch.zeros(HEADS, blocks, blocks, dtype=torch.bool)
    at = torch.arange(0, length, size)
    zero = torch.zeros((), dtype=torch.long)
    layout |= BigBird(size, everywhere=1, links=0).sees(zero, zero, at[:, None], at)
    layout[:, -1] = layout[:, :, -1] = True  # theirs makes the last block see all too
    for h, chosen in enumerate(links):
        for row, those in enumerate(chosen, 1):
            layout[h, row, torch.as_tensor(those).long()] = True
    seen = layout.repeat_interleave(size, 1).repeat_interleave(size, 2)
    ours = joined(Softmax()(*projected(theirs, x), Given(seen[None]).over(x)))
    torch.testing.assert_close(ours, y, **CLOSE)
    assert layout.float().mean() < 0.7


@pytest.mark.parametrize("landmarks", [4, 8])
def test_nystromformer_is_theirs_without_its_convolution(landmarks):
    config = nystromformer.NystromformerConfig(num_landmarks=landmarks, segment_means_seq_len=32, **SIZES)
    torch.manual_seed(0)
    theirs, x = nystromformer.NystromformerSelfAttention(config).eval(), states(32)
    theirs.conv_kernel_size = None
    theirs.init_option = "exact"  # by default their first guess depends on what else is in the batch
    ours = Nystromformer(landmarks)(*projected(theirs, x), Everything().over(x))
    torch.testing.assert_close(joined(ours), theirs(x)[0], **CLOSE)


@pytest.mark.parametrize("lengths", [(32, 32), (32, 27)])
def test_reformer_is_theirs_of_one_round_where_chunks_look_at_themselves(lengths):
    # Of several rounds theirs counts what is seen twice twice, which the paper (Kitaev et al., 2020, appendix A) does
    # not; `test_packages.py` has one that goes by the paper.
    config = reformer.ReformerConfig(
        attention_head_size=WIDTH // HEADS, num_buckets=8, num_hashes=1, lsh_attn_chunk_length=8, hash_seed=5,
        lsh_num_chunks_before=0, lsh_num_chunks_after=0, is_decoder=False, lsh_attention_probs_dropout_prob=0.0,
        hidden_size=WIDTH, num_attention_heads=HEADS,
    )  # fmt: skip
    torch.manual_seed(0)
    theirs, x, lengths = reformer.LSHSelfAttention(config).eval(), states(32), torch.tensor(lengths)
    real = torch.arange(32) < lengths[:, None]
    y = theirs(x, attention_mask=real.long(), num_hashes=1).hidden_states
    ours, project = Reformer(HEADS, WIDTH // HEADS, 8, 8, rounds=1, back=0), SharedQK(WIDTH, HEADS)
    torch.manual_seed(5)  # theirs draws its rotations anew at each call
    ours.directions.copy_(torch.randn(HEADS, WIDTH // HEADS, 1, 4).permute(2, 0, 1, 3))
    copied([([project.to_qkv.weight], [theirs.query_key.weight, theirs.value.weight])])
    torch.nn.init.zeros_(project.to_qkv.bias)
    sight = Padding(lengths).over(x)
    torch.testing.assert_close(joined(ours(*project(x, sight), sight))[real], y[real], **CLOSE)
