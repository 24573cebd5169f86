"""Text to train on, made as a language is, and tokenizers of every kind trained on it once."""

from functools import cache

from hypothesis import strategies as st

from heedful.bench.tokenizer_bench import join_words, zipf_words
from heedful.tokenizers import KINDS, Tokenizer, train

SIGNS = [
    'a man is n\'t here . &quot; @-@ "quoted" ( brackets )',
    "in 1984 , 12.5 % of 300 people said so : yes !",
    "Äpfel und Öl kosten 3,50 € … auf dem Straßenfest .",
    "# one ## two ###three a#b",
]
LINES = join_words(list(zipf_words(8_000)), 12)
TEXTS = [*LINES, *SIGNS * 5]
SEEN = sorted({sign for text in TEXTS for sign in text} - {" "})
SPECIAL = ("<User:>", "<Assistant:>")
WHOLE = ("bpe", "bpe_characters")  # these give any text back
SPLIT = ("bpe", "bpe_characters", "wordpiece", "unigram")

anything = (
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(
            [*SEEN, " ", "  ", "\n", "\t", "▁", "#", "##", "<pad>", "<end>", "<unknown>", "<0x41>", "é", "日", "👩‍🚀"]
        )
    ).map("".join)
).filter(lambda text: not any(name in text for name in SPECIAL))  # which are tokens wherever they stand
tokenised = st.lists(st.text(alphabet=SEEN, min_size=1, max_size=12), min_size=1, max_size=8).map(" ".join)


@cache
def tokenizer(kind: str, **how: str) -> Tokenizer:
    return train(TEXTS, kind, 1000, SPECIAL, **how)


def every() -> list[Tokenizer]:
    return [tokenizer(kind) for kind in KINDS]
