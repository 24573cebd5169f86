# %% [markdown]
# # Self-attention in six steps, with real numbers
#
# Three words, vectors of four numbers, one head of width two: small enough that every matrix fits on the page and
# every number can be checked with a pencil. At the end the library has to say the same.

# %% tags=["parameters"]
import math

import matplotlib.pyplot as plt
import torch

from heedful.attention import Everything, MultiHead
from heedful.attention.mechanisms import Softmax
from heedful.looking.plots import PLOTS, heatmap

small = False  # this page takes no time at either setting
plt.rcParams.update(PLOTS)
torch.set_printoptions(precision=2, sci_mode=False)

# %% [markdown]
# ## Before the first step: words are vectors
#
# In a trained model these numbers are learned. Here they are chosen so that something can be seen: the first two say
# what a word *is* (noun, verb), the last two what it is *looking for*.

# %%
words = ["the", "dog", "barks"]
x = torch.tensor([[0.0, 0.0, 2.0, 0.0],   # "the" is neither, and looks for a noun
                  [2.0, 0.0, 0.0, 1.0],   # "dog" is a noun, and looks a little for a verb
                  [0.0, 2.0, 2.0, 0.0]])  # "barks" is a verb, and looks for its noun # fmt: skip

# %% [markdown]
# ## Step 1: queries, keys and values
#
# Each word is asked for three things by three matrices. Its **query** is what it looks for, its **key** what it can
# be found by, its **value** what it hands over. They are different roles of the same word, which is why they get
# matrices of their own.

# %%
to_q = torch.tensor([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])  # the part that looks for something
to_k = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])  # the part that says what it is
to_v = torch.tensor([[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.5]])
q, k, v = x @ to_q.T, x @ to_k.T, x @ to_v.T
print("queries", q, "keys", k, "values", v, sep="\n")

# %% [markdown]
# ## Step 2: scores
#
# Each query is compared with each key by a dot product: large where what is looked for is what is there. Rows look,
# columns are looked at.

# %%
scores = q @ k.T
assert scores[2, 1] == q[2, 0] * k[1, 0] + q[2, 1] * k[1, 1] == 4.0  # "barks" looks for a noun, "dog" is one

# %% [markdown]
# ## Step 3: scale
#
# Divided by the root of the width, so that scores stay of one size however wide a head is (that is the chapter
# before).

# %%
scaled = scores / math.sqrt(q.shape[-1])

# %% [markdown]
# ## Step 4: softmax
#
# Row by row: exponentials, each divided by their sum. A row is now a way to share out one unit of attention.

# %%
exponentials = scaled.exp()
weights = exponentials / exponentials.sum(-1, keepdim=True)
assert torch.allclose(weights.sum(-1), torch.ones(3))
for word, row in zip(words, weights.tolist(), strict=True):
    print(f"{word:>5} looks at " + ", ".join(f"{other} {share:.0%}" for other, share in zip(words, row, strict=True)))
assert weights[0].argmax() == weights[2].argmax() == 1  # the article and the verb look at the noun
assert weights[1].argmax() == 2  # and the noun at the verb

# %% [markdown]
# ## Step 5: weigh the values
#
# Each value is multiplied by the share that it was given. For "barks":

# %%
shares = weights[2, :, None] * v
for word, share, value, part in zip(words, weights[2].tolist(), v.tolist(), shares.tolist(), strict=True):
    print(f"{share:.2f} x {value} = [{part[0]:.2f}, {part[1]:.2f}]   of {word!r}")

# %% [markdown]
# ## Step 6: sum
#
# And summed. The new vector of "barks" is mostly what "dog" handed over: a verb that knows its subject.

# %%
y = weights @ v
assert torch.allclose(y[2], shares.sum(0))
print(y)

# %% [markdown]
# ## The library says the same
#
# `MultiHead` is step 1 and `Softmax` is steps 2 to 6. We give `MultiHead` our three matrices, one below the other,
# and compare. Calling the mechanism takes the fast way, a fused kernel that never writes the weights down; `weights`
# is the definition, for whoever wants to look. That both agree is the one law that every mechanism of heedful obeys.

# %%
project, mechanism = MultiHead(4, heads=1, key=2, value=2, bias=False), Softmax()
with torch.no_grad():
    project.to_qkv.weight[:] = torch.cat((to_q, to_k, to_v))
    sight = Everything().over(x[None])
    given = project(x[None], sight)  # B H T D each
    assert torch.allclose(mechanism.weights(*given[:2], sight)[0, 0], weights)
    assert torch.allclose(mechanism(*given, sight)[0, 0], y)

# %%
figure, panels = plt.subplot_mosaic("AAAABBCCDDD;EEE.FFGG...", figsize=(7.6, 4.6))
most = max(part.abs().max().item() for part in (x, q, k, v, scores))
drawn = [
    ("words", x), ("1: queries", q), ("1: keys", k), ("2, 3: scores, scaled", scaled),
    ("4: weights", weights), ("1: values", v), ("5, 6: sums", y),
]  # fmt: skip
for panel, (title, part) in zip(panels.values(), drawn, strict=True):
    columns = words if part.shape[1] == 3 else []
    heatmap(panel, part, words if title in ("words", "4: weights") else [], columns, limits=(0, most), numbers=".2f")
    panel.set_title(title, fontsize=11)
figure.set_label(
    "Seven small matrices with their numbers, in the order of the steps: the words' vectors, queries, keys, scaled "
    "scores, attention weights, values, and the weighted sums. The row of barks has its largest weight in the column "
    "of dog."
)

# %% [markdown]
# A layer of a real model does this with eight or sixteen heads side by side, each with three matrices of its own, so
# that one head can look for nouns while another looks for what a pronoun stands for; a last matrix joins what they
# found.
