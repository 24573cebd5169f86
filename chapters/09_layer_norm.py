# %% [markdown]
# # LayerNorm and BatchNorm: who shares a mean?
#
# Deep networks learn best when the numbers inside them stay of one size. A norm sees to it: subtract a mean, divide
# by a standard deviation, then let a learned scale and shift have the last word. The formula is the same for all
# norms. They differ in one thing, *which* numbers the mean is taken over, and for sequences that makes all the
# difference. Batch normalisation (Ioffe and Szegedy, 2015) takes it for each channel, over all tokens of all
# sentences in the batch. Layer normalisation (Ba, Kiros and Hinton, 2016) takes it for each token, over its own
# channels.

# %% tags=["parameters"]
import matplotlib.pyplot as plt
import torch

import heedful
from heedful.blocks import BatchNorm, LayerNorm
from heedful.looking.plots import PLOTS, heatmap

small = False  # this page takes no time at either setting
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## The two, by their definitions

# %%
torch.manual_seed(0)
SENTENCES, TOKENS, WIDTH = 3, 4, 8
x = torch.randn(SENTENCES, TOKENS, WIDTH, dtype=torch.float64) * 3 + 1
layer, batch = LayerNorm(WIDTH).double(), BatchNorm(WIDTH).double()


def normed(x, axes):
    """Mean 0 and deviation 1 over some axes."""
    mean, variance = x.mean(axes, keepdim=True), x.var(axes, correction=0, keepdim=True)
    return (x - mean) / (variance + 1e-5).sqrt()


assert torch.allclose(layer(x), normed(x, [2]))  # each token's channels
assert torch.allclose(batch(x), normed(x, [0, 1]))  # each channel's tokens, of all sentences

# %% [markdown]
# ## Who depends on whom
#
# Take one number that comes out, one channel of one token of the second sentence, and ask the gradient which inputs
# it depends on. The picture is computed, not drawn: a cell is dark where the derivative is not zero. LayerNorm looks
# along the token. BatchNorm looks down the channel, and right through the other sentences.


# %%
def depends(norm, sentence=1, token=2, channel=3):
    """Which inputs one output depends on: 1 or 0, the tokens of all sentences below each other."""
    given = x.clone().requires_grad_()
    norm(given)[sentence, token, channel].backward()
    return (given.grad.abs() > 1e-12).double().flatten(0, 1)


seen = {"LayerNorm": depends(layer), "BatchNorm": depends(batch)}
for name, cells in seen.items():
    among = int((cells.sum(1) > 0).view(SENTENCES, TOKENS).any(1).sum())
    print(f"{name}: one output depends on {int(cells.sum())} numbers, of {among} sentence{'s' * (among > 1)}")
assert seen["LayerNorm"].sum() == WIDTH
assert seen["BatchNorm"].sum() == SENTENCES * TOKENS

figure, panels = plt.subplots(1, 2, figsize=(6.6, 4.6))
rows = [f"sentence {s}, token {t}" for s in range(1, SENTENCES + 1) for t in range(1, TOKENS + 1)]
for panel, (name, cells) in zip(panels, seen.items(), strict=True):
    heatmap(panel, cells, rows if panel is panels[0] else [""] * len(rows), [], limits=(0, 1.35))
    for line in range(1, SENTENCES):
        panel.axhline(line * TOKENS - 0.5, color="#8a94a3", linewidth=1)
    panel.add_patch(plt.Rectangle((2.5, 5.5), 1, 1, fill=False, edgecolor="#d55e00", linewidth=2.5))
    panel.set_title(name)
    panel.set_xlabel(f"{WIDTH} channels")
figure.set_label(
    "Twelve tokens of three sentences by eight channels, twice, one cell framed. With LayerNorm the framed output "
    "depends on the eight cells of its own token; with BatchNorm on the twelve cells of its channel, in all "
    "three sentences."
)

# %% [markdown]
# ## Company changes the answer
#
# So under BatchNorm, what a model says of a sentence hangs on the sentences beside it, while it learns. Two whole
# encoders, equal but for their norm, read one sentence twice: in the company of some others, and of others again.

# %%
torch.manual_seed(1)
sentence = torch.randint(4, 30, (1, 6))
companies = [torch.cat((sentence, torch.randint(4, 30, (3, 6)))) for _ in range(2)]
for norm in ("layer", "batch"):
    torch.manual_seed(2)
    model = heedful.build("predictor", vocab=30, classes=3, width=32, heads=4, depth=2, norm=norm).train()
    first, second = (model(batch)[0] for batch in companies)
    change = (first - second).abs().max().item()
    print(f"norm={norm}: the answer changes by {change:.6f}")
    assert (change < 1e-5) == (norm == "layer")

# %% [markdown]
# For images that is tolerable, even useful, since it adds a little noise; batches are large and all pictures have the
# same number of pixels. Sentences are worse off in three ways. Their lengths differ, and padding is counted into the
# mean:

# %%
padded = torch.cat((x, torch.zeros(SENTENCES, 6, WIDTH, dtype=torch.float64)), 1)
for name, norm in (("LayerNorm", layer), ("BatchNorm", batch)):
    change = (norm(padded)[:, :TOKENS] - norm(x)).abs().max().item()
    print(f"{name}: six tokens of padding move the others by up to {change:.3f}")
    assert (change < 1e-12) == (name == "LayerNorm")

# %% [markdown]
# A decoder writes one token at a time, and one token has no deviation over its batch of one. And what is used after
# learning, a running mean over past batches, is not what was used while learning. LayerNorm knows none of these
# troubles: it treats a token the same alone or in company, while it learns or later. It is the norm of nearly every
# transformer; RMSNorm (Zhang and Sennrich, 2019), in most large language models of today, leaves out the mean and
# keeps the rest of the idea.
#
# *Where* in a block the norm should stand is a question of its own, and the next chapter's.
