# %% [markdown]
# # Tokens: what a model reads
#
# A model reads numbers, so a text has to be cut into pieces from a fixed list, the vocabulary. Cut it into
# characters, and nothing is ever unknown, but a sentence becomes a long row of pieces that say little each, and
# attention pays for length by its square. Cut it into words, and rows are short, but the list is endless and the next
# new word is not on it. Between the two lies the idea that nearly all models use: **byte-pair encoding** (Sennrich,
# Haddow and Birch, 2016) starts from single characters (here bytes) and keeps merging the pair that occurs most
# often, until the vocabulary is full.

# %% tags=["parameters"]
import re
from pathlib import Path

import matplotlib.pyplot as plt

import heedful
from heedful.looking.plots import BLUE, GREEN, ORANGE, PLOTS
from heedful.tokenizers import train

small = False  # True reads fewer files, and tries fewer sizes
plt.rcParams.update(PLOTS)

# %% [markdown]
# ## Something to read
#
# The texts are the docstrings of this library, a sentence or two each. Every tenth is kept apart, to see how a
# tokenizer cuts what it was not trained on.

# %%
package = Path(heedful.__file__).parent
files = sorted((package / "attention" if small else package).rglob("*.py"))
texts = [text for file in files for text in re.findall(r'"""(\w.+?)\s*"""', file.read_text("utf-8"), re.DOTALL)]
seen, new = [text for at, text in enumerate(texts) if at % 10], texts[::10]
print(f"{len(seen):,} texts to learn from, {len(new):,} kept apart, such as: {new[1].splitlines()[0]}")

# %% [markdown]
# ## How pairs merge
#
# We train a small one and let it explain a word. Each line is a merge: its number in the order in which merges were
# learned, the pieces of the word after it, and the two that became one. Early merges are common pairs of letters;
# later ones are whole syllables, stems and endings.

# %%
tokenizer = train(seen, "bpe", 600 if small else 2000)
word = "attention"
explained = tokenizer.explain(word)
print(*explained.lines(), sep="\n")
ranks = [merge.rank for merge in explained.words[0].merges]
assert ranks == sorted(ranks)  # what was learned first is merged first
assert len(explained.words[0].letters) - len(ranks) == len(explained.pieces)  # each merge makes one piece fewer

# %% [markdown]
# Nothing is lost on the way: the pieces are bytes underneath, so every text comes back as it was, in any script,
# words that nobody has ever written included.

# %%
for text in ("attentive tokenizers untokenize", "naïve Zürich, 東京, 🙂"):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    print(f"{len(text):2} characters, {len(ids):2} tokens: {' | '.join(tokenizer.pieces(ids))}")

# %% [markdown]
# ## The trade
#
# Now the two ends and the middle, on the texts that were kept apart: how many tokens a text takes, and how many words
# of it are unknown. A vocabulary of words has to leave some out, however large it is. Byte-pair encoding never does,
# and each doubling of its vocabulary makes rows a little shorter, while the table of vectors doubles.


# %%
def measure(kind, size):
    """Tokens a text, the share of tokens that are unknown, and how many tokens there are."""
    made = train(seen, kind, size)
    rows = made.encode_all(new)
    unknown = made.special.get("<unknown>", -1)
    tokens = sum(map(len, rows))
    return len(made), tokens / len(new), sum(row.count(unknown) for row in rows) / tokens


sizes = (400, 800) if small else (300, 500, 1000, 2000, 4000)
curve = [measure("bpe", size) for size in sizes]
characters, words = measure("characters", 1000), measure("words", sizes[-1])
print(f"{'':22} {'vocabulary':>10} {'tokens a text':>14} {'unknown':>8}")
rows = [("characters", characters), *(("byte-pair encoding", one) for one in curve), ("words", words)]
for name, (size, tokens, unknown) in rows:
    print(f"{name:22} {size:10,} {tokens:14.1f} {unknown:8.1%}")

lengths = [tokens for _, tokens, _ in curve]
assert lengths == sorted(lengths, reverse=True)  # a larger vocabulary, shorter rows
assert characters[1] > lengths[0] > lengths[-1] > words[1]
assert all(unknown == 0 for _, _, unknown in curve) and words[2] > 0

# %%
figure, axes = plt.subplots(figsize=(6.4, 3.8))
axes.plot([size for size, _, _ in curve], lengths, "o-", color=BLUE)
axes.annotate("byte-pair encoding", (curve[0][0], lengths[0]), (8, 0), textcoords="offset points", color=BLUE)
for name, (size, tokens, unknown), colour, sign in (
    ("characters", characters, GREEN, "D"),
    ("words", words, ORANGE, "s"),
):
    axes.plot([size], [tokens], sign, color=colour, markersize=7)
    said = f"{name}, {unknown:.0%} unknown" if name == "words" else name
    axes.annotate(
        said,
        (size, tokens),
        (0, -14),
        textcoords="offset points",
        ha="left" if name == "characters" else "right",
        color=colour,
    )
axes.set(xscale="log", xlabel="size of the vocabulary", ylabel="tokens a text", ylim=(0, None))
axes.grid(alpha=0.25)
figure.set_label(
    "Tokens a text against the size of the vocabulary: characters have few tokens and the longest rows, words the "
    "shortest rows and a share that is unknown; byte-pair encoding leads from one to the other as its vocabulary grows."
)

# %% [markdown]
# What a model is good at hangs on this first cut more than one would wish. It does not see the letters of a word that
# is one token, which is why counting them is hard for it; numbers fall apart in odd places unless digits are kept
# single; and a language that was rare in the texts is cut into crumbs, so that its speakers pay more for the same
# sentence.
