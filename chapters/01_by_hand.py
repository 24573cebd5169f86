# %% [markdown]
# # Learning by hand, and then not by hand
#
# Everything in this library learns in the same way. A model makes a guess, a loss says how bad the guess was, the
# chain rule says which way each number should move, and every number moves a little. Here we do all four by hand, on
# a model small enough to see through, and then hand the work over to PyTorch piece by piece: first the chain rule,
# then the bookkeeping of parameters, then the step. The numbers must stay the same all along.

# %% tags=["parameters"]
import matplotlib.pyplot as plt
import torch
from matplotlib.colors import LinearSegmentedColormap
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

from heedful.blocks import FeedForward
from heedful.looking.plots import BLUE, PLOTS, RED

small = False  # True takes fewer steps
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## The perceptron
#
# Rosenblatt's perceptron (1958) draws one straight line. It adds up its inputs, each times a weight, and answers yes
# where the sum is above zero. Its learning rule touches nothing while the answer is right; after a mistake it adds
# the input to the weights if the answer should have been yes, and subtracts it if it should have been no. If *some*
# line separates the classes, the rule finds one after finitely many mistakes (Novikoff, 1962).
#
# We show it two problems over four corners of a square: AND, which a line can separate, and XOR, which no line can.

# %%
corners = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
problems = {"AND": torch.tensor([0, 0, 0, 1]), "XOR": torch.tensor([0, 1, 1, 0])}


def perceptron(x, wanted, rounds=100):
    """Weights, bias and the mistakes of each round."""
    weight, bias, mistakes = torch.zeros(2, dtype=x.dtype), 0.0, []
    for _ in range(rounds):
        wrong = 0
        for point, label in zip(x, wanted.tolist(), strict=True):
            error = label - int(point @ weight + bias > 0)  # 1, 0 or -1
            weight, bias, wrong = weight + error * point, bias + error, wrong + abs(error)
        mistakes.append(wrong)
    return weight, bias, mistakes


learned = {name: perceptron(corners, wanted) for name, wanted in problems.items()}
for name, (_, _, mistakes) in learned.items():
    print(f"{name}: mistakes in the first five rounds {mistakes[:5]}, in the last {mistakes[-1]}")
assert learned["AND"][2][-1] == 0
assert min(learned["XOR"][2]) > 0

# %% [markdown]
# On XOR it goes on making mistakes for ever. Minsky and Papert (1969) showed that it must: no line has both diagonals
# on its two sides. The way out is a layer in between, whose units each draw a line of their own, bent by a
# non-linearity so that the layer above can combine them. That is the **multi-layer perceptron**, and the question is
# how to train the units in the middle, for which nobody says what is right.
#
# ## Forward, backward, step
#
# The answer is backpropagation (Rumelhart, Hinton and Williams, 1986). Going forward we keep what each layer made.
# Going backward we carry one thing, the derivative of the loss by what a layer gave, and turn it into two: the
# derivative by the layer's weights, which is what we want, and by its inputs, which is what the layer below needs.

# %%
torch.manual_seed(0)
points = corners.repeat(50, 1) + 0.25 * torch.randn(200, 2, dtype=torch.float64)
labels = problems["XOR"].repeat(50)
hidden, rate, steps = 8, 0.5, 60 if small else 300

start = FeedForward(2, hidden, nn.Tanh).double()  # two inputs, a bent layer of eight, two scores
beginning = {name: value.clone() for name, value in start.state_dict().items()}
print({name: tuple(value.shape) for name, value in beginning.items()})


# %%
def by_hand():
    """Plain tensors: every derivative is written out."""
    up, up_bias, down, down_bias = (value.clone() for value in beginning.values())
    losses = []
    for _ in range(steps):
        # forward
        bent = (points @ up.T + up_bias).tanh()
        scores = bent @ down.T + down_bias
        chances = scores.softmax(-1)
        losses.append(-chances[torch.arange(200), labels].log().mean().item())
        # backward
        to_scores = (chances - one_hot(labels)) / 200  # softmax and cross-entropy together
        to_down, to_down_bias = to_scores.T @ bent, to_scores.sum(0)
        to_sums = (to_scores @ down) * (1 - bent**2)  # the derivative of tanh is 1 - tanh^2
        to_up, to_up_bias = to_sums.T @ points, to_sums.sum(0)
        # step
        up, up_bias = up - rate * to_up, up_bias - rate * to_up_bias
        down, down_bias = down - rate * to_down, down_bias - rate * to_down_bias
    return losses


