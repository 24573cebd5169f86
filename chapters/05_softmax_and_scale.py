# %% [markdown]
# # Softmax, temperature, and why scores are divided by the root of d
#
# A softmax turns scores into weights that are positive and sum to one. How *decided* it is hangs on the size of the
# scores alone: multiply them by ten and the largest takes everything, divide them by ten and all weights are nearly
# alike. This page is about that one dial. Turned by hand it is called temperature. Left alone it turns by itself,
# with the width of the queries and keys, unless somebody turns it back: that is what the `1 / sqrt(d)` in scaled
# dot-product attention (Vaswani et al., 2017) is for.

# %% tags=["parameters"]
import math

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from heedful.attention import Attention, Everything, Join, MultiHead
from heedful.attention.mechanisms import Dot, Softmax
from heedful.looking.plots import BLUE, COLOURS, ORANGE, PLOTS

small = False  # True stops learning earlier
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## Temperature
#
# Dividing scores by a temperature keeps their order and changes how much the best one gets. **Entropy** sums up how
# spread out weights are: 0 where one takes all, `log n` where n are alike. Its exponential reads as "among how many
# do I choose?".


# %%
def entropy(weights):
    """Of rows of weights, in nats."""
    return torch.special.entr(weights).sum(-1)


scores = torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0])
temperatures = (0.1, 0.5, 1.0, 2.0, 10.0)
chosen = {at: (scores / at).softmax(-1) for at in temperatures}
for at, weights in chosen.items():
    shown = "  ".join(f"{weight:.3f}" for weight in weights.tolist())
    print(f"temperature {at:4g}: {shown}   as if among {entropy(weights).exp():.2f}")

effective = [entropy(weights).item() for weights in chosen.values()]
assert effective == sorted(effective)  # warmer is flatter
assert all(weights.argmax() == 0 for weights in chosen.values())  # and the order never changes

# %% [markdown]
# ## What the width does by itself
#
# Take queries and keys whose d components are independent, with mean 0 and variance 1. Their dot product is a sum of
# d products, each of variance 1, so its variance is d and its size grows as the root of d. A head of width 64 begins
# with scores about eight times as large as one of width 1, that is, at an eighth of the temperature. We measure the
# standard deviation of the scores and the entropy of the weights over 64 keys, for heedful's plain `Dot` (Luong et
# al., 2015) and its scaled `Softmax`.

# %%
torch.manual_seed(0)
KEYS = 64
widths = [4**power for power in range(0, 6)]
measured = {"Dot": [], "Softmax": []}
print(f"{'width':>5} {'deviation':>10} {'root of d':>10}   among how many: {'plain':>6} {'scaled':>6}")
for width in widths:
    q, k = torch.randn(2, 8, 1, KEYS, width)  # B H T D each
    sight = Everything().over(q[:, 0])
    for mechanism in (Dot(), Softmax()):
        measured[type(mechanism).__name__].append(entropy(mechanism.weights(q, k, sight)).mean().item())
    deviation = (q @ k.mT).std().item()
    among = [math.exp(values[-1]) for values in measured.values()]
    print(f"{width:5} {deviation:10.2f} {math.sqrt(width):10.2f}   {'':16} {among[0]:6.1f} {among[1]:6.1f}")
    assert abs(deviation / math.sqrt(width) - 1) < 0.1
assert measured["Dot"][-1] < 0.3 < 3.0 < measured["Softmax"][-1]

# %% [markdown]
# Without the scale, wide heads have made up their minds before they have learned anything. That would not matter if
# they could change it. But where one weight is nearly 1 and the others nearly 0, the derivative of the softmax, `w (1
# - w)`, is nearly zero for all of them: nothing flows back to the queries and keys.
#
# ## Steps to learn
#
# So we let one layer learn with and without the scale. The task is made for attention: eight pairs of a name and a
# value, and a query that says a name; the answer is its value. Everything else is the same, the first weights and the
# order of the data included.

# %%
NAMES, VALUES, PAIRS, WIDTH = 16, 8, 8, 256
STEPS, BATCH = (40, 32) if small else (300, 64)


