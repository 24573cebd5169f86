# %% [markdown]
# # From text to images: a picture is a sentence of patches
#
# Nothing in a transformer is about words. It wants a sequence of vectors, and where they stand. Cut a picture into
# squares, flatten each, bring it to the model's width by one matrix, and read the squares row by row: "An image is
# worth 16x16 words" (Dosovitskiy et al., 2021), and BERT's encoder has become a **vision transformer**. Even the
# class token is BERT's: one learned vector, put in front, whose last state answers for the whole picture.

# %% tags=["parameters"]
import matplotlib.pyplot as plt
import torch
from torch.nn.functional import conv2d, cross_entropy

import heedful
from heedful.data.images.limits import Size
from heedful.data.toys.drawn_shapes import SHAPES, shapes
from heedful.inputs.patches import Patches
from heedful.looking.figure_style import ramp
from heedful.looking.plots import PLOTS
from heedful.looking.rollout import rollout

small = False  # True learns from fewer pictures, for fewer steps
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## Patches
#
# Cutting, flattening and multiplying by a matrix is the same as a convolution whose window is a patch and whose step
# is as wide as its window. Many programs write it so, and it changes nothing but the speed.

# %%
torch.manual_seed(0)
SIDE, PATCH, WIDTH = 20, 5, 48
cut = Patches(channels=1, width=WIDTH, patch=PATCH)
picture = torch.randn(2, 1, SIDE, SIDE)
kernel = cut.matrix.weight.view(WIDTH, 1, PATCH, PATCH)
assert torch.allclose(cut(picture), conv2d(picture, kernel, cut.matrix.bias, stride=PATCH), atol=1e-5)

rows, columns = cut.shape(SIDE, SIDE)
print(
    f"{SIDE} x {SIDE} pixels -> {rows} x {columns} patches -> a sequence of {rows * columns} vectors of width {WIDTH}"
)

# %% [markdown]
# ## A bag of patches
#
# What the chapter on order said of words holds for patches. Without positions, and where the answer is read off the
# mean of all states, a picture whose patches were shuffled is the same picture. With learned positions it is another
# one.


# %%
def build(position, pool):
    """A small vision transformer for five shapes."""
    torch.manual_seed(0)
    sizes = {"width": WIDTH, "depth": 2, "heads": 4, "hidden": 2 * WIDTH, "patch": PATCH}
    images = {"channels": 1, "high": SIDE, "wide": SIDE, "classes": len(SHAPES)}
    return heedful.build("vit", **images, **sizes, position=position, pool=pool)


def shuffled(x, order):
    """Pictures with their patches in another order."""
    tiles = x.unflatten(3, (columns, PATCH)).unflatten(2, (rows, PATCH)).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    back = tiles[:, order].unflatten(1, (rows, columns)).permute(0, 3, 1, 4, 2, 5)
    return back.flatten(4, 5).flatten(2, 3)


order = torch.randperm(rows * columns)
assert torch.equal(shuffled(picture, torch.arange(rows * columns)), picture)
with torch.no_grad():
    for position in ("none", "learned"):
        model = build(position, pool="mean").eval()
        change = (model(picture) - model(shuffled(picture, order))).abs().max().item()
        print(f"position={position:8} shuffled patches change the answer by {change:.6f}")
        assert (change < 1e-5) == (position == "none")

# %% [markdown]
# ## Learning to see, with and without belief
#
# Now it learns the shapes that LeNet learned in the second chapter, beside a LeNet that gets the same pictures for
# the same number of steps. Remember what the convolution was given for nothing: that neighbouring pixels belong
# together, and that a feature is worth finding wherever it stands. The vision transformer is told neither. It has to
# learn from pictures even that its second patch lies beside its first.

# %%
COUNT, HELD_OUT, STEPS = (1500, 200, 60) if small else (8000, 500, 900)
names, split = list(SHAPES), shapes(COUNT, HELD_OUT, seed=1, size=Size(1, SIDE, SIDE))


def batch(pictures):
    """Pixels of mean 0 and deviation 1, and the number of each picture's class."""
    pixels = torch.stack([torch.as_tensor(one.pixels) for one in pictures]).float()
    mean, deviation = pixels.mean((1, 2, 3), keepdim=True), pixels.std((1, 2, 3), keepdim=True)
    return (pixels - mean) / deviation, torch.tensor([names.index(one.label) for one in pictures])


