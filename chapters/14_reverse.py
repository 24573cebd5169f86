# %% [markdown]
# # The reverse lab: watch attention do what it must
#
# To see whether attention looks where it should, take a task where everybody knows where that is. Read a row of
# letters, write it backwards: to write its first letter a model has to look at the last one it read, for the second
# at the last but one, and so on. If attention is what it is said to be, its weights must form a diagonal, from the
# lower left to the upper right. Nobody tells the model so. It only ever sees pairs such as `abc` and `cba`.

# %% tags=["parameters"]
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import torch

import heedful
from heedful.looking.plots import PLOTS, heatmap

small = False  # True stops long before it has learned to reverse
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## Train
#
# `reverse` is a recipe of the library: what to read, which model, how to train it. `data=toy` is its version that
# takes seconds, with rows of two to six letters. On the command line the same is `heedful train reverse data=toy`.
# The model is an encoder-decoder as in Vaswani et al. (2017), but tiny: one block on each side, 32 wide, with two
# heads.

# %%
STEPS, quick = (20, ["data.samples=1000", "data.held_out=50"]) if small else (600, [])
folder = TemporaryDirectory()


def train(name, *keys):
    """The recipe with some keys changed, its run in a folder of its own."""
    chosen = ["data=toy", *quick, f"training.steps={STEPS}", f"training.evaluate_every={STEPS // 2}", *keys]
    return heedful.train("reverse", keys=chosen, out=Path(folder.name) / name, device="cpu")


run = train("plain")
print(
    f"{sum(p.numel() for p in run.model.parameters()):,} weights; {run.scores['exact']:.0%} of new rows exactly right"
)
assert small or run.scores["exact"] > 0.95

# %% [markdown]
# ## Ask
#
# The first three rows are as long as those that were learned from. The last is longer, and the model has no right to
# know it.

# %%
for text in ("abc", "q7x1", "lesson", "transformers"):
    (answer,) = run.predict(text)
    print(f"{text:13} -> {answer.text:13} {'right' if answer.text == text[::-1] else 'wrong'}")

# %% [markdown]
# ## Look
#
# `look` keeps what every head was asked while the model answers, without changing an answer by one bit. We are
# interested in the decoder's *cross-attention*: its rows are the letters that are written, its columns the letters
# that were read.

# %%
word = "python"
seen = run.look(word)
(cross,) = [one for one in seen.maps if one.path.endswith("cross")]
print(f"{seen.name}: {cross.heads} heads, {len(cross.rows)} rows (written) x {len(cross.columns)} columns (read)")


def on_diagonal(weights, length):
    """How much of the attention of the letters written lies where it must: on the letter that is written."""
    rows = torch.arange(min(length, weights.shape[0]))
    return weights[rows, length - 1 - rows].mean().item()


shares = [on_diagonal(head, len(word)) for head in cross.weights]
for number, share in enumerate(shares):
    print(
        f"head {number}: {share:.0%} on the letter that is about to be written; by chance {1 / len(cross.columns):.0%}"
    )
assert small or max(shares) > 0.5

figure, panels = plt.subplots(1, 2, figsize=(7.4, 3.9))
for number, panel in enumerate(panels):
    image = heatmap(panel, cross.weights[number], cross.rows, cross.columns, limits=(0, 1))
    panel.set_title(f"head {number}")
    panel.set_xlabel("read")
    panel.set_ylabel("written")
figure.colorbar(image, ax=panels, shrink=0.7, label="weight")
figure.set_label(
    f"Cross-attention of two heads while the model writes {word!r} backwards: rows are letters written, columns "
    "letters read; the weights of a head that has learned its task lie on the diagonal "
    "from the upper right to the lower left."
)

# %% [markdown]
# The map has the first letter written at the top, so the diagonal runs from the upper right downwards. It need not be
# in both heads: they are free to share out the work, and often one looks at the letter to write while the other helps
# it to find its place.
#
# ## Take something away
#
# Is it really positions that this hangs on? The same model without any must see a bag of letters. It can learn
# *which* letters to write, and the causal mask of the decoder gives it some idea of how many are written already, but
# the order of what it read is gone. The library knows that, and says so before it begins.

# %%
with warnings.catch_warnings(record=True) as doubts:
    warnings.simplefilter("always")
    blind = train("blind", "model.position=none")
print(f"heedful: {doubts[0].message}")
print(f"with positions {run.scores['exact']:.0%} exactly right, without {blind.scores['exact']:.0%}")
assert small or blind.scores["exact"] < 0.5 * run.scores["exact"]
folder.cleanup()

# %% [markdown]
# Other things to try, each a key of the same command: `model.mechanism=additive` for the first attention of all
# (Bahdanau, Cho and Bengio, 2015), `"model.mechanism=window(size=2)"` for one that cannot see far enough,
# `model.heads=1`, or `model.position=sine` and then longer rows.
