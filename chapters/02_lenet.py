# %% [markdown]
# # LeNet-5: the same small window everywhere
#
# A dense layer that reads an image has a weight of its own for every pixel, so what it learns about a stroke in the
# upper left corner says nothing about the same stroke one pixel further right. LeCun and his colleagues (1998) built
# the opposite belief into their network: a feature is worth finding *wherever* it stands. A convolution slides one
# small window of weights over the whole image, and LeNet-5 stacks two of them, with a pooling layer after each that
# halves the picture, before three dense layers make up their mind.

# %% tags=["parameters"]
import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import heedful
from heedful.data.images.limits import Size
from heedful.data.toys.drawn_shapes import SHAPES, shapes
from heedful.looking.plots import PLOTS

small = False  # True learns from fewer pictures, for fewer steps
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## What is inside
#
# heedful's LeNet has the numbers of the paper: 6 and 16 feature maps, windows of 5 x 5, dense layers of 120 and 84
# units, and tanh between them. We let an image go through it and write down what each layer makes of it.

# %%
torch.manual_seed(0)
names = list(SHAPES)
model = heedful.build("lenet", channels=1, high=28, wide=28, classes=len(names))
steps = [*model.convolutions, nn.Flatten(), *model.matrices, model.outputs]

x = torch.zeros(1, 1, 28, 28)
print(f"{'layer':12} {'what it makes':18} {'weights':>8}")
for layer in steps:
    x = layer(x)
    shape, weights = " x ".join(map(str, x.shape[1:])), sum(p.numel() for p in layer.parameters())
    print(f"{type(layer).__name__:12} {shape:18} {weights:>8,}")
assert x.shape == model(torch.zeros(1, 1, 28, 28)).shape == (1, len(names))

# %% [markdown]
# The convolutions are the cheap part. What would the first layer cost if it were dense, every one of its outputs
# joined to every pixel? The convolution says the same with two restrictions: a unit sees its neighbourhood alone
# (*locality*), and all units of a map use the same weights (*weight sharing*).

# %%
first = model.convolutions[0]
shared = sum(p.numel() for p in first.parameters())
dense = (28 * 28 + 1) * 6 * 28 * 28
print(
    f"first layer: {shared:,} weights as a convolution, {dense:,} as a dense layer, {dense // shared:,} times as many"
)

# %% [markdown]
# Sharing has a consequence that one can test. Move the image, and the feature maps move along with it: convolution is
# **equivariant** to translation. (A picture that is cut off at its border would not do, so the mark stands in the
# middle.)

# %%
mark = torch.zeros(1, 1, 28, 28)
mark[..., 10:15, 10:15] = torch.randn(5, 5)
moved = mark.roll((4, 3), (-2, -1))
assert torch.allclose(first(mark).roll((4, 3), (-2, -1)), first(moved), atol=1e-6)

# %% [markdown]
# ## Learning
#
# The pictures are drawn by the library: circles, crosses, rings, squares and triangles of any size, place, turn and
# brightness. Each picture is brought to mean 0 and deviation 1 first: how bright it is says nothing about its shape,
# and tanh works best around zero. Some pictures are kept apart to see what was learned.

# %%
count, held_out, updates = (1500, 300, 120) if small else (6000, 500, 600)
split = shapes(count, held_out, seed=1, size=Size(1, 28, 28))


def batch(pictures):
    """Pixels of mean 0 and deviation 1, and the number of each picture's class."""
    pixels = torch.stack([torch.as_tensor(one.pixels) for one in pictures]).float()
    mean, deviation = pixels.mean((1, 2, 3), keepdim=True), pixels.std((1, 2, 3), keepdim=True)
    return (pixels - mean) / deviation, torch.tensor([names.index(one.label) for one in pictures])


train, test = batch(split.train), batch(split.test)
optimiser = torch.optim.AdamW(model.parameters())
schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 8e-3, updates)
for _ in range(updates):
    some = torch.randint(count, (64,))
    loss = cross_entropy(model(train[0][some]), train[1][some])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    schedule.step()

with torch.no_grad():
    right = (model(test[0]).argmax(-1) == test[1]).float().mean().item()
print(f"{right:.0%} of {held_out} new pictures are right; one guess in {len(names)} would be {1 / len(names):.0%}")
assert right > (0.6 if small else 0.95)

# %% [markdown]
# ## What it looks for
#
# The six windows of the first layer can be looked at, for they are pictures themselves: purple where a window wants
# dark, orange where it wants light. Below each stands what it makes of one picture, in the same colours. A window
# that is purple on one side and orange on the other is a detector of edges in one direction, which is why the outline
# of the ring lights up on one side and not on the other. Nobody asked for edges; they help to tell shapes apart.

# %%
shown = test[0][test[1] == names.index("ring")][0]
with torch.no_grad():
    windows, maps = first.weight.detach()[:, 0], model.convolutions[:2](shown[None])[0]

figure, panels = plt.subplots(2, 7, figsize=(7.4, 2.6))
most = windows.abs().max().item()
panels[0, 0].set_axis_off()
panels[1, 0].imshow(shown[0].numpy(), cmap="gray")
panels[1, 0].set_title("picture", fontsize=10)
for number in range(6):
    panels[0, number + 1].imshow(windows[number].numpy(), cmap="PuOr_r", vmin=-most, vmax=most)
    panels[0, number + 1].set_title(f"window {number + 1}", fontsize=10)
    panels[1, number + 1].imshow(maps[number].numpy(), cmap="PuOr_r", vmin=-1, vmax=1)
for panel in panels.flat:
    panel.set(xticks=[], yticks=[])
figure.set_label(
    "Above, the six windows of 5 x 5 weights that LeNet's first layer learned; below, a picture of a ring and the six "
    "feature maps that the windows make of it: outlines, lit from different sides."
)

# %% [markdown]
# Locality and weight sharing are beliefs about images, built in before any image is seen. They make learning cheap
# where they are true, and they are also a wall: one layer sees five pixels far and no farther. The next chapter asks
# what the ways to see farther cost.
