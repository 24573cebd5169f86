# %% [markdown]
# # Attention can be a dense layer, and a convolution
#
# Attention is often introduced as something new beside the older layers. It is closer to the truth that it *contains*
# them. Attention asks "where should I look?" for every place and every head. If the answer never depends on what
# stands there but only on places, a head becomes a pointer, and pointers are all that the older layers are made of.
# Cordonnier, Loukas and Jaggi (2020) proved it for convolutions on images; here we build both imitations and compare
# the numbers.

# %% tags=["parameters"]
import matplotlib.pyplot as plt
import torch
from torch import nn

from heedful.attention import Attention, Bias, Everything, Join, MultiHead
from heedful.attention.mechanisms import Softmax
from heedful.looking.plots import PLOTS, heatmap

small = False  # this page takes no time at either setting
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## A head that points
#
# In heedful a *bias* says what is added to the score of a pair of places, and one method defines it: head `h`, row at
# position `i`, column at position `j` in, number out. Ours adds zero where head `h` is meant to look and falls off
# with the square of the distance from there. A large `sharpness` makes the softmax of it a pointer: everything but
# the nearest place gets a weight that is exactly 0, because the exponential underflows.


# %%
class Pointer(Bias):
    """Head h looks at the place that `target` names, the more strictly the larger the sharpness."""

    def __init__(self, heads, target, sharpness):
        super().__init__()
        self.heads, self.target, self.sharpness = heads, target, sharpness

    def adds(self, b, h, i, j):
        return -self.sharpness * (j - self.target(h, i)).double().square()


def pointing(width, heads, matrices, offset):
    """Attention that asks nothing: queries and keys are zero, and each head passes the whole state on as its value."""
    made = Attention(MultiHead(width, heads, key=1, value=width), Softmax(), Join(heads * width, len(offset))).double()
    with torch.no_grad():
        for value in made.project.parameters():
            value.zero_()
        made.project.to_qkv.weight[2 * heads :] = torch.eye(width).repeat(heads, 1)
        made.join.weight[:] = torch.cat(tuple(matrices), 1)  # what each head's share is multiplied by
        made.join.bias[:] = offset
    return made


# %% [markdown]
# ## A dense layer
#
# A dense layer over a sequence lays the T vectors side by side and multiplies by one wide matrix. Cut that matrix
# into T blocks, one for each place: the answer is the sum of each block times the vector at its place. So **T heads,
# head h pointing at place h**, with the blocks side by side in the join, are the dense layer, to the last digit that
# a float64 has.

# %%
torch.manual_seed(0)
LENGTH, WIDTH, ANSWERS = 6, 4, 5
x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)

dense = nn.Linear(LENGTH * WIDTH, ANSWERS).double()
as_attention = pointing(WIDTH, LENGTH, dense.weight.split(WIDTH, 1), dense.bias)
at_place = Pointer(LENGTH, lambda h, i: h, sharpness=1000.0)

wanted, given = dense(x.flatten(1)), as_attention(x, Everything().over(x, bias=at_place))
apart = (given - wanted[:, None]).abs().max().item()
print(
    f"dense layer: {wanted[0].tolist()[0]:.12f}\nattention:   {given[0, 0].tolist()[0]:.12f}\nmost apart:  {apart:.1e}"
)
assert apart < 1e-14

# %% [markdown]
# Every row gives the same answer, since every row points at the same places. A dense layer with an answer for each
# place is the same construction with wider answers.
#
# ## A convolution
#
# A convolution with a window of k is k matrices, one for each place *relative* to one's own. So **k heads, head h
# pointing h - k // 2 places away**, do it. At the ends a pointer leads out of the sequence, and the nearest place
# wins: that is what convolutions call replicate padding.

# %%
WINDOW = 3
convolution = nn.Conv1d(WIDTH, WIDTH, WINDOW, padding=WINDOW // 2, padding_mode="replicate").double()
as_attention = pointing(WIDTH, WINDOW, convolution.weight.unbind(2), convolution.bias)


def neighbour(sharpness):
    """Head h looks h - 1 places away."""
    return Pointer(WINDOW, lambda h, i: i + h - WINDOW // 2, sharpness)


def distance(sharpness):
    """How far attention is from the convolution, in all and at most."""
    given = as_attention(x, Everything().over(x, bias=neighbour(sharpness)))
    return (given - convolution(x.mT).mT).abs().max().item()


for sharpness in (0.1, 1.0, 10.0, 100.0, 1000.0):
    print(f"sharpness {sharpness:6g}: most apart {distance(sharpness):.1e}")
assert distance(1000.0) < 1e-14
assert distance(0.1) > 0.01

# %% [markdown]
# The picture shows the weights of the three heads while the sharpness grows: from nearly a mean over everything to
# the three diagonals of a convolution. All are drawn on one scale, and each row of each map sums to one.

# %%
figure, panels = plt.subplots(3, 3, figsize=(6.6, 6.6))
q = k = torch.zeros(1, WINDOW, LENGTH, 1, dtype=torch.float64)
places = [str(place) for place in range(LENGTH)]
for row, sharpness in enumerate((0.05, 0.5, 1000.0)):
    weights = Softmax().weights(q, k, Everything().over(x, bias=neighbour(sharpness)))[0]
    assert torch.allclose(weights.sum(-1), torch.ones(WINDOW, LENGTH, dtype=torch.float64))
    for head in range(WINDOW):
        image = heatmap(panels[row, head], weights[head], places, places, limits=(0, 1))
        panels[row, head].set_title(f"head {head}, sharpness {sharpness:g}", fontsize=10)
figure.colorbar(image, ax=panels, shrink=0.5, label="weight")
figure.set_label(
    "Attention weights of three heads at three degrees of sharpness, 6 x 6 each: blurred at the top, one clear "
    "diagonal a head at the bottom, shifted by one place to the left, not at all, and to the right."
)

# %% [markdown]
# The converse fails. A convolution looks at the same relative places whatever stands there, and a dense layer at the
# same absolute ones. A head of attention may decide by the *content* of a place, and that is what the following
# chapters are about. The freedom has its price: what a convolution knows from the start, attention has to learn from
# data.
