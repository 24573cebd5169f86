# %% [markdown]
# # Residual connections, on and off
#
# In every picture of a transformer a thin line runs around each part and is added to what the part gives: `x = x +
# part(x)`. He and his colleagues (2016) drew it into convolutional networks of a hundred layers and more, which could
# not be trained otherwise. In a transformer the line does more than help the gradient. Attention takes means, and
# means of means of means lose what made tokens different; the line is what keeps a word itself.

# %% tags=["parameters"]
import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cosine_similarity, cross_entropy

from heedful.attention import Attention, Everything, Join, MultiHead
from heedful.attention.mechanisms import Softmax
from heedful.blocks import Block, FeedForward, Stack
from heedful.inputs import Sine, Tokens
from heedful.looking.plots import BLUE, ORANGE, PLOTS

small = False  # True builds fewer blocks, and takes fewer steps
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## The same block without the line
#
# A block of heedful is made of parts that are handed to it, so a block without residuals is a class of three lines.
# Both stacks below have the same parts and the same first weights.

# %%
DEPTH, STEPS, WIDTH, LENGTH, VOCAB = (6, 50, 32, 8, 12) if small else (12, 200, 32, 8, 12)


class BlockWithoutResiduals(Block):
    """The same parts, but what goes into a part is forgotten for what comes out of it."""

    def forward(self, x, sight, memory=None, attend=None):
        x = self.attention(self.norm1(x), sight, memory)
        return self.feedforward(self.norm2(x))


class Reader(nn.Module):
    """Tokens, a stack of blocks, and a score for each token of the vocabulary at each place."""

    def __init__(self, kind, norm=nn.LayerNorm):
        super().__init__()
        self.inputs, self.outputs = Tokens(VOCAB, WIDTH, Sine(WIDTH)), nn.Linear(WIDTH, VOCAB)
        self.stack = Stack([self.block(kind, norm) for _ in range(DEPTH)], norm(WIDTH))

    def block(self, kind, norm):
        """One block of the kind that was asked for."""
        attention = Attention(MultiHead(WIDTH, heads=4), Softmax(), Join(WIDTH, WIDTH))
        return kind(WIDTH, attention, FeedForward(WIDTH, 2 * WIDTH), norm)

    def forward(self, tokens):  # B T -> B T V
        sight = Everything().over(tokens)
        return self.outputs(self.stack(self.inputs(tokens, sight), sight))


def build(kind, *norm):
    """A model of this kind of block; the dice fall alike for both."""
    torch.manual_seed(0)
    return Reader(kind, *norm)


models = {"with residuals": build(Block), "without": build(BlockWithoutResiduals)}
first, second = (model.state_dict() for model in models.values())
assert all(torch.equal(first[name], second[name]) for name in first)

# %% [markdown]
# ## Tokens become alike
#
# How alike are the states of the eight tokens of a sentence after each block? We take the mean cosine between any two
# of them, before anything is learned. Without residuals it climbs to 1: all places hold the same vector, and no layer
# above could tell them apart again. Dong, Cordonnier and Loukas (2021) proved that pure attention loses rank doubly
# exponentially with depth; the feed-forward slows it down, and the residual stops it.


# %%
def likeness(model, tokens):
    """The mean cosine between the states of two tokens, after the inputs and after each block."""
    states, sight = [model.inputs(tokens, Everything().over(tokens))], Everything().over(tokens)
    for block in model.stack.blocks:
        states.append(block(states[-1], sight))
    apart = ~torch.eye(LENGTH, dtype=torch.bool)
    return [cosine_similarity(x[:, :, None], x[:, None], dim=-1)[:, apart].mean().item() for x in states]


torch.manual_seed(1)
tokens = torch.randint(4, VOCAB, (16, LENGTH))
with torch.no_grad():
    alike = {name: likeness(model, tokens) for name, model in models.items()}
for name, values in alike.items():
    print(
        f"{name:15}: mean cosine {values[0]:.2f} at the inputs, "
        f"{values[1]:.2f} after one block, {values[-1]:.4f} at the end"
    )
assert alike["without"][-1] > 0.999
assert alike["with residuals"][-1] < 0.8

# %% [markdown]
# ## The gradient has no way down
#
# What goes for the way up goes for the way back. The derivative of `x + part(x)` is 1 plus something, so that a part
# of the gradient arrives at the inputs unchanged however deep the stack is; without the 1 it is a product of small
# factors. Norms hide that, since they blow everything up again, and so we leave them out of both stacks for once.


# %%
def arrives(model):
    """The size of the gradient at the token vectors."""
    torch.manual_seed(2)
    x = torch.randint(4, VOCAB, (32, LENGTH))
    cross_entropy(model(x).flatten(0, 1), x.roll(1, 1).flatten()).backward()
    return model.inputs.table.weight.grad.norm().item()


kinds = {"with residuals": Block, "without": BlockWithoutResiduals}
arrived = {name: arrives(build(kind, nn.Identity)) for name, kind in kinds.items()}
for name, size in arrived.items():
    print(f"{name:15}: {size:.2e}")
assert arrived["with residuals"] > 1000 * arrived["without"]

# %% [markdown]
# ## Learning
#
# The task: say at each place which token stands one place to the left. One layer could do it. Twelve can, with
# residuals; without them, nothing of the order survives to the top, and the loss stays at the logarithm of eight
# tokens that are all as likely.


# %%
def learn(model):
    """The loss at each step."""
    torch.manual_seed(3)
    losses, optimiser = [], torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        x = torch.randint(4, VOCAB, (32, LENGTH))
        loss = cross_entropy(model(x).flatten(0, 1), x.roll(1, 1).flatten())
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return losses


curves = {name: learn(model) for name, model in models.items()}
chance = torch.tensor(float(VOCAB - 4)).log().item()
for name, losses in curves.items():
    print(f"{name:15}: loss {losses[-1]:.3f} after {STEPS} steps; by chance {chance:.3f}")
assert curves["without"][-1] > 0.95 * chance
assert curves["with residuals"][-1] < (0.92 if small else 0.2) * chance

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3))
for name, colour, sign in (("with residuals", BLUE, "o"), ("without", ORANGE, "s")):
    left.plot(range(DEPTH + 1), alike[name], marker=sign, color=colour, markersize=5, label=name)
    right.plot(curves[name], color=colour, label=name)
left.set(title="before learning", xlabel="after so many blocks", ylabel="mean cosine of two tokens", ylim=(0, 1.04))
right.axhline(chance, color="#8a94a3", linestyle=":", linewidth=1)
right.set(title="learning", xlabel="step", ylabel="loss", ylim=(0, None))
left.legend(loc="lower right")
figure.set_label(
    "Left, the likeness of tokens after each block: without residuals it climbs to one within a few blocks, with them "
    "it rises slowly. Right, the loss over the steps: with residuals it falls, without it stays at chance."
)

# %% [markdown]
# A good way to think of a transformer is therefore not as a pipe that things go through, but as a stream of vectors,
# one a token, that runs from the inputs to the outputs. Attention moves information between the streams, the
# feed-forward works on each by itself, and both only ever *add* what they found.