class Lookup(nn.Module):
    """Names and values have vectors; a query of a name looks at all pairs."""

    def __init__(self, mechanism):
        super().__init__()
        self.names, self.values = nn.Embedding(NAMES, WIDTH), nn.Embedding(VALUES, WIDTH)
        self.attention = Attention(MultiHead(WIDTH, heads=1), mechanism, Join(WIDTH, WIDTH))
        self.outputs = nn.Linear(WIDTH, VALUES)

    def forward(self, names, values, asked):
        pairs = self.names(names) + self.values(values)  # B T M
        x = torch.cat((self.names(asked)[:, None], pairs), 1)
        return self.outputs(self.attention(x, Everything().over(x))[:, 0])


def learn(mechanism):
    """Accuracy at every step, on data that were never seen before."""
    torch.manual_seed(1)
    model, right = Lookup(mechanism), []
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        names = torch.rand(BATCH, NAMES).argsort(-1)[:, :PAIRS]
        values, place = torch.randint(VALUES, (BATCH, PAIRS)), torch.randint(PAIRS, (BATCH, 1))
        scores = model(names, values, names.gather(1, place)[:, 0])
        wanted = values.gather(1, place)[:, 0]
        right.append((scores.argmax(-1) == wanted).float().mean().item())
        optimiser.zero_grad()
        cross_entropy(scores, wanted).backward()
        optimiser.step()
    return torch.tensor(right).unfold(0, 10, 1).mean(-1)  # over ten steps


curves = {"scaled by 1 / sqrt(d)": learn(Softmax()), "not scaled": learn(Dot())}


def steps_to(curve, level):
    """The first step at which so many are right; more than there are where it never came to that."""
    reached = (curve >= level).nonzero()
    return int(reached[0]) + 10 if len(reached) else STEPS + 1


for name, curve in curves.items():
    needed = steps_to(curve, 0.9)
    said = f"after {needed} steps" if needed <= STEPS else f"not within {STEPS} steps"
    print(f"{name:22} 90% right {said}; {curve[-1]:.0%} in the end")
scaled, plain = (steps_to(curve, 0.9) for curve in curves.values())
assert scaled <= STEPS < plain or plain > 2 * scaled

# %%
figure, panels = plt.subplot_mosaic("AB;CC", figsize=(7.4, 6))
left, middle, right = panels.values()
for (at, weights), colour in zip(chosen.items(), COLOURS, strict=False):
    left.plot(range(1, 6), weights, "o-", color=colour, markersize=4, label=f"{at:g}")
left.set(
    title="temperature", xlabel="score, from the largest down", ylabel="weight", xticks=range(1, 6), ylim=(0, 1.02)
)
left.legend()
for name, colour, sign in (("Softmax", BLUE, "o"), ("Dot", ORANGE, "s")):
    words = "scaled" if name == "Softmax" else "not scaled"
    middle.plot(widths, measured[name], marker=sign, color=colour, markersize=5, label=words)
middle.axhline(math.log(KEYS), color="#8a94a3", linewidth=1, linestyle=":")
middle.annotate("all alike", (1, math.log(KEYS)), (0, 3), textcoords="offset points", fontsize=8)
middle.set(
    title="before learning", xscale="log", xlabel="width d of a head", ylabel="entropy of the weights", ylim=(0, 4.6)
)
middle.legend(loc="lower left")
for curve, colour, name in zip(curves.values(), (BLUE, ORANGE), ("scaled", "not scaled"), strict=True):
    right.plot(range(10, STEPS + 1), curve, color=colour, label=name)
right.set(title=f"learning, d = {WIDTH}", xlabel="step", ylabel="share of right answers", ylim=(0, 1.02))
right.legend(loc="lower right")
figure.set_label(
    "Three plots. Weights of five scores at five temperatures, from one that takes all to all alike. Entropy against "
    "the width of a head: near its maximum with the scale, falling to zero without. Right answers against steps: the "
    "scaled layer learns sooner."
)

# %% [markdown]
# Temperature is still there to be used: `scaled(temperature=0.5)` is a word that any model of this library takes as
# its `mechanism`, and when a language model writes, its temperature is this very dial, on the softmax over the
# vocabulary.