train, test = batch(split.train), batch(split.test)


def learn(model, rate):
    """The share of new pictures that are right, after learning."""
    torch.manual_seed(1)
    optimiser = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, STEPS)
    for _ in range(STEPS):
        some = torch.randint(COUNT, (64,))
        optimiser.zero_grad()
        cross_entropy(model(train[0][some]), train[1][some]).backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        return (model(test[0]).argmax(-1) == test[1]).float().mean().item()


vit = build("learned", pool="first")
lenet = heedful.build("lenet", channels=1, high=SIDE, wide=SIDE, classes=len(names))
right = {"vision transformer": learn(vit, 4e-3), "LeNet": learn(lenet, 8e-3)}
for name, share in right.items():
    print(f"{name:18}: {share:.0%} of {HELD_OUT} new pictures right")
assert right["vision transformer"] > (0.27 if small else 0.7)
assert small or right["LeNet"] > right["vision transformer"]

# %% [markdown]
# That gap is the price of having no beliefs, and it is what the paper found on real photographs: on a million
# pictures vision transformers fell behind convolutions, and on hundreds of millions they overtook them. What one is
# not told, one can learn better, given enough to learn from. Between the two lie cheaper ways to make up for data:
# augmentation, a convolutional teacher (DeiT: Touvron et al., 2021), heads that begin as convolutions (ConViT:
# d'Ascoli et al., 2021), windows (Swin: Liu et al., 2021). All of them are recipes here.
#
# ## Where it looks
#
# Which patches did the class token take its answer from? One layer's weights do not say, for each patch has itself
# looked at others in the layer below. **Rollout** (Abnar and Zuidema, 2020) multiplies the layers' weights, each
# mixed with the identity for the residual that passes it by. A row of the product says how much of each input a token
# holds in the end.

# %%
shown = [next(at for at, label in enumerate(test[1].tolist()) if label == number) for number in range(len(names))]
with torch.no_grad(), heedful.look(vit) as seen:
    answers = vit(test[0][shown]).argmax(-1)
layers = [seen.weights(path) for path in seen.paths]  # B H T T each
flows = [rollout([weights[at] for weights in layers])[0, 1:].view(rows, columns) for at in range(len(shown))]

inked = (
    test[0][shown].unfold(2, PATCH, PATCH).unfold(3, PATCH, PATCH).amax((1, 4, 5)) > 1.5
)  # patches with a bright pixel
on, beside = torch.stack(flows)[inked].mean().item(), torch.stack(flows)[~inked].mean().item()
print(f"a patch with ink holds {on:.1%} of the answer, a patch without {beside:.1%}")
assert small or on > 1.5 * beside

figure, panels = plt.subplots(2, len(shown), figsize=(7.6, 3.7))
most = max(flow.max().item() for flow in flows)
for number, (above, below) in enumerate(panels.T):
    pixels = test[0][shown[number], 0].numpy()
    above.imshow(pixels, cmap="gray")
    above.set_title(f"drawn: {names[number]}\nsaid: {names[answers[number]]}", fontsize=10)
    for line in range(1, rows):
        above.axhline(line * PATCH - 0.5, color="#56b4e9", linewidth=0.7)
        above.axvline(line * PATCH - 0.5, color="#56b4e9", linewidth=0.7)
    image = below.imshow(flows[number].numpy(), cmap=ramp(), vmin=0, vmax=most)
    for panel in (above, below):
        panel.set(xticks=[], yticks=[])
figure.colorbar(image, ax=panels[1].tolist(), shrink=0.9, label="share of\nthe answer")
figure.set_label(
    "Five pictures of shapes cut into patches by a grid, with what was drawn and what the vision transformer says; "
    "below each, how much of every patch the class token holds, on one scale: patches with a "
    "part of the shape hold most."
)

# %% [markdown]
# From here the same encoder goes on to everything that can be cut into pieces: sound into stretches, video into
# blocks, a scan into cubes. The pieces change. What happens between them is what the first chapter began to build by
# hand.
