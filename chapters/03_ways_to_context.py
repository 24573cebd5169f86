# %% [markdown]
# # Four ways to give a word its context
#
# "Bank" means one thing beside "river" and another beside "money". A model that reads a sequence has to carry what
# stands in one place to the places where it matters, and the layers that do so differ in what they pay. A **dense**
# layer joins every place to every place by a weight of its own. A **convolution** looks at a window and must be
# stacked to see farther. A **recurrent** network carries a state from word to word. **Attention** lets each place ask
# all others at once and take a weighted mean of what they offer. Table 1 of Vaswani et al. (2017) compares them on
# paper; here we measure.

# %% tags=["parameters"]
import time

import matplotlib.pyplot as plt
import torch
from torch import nn

from heedful.attention import Attention, Everything, Join, MultiHead
from heedful.attention.mechanisms import Softmax
from heedful.looking.plots import COLOURS, PLOTS

small = False  # True measures shorter sequences
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## The four
#
# Each maps a sequence of T vectors of width M to T vectors of width M.

# %%
torch.manual_seed(0)
WIDTH, WINDOW = 32, 5


class Dense(nn.Module):
    """The whole sequence as one long vector, through one matrix."""

    def __init__(self, length):
        super().__init__()
        self.matrix = nn.Linear(length * WIDTH, length * WIDTH)

    def forward(self, x):  # B T M -> B T M
        return self.matrix(x.flatten(1)).view_as(x)


class Convolution(nn.Module):
    """A window of five places around each."""

    def __init__(self, length):
        super().__init__()
        self.window = nn.Conv1d(WIDTH, WIDTH, WINDOW, padding=WINDOW // 2)

    def forward(self, x):
        return self.window(x.mT).mT


class Recurrence(nn.Module):
    """A state that goes from place to place."""

    def __init__(self, length):
        super().__init__()
        self.network = nn.RNN(WIDTH, WIDTH, batch_first=True)

    def forward(self, x):
        return self.network(x)[0]


class SelfAttention(nn.Module):
    """heedful's three parts: project, weigh, join."""

    def __init__(self, length):
        super().__init__()
        self.attention = Attention(MultiHead(WIDTH, heads=4), Softmax(), Join(WIDTH, WIDTH))

    def forward(self, x):
        return self.attention(x, Everything().over(x))


ways = {"dense": Dense, "convolution": Convolution, "recurrence": Recurrence, "attention": SelfAttention}

# %% [markdown]
# ## What each pays
#
# *Parameters* are counted. For the *path* we ask the gradient: how many layers have to lie above each other until the
# last output depends on the first input at all? A recurrent layer needs one, but inside it the signal passes through
# a state for every place, so its path is as long as the sequence. Those states are also *steps that cannot be taken
# at the same time*, for each waits for the one before; the other three do all places of a layer at once.


# %%
def layers_needed(way, length):
    """How many layers join the last output to the first input."""
    x = torch.randn(1, length, WIDTH, requires_grad=True)
    layer, y = way(length), x
    for count in range(1, length + 1):
        y = layer(y)
        (gradient,) = torch.autograd.grad(y[0, -1].sum(), x, retain_graph=True)
        if gradient[0, 0].abs().sum() > 0:
            return count
    raise AssertionError("the first input never arrives")


def paid(name, length):
    """Parameters, steps one after the other in a layer, and the path from the first place to the last."""
    steps = length if name == "recurrence" else 1
    parameters = sum(p.numel() for p in ways[name](length).parameters())
    return parameters, steps, layers_needed(ways[name], length) * steps


print(f"{'':12} {'parameters':>24} {'steps in a row':>18} {'path':>12}")
lengths = (8, 32)
table = {name: [paid(name, length) for length in lengths] for name in ways}
for name, (short, long) in table.items():
    print(f"{name:12} {short[0]:>10,} -> {long[0]:>10,} {short[1]:>12} -> {long[1]:>2} {short[2]:>6} -> {long[2]:>2}")

for name in ("convolution", "recurrence", "attention"):
    assert table[name][0][0] == table[name][1][0]  # the length costs no parameters
assert table["dense"][1][0] > 15 * table["dense"][0][0]  # four times the length, sixteen times the parameters
assert table["convolution"][1][2] == -(-(lengths[1] - 1) // (WINDOW // 2))  # half a window farther with each layer
assert table["attention"][1][2] == table["dense"][1][2] == 1

# %% [markdown]
# (Lengths of 8 and 32 places; the arrow leads from one to the other.) Dense layers and attention have the shortest
# path there is, but only attention has it without paying a parameter for each pair of places, and it takes a sequence
# of any length. What it pays is time: every place is compared with every place.
#
# ## Measured time
#
# The picture shows seconds for one forward pass over one sequence, on the machine that built this page. Look at the
# slopes. Both axes are logarithmic: something that takes time in proportion to the length climbs one square for each
# square to the right, and attention turns to two for one once comparing outweighs all else. Recurrence climbs
# straight from the start, since it can never use the machine for more than one place at a time.


# %%
def seconds(layer, length, rounds=3 if small else 15):
    """The best of some rounds, which disturbs least what else the machine does."""
    x, best = torch.randn(1, length, WIDTH), float("inf")
    with torch.no_grad():
        layer(x)
        for _ in range(rounds):
            began = time.perf_counter()
            layer(x)
            best = min(best, time.perf_counter() - began)
    return best


most = {"dense": 64, "convolution": 4096, "recurrence": 4096, "attention": 4096}
tried = [2**power for power in range(3, 10 if small else 13)]
times = {
    name: [(length, seconds(way(length), length)) for length in tried if length <= most[name]]
    for name, way in ways.items()
}

figure, axes = plt.subplots(figsize=(6.4, 3.8))
for (name, points), colour, sign in zip(times.items(), COLOURS, "sDo^", strict=False):
    axes.plot(*zip(*points, strict=True), color=colour, marker=sign, markersize=5)
    last = points[-1]
    axes.annotate(name, last, (6, 0), textcoords="offset points", va="center", color=colour)
axes.set(xscale="log", yscale="log", xlabel="length of the sequence", ylabel="seconds, forward")
axes.set_xlim(right=tried[-1] * 4)
axes.grid(alpha=0.25)
figure.set_label(
    "Seconds against the length of the sequence, both logarithmic, for dense, convolution, recurrence and attention: "
    "recurrence climbs steadily, attention climbs most steeply where sequences are long, dense ends early."
)

# %%
bytes_of_dense = 4 * (tried[-1] * WIDTH) ** 2
print(f"a dense layer for {tried[-1]:,} places would be a matrix of {bytes_of_dense / 2**30:.1f} GiB")

# %% [markdown]
# The dense curve ends early because its matrix grows with the square of the length, and what grows there is not time
# alone but weights, each of which has to be learned. That attention's own square is affordable for sentences, and no
# longer for books, is why so many of the forty kinds of attention in this library exist.
