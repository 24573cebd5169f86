# %% [markdown]
# # Four things to ask of a position encoding
#
# A position encoding turns the number of a place into something that can be added to a word's vector. One could add
# the number itself, or how far along the sentence the word stands, or a vector learned for each place, or the sines
# and cosines of Vaswani et al. (2017). Four properties are usually asked for, and every one of them can be tested:
#
# 1. **unique**: no two places have the same code;
# 2. **even**: a step between two places is the same anywhere, and in sentences of any length;
# 3. **open**: it goes on beyond the longest sentence that was learned from, and its numbers stay of one size;
# 4. **fixed**: it is the same for everyone, with nothing that has to be learned first.

# %% tags=["parameters"]
import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import heedful
from heedful.errors import Refusal
from heedful.inputs import Learned, Network, Sine
from heedful.looking.plots import COLOURS, PLOTS, heatmap

small = False  # True learns for fewer steps, and tries fewer lengths
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## Five encodings
#
# The first two are the ideas that one has first. The other three are heedful's parts; each adds its code to the
# inputs, so adding it to zeros shows it bare.

# %%
WIDTH, LENGTH = 32, 32  # the longest sentence that was learned from


class Counting(nn.Module):
    """The number of the place, in the first channel."""

    def forward(self, x, at):
        return x + at[..., None] * torch.eye(WIDTH)[0]


class Share(nn.Module):
    """How far along the sentence, from 0 to 1."""

    def forward(self, x, at):
        return x + (at / at.max())[..., None] * torch.eye(WIDTH)[0]


encodings = {
    "counting": Counting,
    "share": Share,
    "learned": lambda: Learned(LENGTH, WIDTH),
    "network": lambda: Network(WIDTH),
    "sine": lambda: Sine(WIDTH),
}


def codes(name, length, seed=0):
    """The code of each place of a sentence, as a fresh model has it: T M."""
    torch.manual_seed(seed)
    with torch.no_grad():
        return encodings[name]()(torch.zeros(1, length, WIDTH), torch.arange(length)[None])[0]


# %% [markdown]
# ## Four tests
#
# Distances are Euclidean, and compared with the length of the step from the first place to the second.


# %%
def unique(name):
    """The nearest two places are apart, by more than rounding."""
    made = codes(name, LENGTH)
    return bool(torch.pdist(made).min() > 1e-3 * made.abs().max())


def even(name):
    """A step of three places has one length: at the start, at the end, and in a sentence half as long."""
    long, short = codes(name, LENGTH), codes(name, LENGTH // 2)
    steps = torch.cat([(made[3:] - made[:-3]).norm(dim=-1) for made in (long, short)])
    return bool(steps.max() - steps.min() < 1e-3 * steps.mean())


def open_ended(name):
    """A sentence sixteen times as long has codes, and none that is far larger than those before."""
    try:
        return bool(codes(name, 16 * LENGTH).abs().max() < 1.5 * codes(name, LENGTH).abs().max())
    except Refusal as refusal:
        print(f"{name}: {refusal}")
        return False


def fixed(name):
    """Two models that begin by other dice have the same codes."""
    return torch.equal(codes(name, LENGTH, seed=0), codes(name, LENGTH, seed=1))


tests = {"unique": unique, "even": even, "open": open_ended, "fixed": fixed}
passed = {name: [test(name) for test in tests.values()] for name in encodings}
print(f"{'':10}" + "".join(f"{test:>8}" for test in tests))
for name, marks in passed.items():
    print(f"{name:10}" + "".join(f"{'yes' if mark else 'no':>8}" for mark in marks))

assert all(passed["sine"])
assert all(not all(marks) for name, marks in passed.items() if name != "sine")

# %% [markdown]
# Sines and cosines pass all four, and one can see why the second holds: in each pair of channels a place is a point
# on a circle, and three places farther is the same turn wherever one starts. That is a *rotation*, which a matrix can
# do, so that "three places back" is something a layer can learn to ask for.

# %%
made = codes("sine", 3 * LENGTH)
rates = 10_000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
cos, sin = (3 * rates).cos(), (3 * rates).sin()
turned = torch.stack((made[:, 0::2] * cos + made[:, 1::2] * sin, made[:, 1::2] * cos - made[:, 0::2] * sin), -1)
assert torch.allclose(turned.flatten(1)[:-3], made[3:], atol=1e-4)  # one matrix takes every place three farther

# %% [markdown]
# ## Passing is not enough: sentences longer than learned
#
# That a code *exists* for place 100 does not mean that a network knows what to do with it. So we let small decoders
# learn the easiest question about order, "which token came just before this one?", on sentences of 16 tokens, and
# then ask the same at the end of longer sentences. Two more candidates join, which add nothing to the inputs and work
# inside attention instead, where only *distances* between places count: rotary positions turn queries and keys (Su et
# al., 2021), and ALiBi takes a penalty for distance off the scores (Press, Smith and Lewis, 2022).

# %%
TRAINED, STEPS, BATCH = (16, 150, 20) if small else (16, 300, 32)
lengths = (16, 24, 64) if small else (16, 20, 24, 32, 48, 64, 96)
candidates = {
    "learned": {"position": "learned"},
    "sine": {"position": "sine"},
    "rotary": {"position": "rotary"},
    "ALiBi": {"position": "none", "bias": "alibi"},
}


def learn(words):
    """A decoder that was asked for the token before, in sentences of 16."""
    torch.manual_seed(0)
    sizes = {"vocab": 20, "width": 32, "heads": 4, "depth": 2, "length": TRAINED}
    model = heedful.build("gpt", **sizes, pad=None, tied=False, **words)
    optimiser = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5e-3, STEPS)
    for _ in range(STEPS):
        x = torch.randint(20, (BATCH, TRAINED))
        optimiser.zero_grad()
        cross_entropy(model(x)[:, 1:].flatten(0, 1), x[:, :-1].flatten()).backward()
        optimiser.step()
        schedule.step()
    return model


