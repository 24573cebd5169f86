# %% [markdown]
# # Before or after: where the norm stands
#
# A block of a transformer adds something to the stream that runs through it: first what attention found, then what
# the feed-forward made of it. Vaswani et al. (2017) normed the stream *after* each addition, `x = norm(x + part(x))`.
# Nearly all models today norm what *goes into* each part and leave the stream alone, `x = x + part(norm(x))`. The
# change looks cosmetic, and decides whether a deep model learns without a carefully raised rate. Xiong et al. (2020)
# explained why; we measure it.

# %% tags=["parameters"]
import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import heedful
from heedful.looking.plots import BLUE, ORANGE, PLOTS

small = False  # True builds shallower models, and takes fewer steps
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## Two models that differ in nothing else
#
# In heedful the two are two small classes, `Block` and `PostNormBlock`, and one word of a spec, `order`. Matrices
# begin as in that paper (Glorot and Bengio, 2010). The task is to say at each place which token stands one place to
# the left, so that attention has something to do.

# %%
DEPTH, STEPS, LENGTH = (8, 25, 8) if small else (12, 150, 8)


def build(order):
    """A deep, narrow encoder."""
    torch.manual_seed(0)
    sizes = {"vocab": 12, "classes": 12, "pool": "each", "width": 32, "heads": 4, "hidden": 64}
    model = heedful.build("predictor", **sizes, depth=DEPTH, order=order, position="sine")
    for value in model.encoder.parameters():
        if value.dim() == 2:
            nn.init.xavier_uniform_(value)
    return model


def batch():
    """Random tokens, and to the left of each."""
    x = torch.randint(4, 12, (32, LENGTH))
    return x, x.roll(1, 1)


pre, post = build("pre"), build("post")
print(type(pre.encoder.blocks[0]).__name__, type(post.encoder.blocks[0]).__name__)
assert sum(p.numel() for p in pre.parameters()) - sum(p.numel() for p in post.parameters()) == 64  # one last norm

# %% [markdown]
# ## Gradients before learning
#
# The stream of a pre-norm model is a plain sum, so the gradient has a straight way down past all blocks. In a
# post-norm model every norm on the way rescales it: the upper blocks get large gradients and the lower ones small
# ones, the more so the deeper the model is. We look at the first feed-forward matrix of each block, before anything
# is learned.


# %%
def gradients(model):
    """The size of the gradient in each block, the lowest first."""
    torch.manual_seed(1)
    x, wanted = batch()
    model.zero_grad()
    cross_entropy(model(x).flatten(0, 1), wanted.flatten()).backward()
    return [block.feedforward.up.weight.grad.norm().item() for block in model.encoder.blocks]


sizes = {"pre-norm": gradients(pre), "post-norm": gradients(post)}
for name, values in sizes.items():
    print(f"{name:9}: lowest block {values[0]:.4f}, highest {values[-1]:.4f}, ratio {values[-1] / values[0]:.2f}")
assert sizes["post-norm"][-1] / sizes["post-norm"][0] > 2 * sizes["pre-norm"][-1] / sizes["pre-norm"][0]

# %% [markdown]
# ## Learning without a warm-up
#
# A rate that suits the lower blocks of the post-norm model is too much for its upper ones. The usual cure is to raise
# the rate slowly over the first steps, the *warm-up*. We leave it out and give both models the full rate at once.


# %%
def learn(model, rate=3e-3):
    """The loss at each step."""
    torch.manual_seed(2)
    losses, optimiser = [], torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(STEPS):
        x, wanted = batch()
        loss = cross_entropy(model(x).flatten(0, 1), wanted.flatten())
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return losses


curves = {"pre-norm": learn(pre), "post-norm": learn(post)}
for name, losses in curves.items():
    print(f"{name:9}: loss {losses[0]:.2f} at the first step, {losses[-1]:.2f} at the last")
assert curves["pre-norm"][-1] < (0.97 if small else 0.2) * curves["post-norm"][-1]

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3))
for name, colour, sign in (("pre-norm", BLUE, "o"), ("post-norm", ORANGE, "s")):
    left.plot(range(1, DEPTH + 1), sizes[name], marker=sign, color=colour, markersize=5, label=name)
    right.plot(curves[name], color=colour, label=name)
left.set(title="before learning", xlabel="block, from the lowest up", ylabel="size of the gradient", ylim=(0, None))
right.set(title="without a warm-up", xlabel="step", ylabel="loss", ylim=(0, None))
left.legend()
right.legend()
figure.set_label(
    f"Left, the size of the gradient in each of {DEPTH} blocks before learning: small and slightly falling for "
    "pre-norm, larger and rising with the block for post-norm. Right, the loss without a warm-up: pre-norm falls, "
    "post-norm stays behind."
)

# %% [markdown]
# Post-norm has not died out: with a warm-up it trains well, BERT and the first transformer use it, and where both
# converge it is sometimes a little better. But pre-norm is the safer choice, and the default here. It costs one more
# norm at the very end, since nothing else would bring the stream back to one size before the answer is read off it.
