# %% [markdown]
# # Masked attention: a whole text learned in one pass
#
# A language model writes one token after the other, each depending on those before. One would expect it to *learn*
# that way too, a token at a time, as recurrent networks must. That it does not is half of the transformer's success.
# While learning, the whole text is known. So the right tokens are given as inputs, however wrong the model's own
# guesses are (*teacher forcing*), all places predict their next token at the same time, and a mask sees to it that
# none of them peeps at the answer.

# %% tags=["parameters"]
import time

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import cross_entropy

import heedful
from heedful.attention import Causal, Everything, Memory
from heedful.attention.mechanisms import Softmax
from heedful.looking.plots import PLOTS, heatmap

small = False  # True reads a shorter text
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## The mask
#
# Before the softmax, the score of everything that lies ahead is set to minus infinity. Its exponential is zero, so
# that it gets no weight and the rest still sums to one. In heedful a mask is a definition in one line, "row i sees
# column j where i >= j", and true always means *may look*.

# %%
words = ["<begin>", "the", "dog", "chased", "the", "cat"]
torch.manual_seed(0)
q, k = torch.randn(2, 1, 1, len(words), 8)  # B H T D each
free, causal = (mask().over(q[:, 0]) for mask in (Everything, Causal))
scores = Softmax().scores(q, k)[0, 0]
weights = {name: Softmax().weights(q, k, sight)[0, 0] for name, sight in (("all", free), ("causal", causal))}

by_hand = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf).softmax(-1)
assert torch.allclose(weights["causal"], by_hand)
assert weights["causal"].triu(1).abs().max() == 0  # nothing ahead has any weight
assert torch.allclose(weights["causal"].sum(-1), torch.ones(6))  # and what is left still sums to one

figure, panels = plt.subplots(2, 2, figsize=(7.4, 7.6))
most = scores.abs().max().item()
signed = {"limits": (-most, most), "colours": "PuOr_r", "numbers": ".2f"}
shares = {"limits": (0, 1), "numbers": ".2f"}
drawn = [
    ("scores", scores, signed),
    ("mask: who may look", causal.dense[0, 0].float(), {"limits": (0, 1.35)}),
    ("weights without a mask", weights["all"], shares),
    ("weights under the mask", weights["causal"], shares),
]
for panel, (title, values, how) in zip(panels.flat, drawn, strict=True):
    heatmap(panel, values, words if panel in panels[:, 0] else [], words, **how)
    panel.tick_params("x", rotation=45)
    panel.set_title(title)
figure.set_label(
    "Four maps of six words by six words: scores, the mask, the weights that a softmax makes of the scores without it, "
    "and the weights under it, whose upper right half is zero while every row still sums to one."
)

# %% [markdown]
# ## Nobody peeps
#
# One slip, such as a mask shifted by one place, and the loss falls to nothing while the model learns nothing. So it
# is worth a test that does not look at the mask at all. Change one token of a text: whatever comes *before* it must
# stay the same to the last bit, in the deepest of models.

# %%
LENGTH = 32 if small else 256
torch.manual_seed(1)
model = heedful.build("gpt", vocab=50, width=64, heads=4, depth=3, length=LENGTH + 1).eval()
text = torch.randint(4, 50, (1, LENGTH + 1))
inputs, targets = text[:, :-1], text[:, 1:]  # each token, and the one after it

changed, place = inputs.clone(), LENGTH // 2
changed[0, place] = (changed[0, place] + 1) % 46 + 4
with torch.no_grad():
    before, after = model(inputs)[0], model(changed)[0]
assert torch.equal(before[:place], after[:place])
assert not torch.equal(before[place:], after[place:])

# %% [markdown]
# ## One pass, or one token at a time
#
# Now the comparison. On the left the model is called once and every place predicts its next token. On the right it
# reads token after token, as it does when it writes, remembering keys and values in a `Memory` (the KV cache). The
# scores are the same, and so is the loss: **training in parallel is no approximation**.


# %%
def all_at_once():
    """The scores of every next token, by one call."""
    return model(inputs)


def one_by_one():
    """The same by one call a token, with a memory of what was read."""
    memory = Memory()
    return torch.cat([model(inputs[:, at : at + 1], memory) for at in range(LENGTH)], 1)


def timed(work):
    """What the work gives, and its seconds; the better of two tries."""
    best = float("inf")
    with torch.no_grad():
        for _ in range(2):
            began = time.perf_counter()
            made = work()
            best = min(best, time.perf_counter() - began)
    return made, best


(parallel, fast), (steps, slow) = timed(all_at_once), timed(one_by_one)
assert torch.allclose(parallel, steps, atol=1e-4)
losses = [cross_entropy(scores[0], targets[0]).item() for scores in (parallel, steps)]
print(f"  1 call:     loss {losses[0]:.5f}, {1000 * fast:6.1f} ms")
print(f"{LENGTH:3} calls:    loss {losses[1]:.5f}, {1000 * slow:6.1f} ms, {slow / fast:.0f} times as long")
assert abs(losses[0] - losses[1]) < 1e-4

# %% [markdown]
# The times are of the machine that built this page; on a GPU, which has thousands of lanes to fill, the ratio is far
# larger still. And it is the forward pass alone. Without teacher forcing, learning would have to wait for each token,
# and pass its gradient back through all of them.
#
# There is a price. A model that only ever sees right beginnings is never shown how to recover from a wrong one of its
# own (*exposure bias*: Ranzato et al., 2016). And when it writes there is no text to be given: then it has to go
# token by token, and the memory is what keeps each step short.
