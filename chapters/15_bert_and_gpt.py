# %% [markdown]
# # One block, three models: from encoder-decoder to BERT and GPT
#
# The transformer of Vaswani et al. (2017) has two halves. An encoder reads a source, every token seeing every other.
# A decoder writes a target, every token seeing those before it, and looks across at what the encoder made. Within two
# years each half had gone its own way. Keep the decoder and drop the looking across: **GPT** (Radford et al., 2018).
# Keep the encoder: **BERT** (Devlin et al., 2019). What is left of the difference between them is smaller than their
# names suggest: a mask, and a question.

# %% tags=["parameters"]
import matplotlib.pyplot as plt
import torch
from torch.nn.functional import cross_entropy

import heedful
from heedful.attention import Causal, Everything
from heedful.looking.plots import BLUE, ORANGE, PLOTS, heatmap

small = False  # True takes fewer steps
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## The same parts
#
# We build all three with the same sizes and look into one block of each.

# %%
torch.manual_seed(0)
VOCAB = 28
sizes = {"vocab": VOCAB, "width": 32, "heads": 4, "depth": 2, "length": 8, "feedforward": "gelu"}
both = heedful.build("transformer", **sizes)
bert = heedful.build("bert", **sizes, order="pre", norm="layer", output="masked", segments=0)
gpt = heedful.build("gpt", **sizes)


def parts(block):
    """The parts of a block and their weights."""
    return {name: sum(p.numel() for p in part.parameters()) for name, part in block.named_children() if name != "drop"}


blocks = {
    "encoder": both.encoder.blocks[0],
    "decoder": both.decoder.blocks[0],
    "BERT": bert.encoder.blocks[0],
    "GPT": gpt.decoder.blocks[0],
}
for name, block in blocks.items():
    print(
        f"{name:8} {type(block).__name__:11} " + ", ".join(f"{part} {count:,}" for part, count in parts(block).items())
    )

assert parts(blocks["encoder"]) == parts(blocks["BERT"]) == parts(blocks["GPT"])
extra = set(parts(blocks["decoder"])) - set(parts(blocks["GPT"]))
assert extra == {"cross", "norm3"}  # looking across, and the norm before it, are all that GPT leaves out

# %% [markdown]
# BERT's stack and GPT's are not just alike, they are interchangeable: the weights of one fit into the other. So we
# let *one* stack read a text twice, under two masks. When its last token is changed, under BERT's mask everything
# changes; under GPT's, nothing but the last state.

# %%
gpt.decoder.load_state_dict(bert.encoder.state_dict())  # refuses unless every name and shape agrees
x = torch.randn(1, 6, 32)
other = x.clone()
other[0, -1] = torch.randn(32)
with torch.no_grad():
    for name, mask in (("everything", Everything()), ("causal", Causal())):
        sight = mask.over(x)
        moved = (gpt.decoder(x, sight) - gpt.decoder(other, sight)).abs().amax(-1)[0] > 1e-5
        print(f"{name:10}: states that the last token reaches: {moved.int().tolist()}")
        assert moved.tolist() == ([True] * 6 if name == "everything" else [False] * 5 + [True])

# %% [markdown]
# ## Two questions
#
# With the mask comes the question that a model can be asked. Seeing everything, it can be asked for a word that was
# *hidden*: masked language modelling. Seeing only what came before, it can be asked at every place for the word that
# *comes next*.
#
# We put both to a language of three words: a letter, the field of a small chess board, a digit, as in `b b3 3`. The
# field follows from the letter and the digit, and each of them from the field. Someone who sees all but one word can
# always fill the gap. Someone who reads from left to right cannot know the first word, nor which of four fields
# follows, but then knows the last.

# %%
STEPS, MASK, BEGIN = 100 if small else 200, 3, 1


def sentences(count):
    """Letter, field, digit: tokens 4 to 7, 12 to 27, 8 to 11."""
    letter, digit = torch.randint(4, (2, count))
    return torch.stack((4 + letter, 12 + 4 * letter + digit, 8 + digit), 1)


def hidden(x, place):
    """The sentences with one place of each masked."""
    return x.scatter(1, place, MASK)