def right(model, length):
    """How often the last token of new sentences knows the one before it; 0 where the model refuses them."""
    x = torch.randint(20, (256, length))
    try:
        with torch.no_grad():
            return (model(x)[:, -1].argmax(-1) == x[:, -2]).float().mean().item()
    except Refusal:
        return 0.0


reached = {
    name: [right(model, length) for length in lengths]
    for name, model in zip(candidates, map(learn, candidates.values()), strict=True)
}
print(f"{'length':8}" + "".join(f"{length:>7}" for length in lengths))
for name, shares in reached.items():
    print(f"{name:8}" + "".join(f"{share:7.0%}" for share in shares))

assert all(shares[0] > (0.5 if small else 0.9) for shares in reached.values())  # all learn what they are shown
assert reached["learned"][1] == 0  # there is no vector for place 17
assert reached["sine"][1] < 0.3 < 0.9 < reached["rotary"][1]
assert max(reached["sine"][-1], reached["rotary"][-1]) < 0.3 < 0.8 < reached["ALiBi"][-1]

# %%
figure, (left, side) = plt.subplots(1, 2, figsize=(7.6, 3.5), width_ratios=[1, 1.3])
table = torch.tensor(list(passed.values())).float()
heatmap(left, table * 0.75, list(passed), list(tests), limits=(0, 1))
for row, marks in enumerate(passed.values()):
    for column, mark in enumerate(marks):
        left.text(column, row, "yes" if mark else "no", ha="center", va="center", color="white" if mark else "black")
left.set_title("four properties", y=1.1)
for (name, shares), colour, sign in zip(reached.items(), COLOURS, "sDo^", strict=False):
    side.plot(lengths, shares, color=colour, marker=sign, markersize=5, label=name)
side.axvline(TRAINED, color="#8a94a3", linestyle=":", linewidth=1)
side.set(
    title="longer than learned", xlabel="length of the sentence", ylabel="share of right answers", ylim=(-0.03, 1.05)
)
side.legend(loc="center right")
figure.set_label(
    "Left, a table of five encodings and four properties; only sine has all four. Right, right answers against length, "
    "for models that learned from sentences of 16: learned positions and sines fall at once, rotary later, ALiBi stays."
)

# %% [markdown]
# The result is a warning against reading too much into a list of virtues. Sines have all four properties, and a
# network that has only ever seen the first sixteen places does not know what to make of the seventeenth. Rotary
# positions hold out longer, ALiBi, which only ever says "nearer counts more", longest. What generalises is not the
# code but what a layer learned to do with it, and that is easier to carry over where only distances are told.
