# %% [markdown]
# # Attention sees a set; positions make it a sequence
#
# Look again at the six steps of the last chapter. Nowhere does it matter that "dog" stands *before* "barks": scores
# compare contents, and a sum does not care about the order of what it adds up. Shuffle the words, and the same
# vectors come out, shuffled in the same way. This is called **permutation equivariance**, and it is a gift where the
# inputs are a set (points of a cloud, members of a team) and a scandal where they are a sentence.

# %% tags=["parameters"]
import matplotlib.pyplot as plt
import torch
from torch.nn.functional import cross_entropy

import heedful
from heedful.looking.plots import PLOTS, heatmap

small = False  # True takes fewer steps
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## Dog bites man
#
# Two small encoders with the same random weights read the same three words in two orders. One is told nothing about
# positions; to the other's inputs the sines and cosines of Vaswani et al. (2017) are added. Each gives four numbers
# for each word.

# %%
WORDS = {"dog": 4, "bites": 5, "man": 6}
there, back = ["dog", "bites", "man"], ["man", "bites", "dog"]


def reader(position, seed=0):
    """A small encoder that gives four numbers for each token."""
    torch.manual_seed(seed)
    return heedful.build(
        "predictor", vocab=8, classes=4, pool="each", width=32, heads=4, depth=2, position=position
    ).eval()


def read(model, words):
    """What the model makes of each word: T 4."""
    with torch.no_grad():
        return model(torch.tensor([[WORDS[word] for word in words]]))[0]


order = torch.tensor([back.index(word) for word in there])  # where each word went
made = {}
for position in ("none", "sine"):
    model = reader(position)
    made[position] = read(model, there), read(model, back)[order]  # rows: dog, bites, man, both times
    change = (made[position][1] - made[position][0]).abs().max().item()
    print(f"position={position}: the vector of a word changes by at most {change:.6f}")

assert torch.allclose(*made["none"], atol=1e-6)
assert (made["sine"][1] - made["sine"][0]).abs().max() > 0.01

# %% [markdown]
# Without positions the one who bites and the one who is bitten are told apart by nothing. That is no accident of
# these weights: for any permutation P, `f(P x) = P f(x)`. We try twenty at random.

# %%
torch.manual_seed(1)
model, x = reader("none"), torch.randint(4, 8, (1, 10))
with torch.no_grad():
    for _ in range(20):
        shuffled = torch.randperm(10)
        assert torch.allclose(model(x[:, shuffled]), model(x)[:, shuffled], atol=1e-5)

# %%
figure, panels = plt.subplots(2, 3, figsize=(7.4, 3.9))
most = max(part.abs().max().item() for both in made.values() for part in both)
titles = '"dog bites man"', '"man bites dog"', "difference"
for row, (position, (first, second)) in zip(panels, made.items(), strict=True):
    for panel, title, values in zip(row, titles, (first, second, second - first), strict=True):
        image = heatmap(panel, values, there, [""] * 4, limits=(-most, most), numbers=".2f", colours="PuOr_r")
        panel.set_title(f"{'no positions' if position == 'none' else 'with sines'},\n{title}", fontsize=10)
figure.colorbar(image, ax=panels, shrink=0.6)
figure.set_label(
    "Vectors of dog, bites and man in two orders of the sentence, and their difference. Without positions the "
    "difference is zero everywhere; with sines and cosines added it is not."
)

# %% [markdown]
# ## What positions add
#
# Can a model *use* what it is told? We ask a question about nothing but order: eight letters, one of them A and one
# B; does A come before B? A model without positions sees the same set either way, so that no amount of learning could
# take it beyond a coin's luck.

# %%
STEPS = 80 if small else 200


def letters(count):
    """Eight letters with an A and a B among them, and whether A comes first."""
    x = torch.randint(6, 12, (count, 8))
    places = torch.rand(count, 8).argsort(-1)[:, :2]
    x.scatter_(1, places, torch.tensor([4, 5]).expand(count, 2))  # A is 4, B is 5
    return x, (places[:, 0] < places[:, 1]).long()


def learn(position):
    """The share of right answers on new letters, after learning."""
    torch.manual_seed(2)
    model = heedful.build("predictor", vocab=12, classes=2, width=32, heads=4, depth=1, position=position)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(STEPS):
        x, first = letters(64)
        optimiser.zero_grad()
        cross_entropy(model(x), first).backward()
        optimiser.step()
    x, first = letters(1000)
    with torch.no_grad():
        return (model(x).argmax(-1) == first).float().mean().item()


right = {position: learn(position) for position in ("none", "sine", "rotary")}
for position, share in right.items():
    print(f"position={position:8} {share:.0%} right")
assert 0.4 < right["none"] < 0.6
assert all(share > (0.8 if small else 0.97) for position, share in right.items() if position != "none")

# %% [markdown]
# ## A mask tells the order, too
#
# There is one more way to break the symmetry. A decoder's causal mask lets each token see only those before it, and
# *that* depends on the order. A decoder without any positions is therefore not equivariant, and can learn where it is
# from how much it sees (Haviv et al., 2022).

# %%
torch.manual_seed(3)
decoder = heedful.build("gpt", vocab=12, width=32, heads=4, depth=1, position="none").eval()
x = torch.arange(4, 12)[None]
with torch.no_grad():
    turned = decoder(x.flip(1)).flip(1)
    assert not torch.allclose(turned, decoder(x), atol=1e-3)

# %% [markdown]
# So positions are not part of attention. They are something we tell it, and there are many ways to tell. What to ask
# of a good one is the next chapter.