def learn_hidden(model):
    """BERT's question: one word of each sentence is masked."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(STEPS):
        x, place = sentences(64), torch.randint(3, (64, 1))
        scores = model(hidden(x, place))[torch.arange(64), place[:, 0]]
        optimiser.zero_grad()
        cross_entropy(scores, x.gather(1, place)[:, 0]).backward()
        optimiser.step()


def begun(x):
    """The sentences behind a token that begins them."""
    return torch.cat((torch.full((len(x), 1), BEGIN), x), 1)


def learn_next(model):
    """GPT's question: what comes next, at every place at once."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(STEPS):
        x = begun(sentences(64))
        optimiser.zero_grad()
        cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten()).backward()
        optimiser.step()


learn_hidden(bert)
learn_next(gpt)
x, places = sentences(1000), ("letter", "field", "digit")
with torch.no_grad():
    answers = [bert(hidden(x, torch.full((1000, 1), place)))[:, place].argmax(-1) for place in range(3)]
    right = {
        "BERT": [(answer == x[:, place]).float().mean().item() for place, answer in enumerate(answers)],
        "GPT": (gpt(begun(x)[:, :-1]).argmax(-1) == x).float().mean(0).tolist(),
    }
for name, shares in right.items():
    print(f"{name:5}" + ", ".join(f"{place} {share:.0%}" for place, share in zip(places, shares, strict=True)))
assert min(right["BERT"]) > 0.95
assert max(right["GPT"][:2]) < 0.35 and right["GPT"][2] > 0.95

# %% [markdown]
# ## What each is good for
#
# So BERT understands better, and yet it cannot write. It was never asked for a next word, and gives all its answers
# in sight of the words behind. GPT's question is harder and its answers are worse, but they are answers one can go on
# from: sample a word, append it, ask again. Every sentence that it writes here is one of the sixteen that the
# language has.

# %%
torch.manual_seed(1)
written = torch.full((200, 1), BEGIN)
with torch.no_grad():
    for _ in range(3):
        chances = gpt(written)[:, -1].softmax(-1)
        written = torch.cat((written, chances.multinomial(1)), 1)
letter, field, digit = written[:, 1:].T
valid = (field == 12 + 4 * (letter - 4) + digit - 8) & (letter >= 4) & (letter < 8)
different = len({tuple(one) for one in written[valid].tolist()})
print(f"{valid.float().mean():.0%} of 200 sentences are of the language, {different} different ones")
assert valid.float().mean() > 0.85 and different > 10

# %%
figure, panels = plt.subplot_mosaic("AB;CC", figsize=(6.6, 5.6), height_ratios=[1.2, 1])
left, middle, bars = panels.values()
for panel, title, mask in ((left, "BERT: an encoder", Everything()), (middle, "GPT: a decoder", Causal())):
    seen = mask.over(torch.zeros(1, 3)).dense.expand(1, 1, 3, 3)[0, 0]
    heatmap(panel, seen.float(), places, places, limits=(0, 1.35))
    panel.hlines([0.5, 1.5], -0.5, 2.5, color="white", linewidth=2)
    panel.vlines([0.5, 1.5], -0.5, 2.5, color="white", linewidth=2)
    panel.set_title(title, fontsize=11)
at = torch.arange(3)
bars.bar(at - 0.19, right["BERT"], 0.36, color=BLUE, label="BERT, the word hidden")
bars.bar(at + 0.19, right["GPT"], 0.36, color=ORANGE, label="GPT, the word to come", hatch="//", edgecolor="white")
bars.set_xticks(at, places)
bars.set(ylim=(0, 1.3), ylabel="share of right answers", yticks=[0, 0.5, 1])
bars.legend(loc="upper left", ncols=2)
figure.set_label(
    "Two masks of three words by three, full for BERT and a lower triangle for GPT, and the share of right answers for "
    "letter, field and digit: BERT knows all three, GPT only the last."
)

# %% [markdown]
# The encoder-decoder never went away: T5 (Raffel et al., 2020) and BART (Lewis et al., 2020) use both halves where a
# given text has to become another one, as in translation and summaries. All of them, and Llama too, are built in this
# library from the very blocks that were printed above.