# %% [markdown]
# The line to remember is `to_scores`: the derivative of the cross-entropy by the scores is simply *what the model
# said minus what was true*. Everything below it is matrices, transposed.
#
# ## Three pieces handed over
#
# **Autograd** records the forward pass and runs the chain rule backwards by itself, so the four lines in the middle
# go. **`nn.Module`** keeps the parameters, so we need not name them; the module is heedful's own `FeedForward`, the
# same part that stands in every transformer block. **`torch.optim`** takes the step, so that plain descent can later
# be replaced by something cleverer with one word.


# %%
def by_autograd():
    """The chain rule is PyTorch's."""
    own = [value.clone().requires_grad_() for value in beginning.values()]
    up, up_bias, down, down_bias = own
    losses = []
    for _ in range(steps):
        loss = cross_entropy((points @ up.T + up_bias).tanh() @ down.T + down_bias, labels)
        losses.append(loss.item())
        loss.backward()
        with torch.no_grad():
            for value in own:
                value -= rate * value.grad
                value.grad = None
    return losses


def by_module():
    """So are the parameters."""
    model = FeedForward(2, hidden, nn.Tanh).double()
    model.load_state_dict(beginning)
    losses = []
    for _ in range(steps):
        loss = cross_entropy(model(points), labels)
        losses.append(loss.item())
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for value in model.parameters():
                value -= rate * value.grad
    return losses


def by_optimiser():
    """And the step."""
    model = FeedForward(2, hidden, nn.Tanh).double()
    model.load_state_dict(beginning)
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    losses = []
    for _ in range(steps):
        loss = cross_entropy(model(points), labels)
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return losses, model


# %%
hand, automatic, module, (optimised, model) = by_hand(), by_autograd(), by_module(), by_optimiser()
print("step   by hand     autograd    nn.Module   torch.optim")
for step in (0, 1, 2, steps // 2, steps - 1):
    print(f"{step:4}   " + "  ".join(f"{losses[step]:.8f}" for losses in (hand, automatic, module, optimised)))

for other in (automatic, module, optimised):
    assert torch.allclose(torch.tensor(hand), torch.tensor(other), rtol=0, atol=1e-12)

# %% [markdown]
# The four columns agree at every step, not only in the end: there is no magic in any of the layers that we took on.
# From here on we use them without a second thought.
#
# The picture shows what was gained. Shading is the answer at each point of the plane; the perceptron's single line
# has to give up one corner at least, and the network with eight bent lines cuts the plane into the right four parts.

# %%
axis = torch.linspace(-2.2, 2.2, 121, dtype=torch.float64)
plane = torch.cartesian_prod(axis, axis)
pale = LinearSegmentedColormap.from_list("pale", ["#b5d6ee", "#f6f6f6", "#fbd0a6"])
weight, bias, _ = learned["XOR"]
with torch.no_grad():
    answers = {
        "perceptron": lambda x: (x @ weight + bias > 0).double(),
        "multi-layer perceptron": lambda x: model(x).softmax(-1)[:, 1],
    }
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.8), sharey=True)
    for panel, (name, answer) in zip(panels, answers.items(), strict=True):
        shade = answer(plane).view(121, 121).T
        panel.imshow(shade.numpy(), pale, vmin=0, vmax=1, origin="lower", extent=(-2.2, 2.2, -2.2, 2.2))
        for label, colour, sign in ((0, BLUE, "o"), (1, RED, "^")):
            panel.scatter(*points[labels == label].T, s=18, c=colour, marker=sign, edgecolors="white", linewidths=0.5)
        right = ((answer(points) > 0.5) == labels).double().mean().item()
        panel.set(title=f"{name}: {right:.0%} right", xlabel="first input", aspect="equal")
        if name == "perceptron":
            assert right < 0.8
        else:
            assert right > 0.95
panels[0].set_ylabel("second input")
figure.set_label(
    "Two maps of the plane with four clusters of points, opposite corners of one class. The perceptron's half-plane "
    "leaves clusters on the wrong side; the multi-layer perceptron's bent border puts all four where they belong."
)
