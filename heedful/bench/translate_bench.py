"""An encoder-decoder of base size: a training step, and greedy and beam search, beside three peers on this CPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from heedful.bench import marian_peer
from heedful.bench.measure import Case, interleave
from heedful.decoding import Decoding, Rules
from heedful.decoding import search as searched
from heedful.errors import Failure
from heedful.inputs.positions import waves
from heedful.models import Transformer, build
from heedful.models.text.transformer import END, PAD, TransformerSpec

PEERS = ("transformers", "ctranslate2")  # beside torch itself; what is not installed is left out
VOCAB, BATCH, LENGTH, NEW, BEAMS = 8000, 32, 32, 40, 5
Contenders = dict[str, Callable[[], Any]]


def cases(rounds: int, said: Callable[[], object]) -> Iterator[tuple[Case, str]]:
    """Every case, with the name of the contender that the others are compared to: the fastest of the peers.

    All have as many threads as torch has: every core, where OMP_NUM_THREADS does not say otherwise.
    """
    torch.manual_seed(0)
    for name, dtype in (("float32", torch.float32), ("bfloat16 autocast", torch.bfloat16)):
        title = f"train step, {name}, {BATCH} x {LENGTH} tokens"
        yield measure_case(title, BATCH * LENGTH, trainers(dtype), rounds, said)
    for title, batch, contenders in writers(torch.get_num_threads()):
        yield measure_case(title, batch * NEW, contenders, rounds, said)


def measure_case(
    name: str, amount: float, contenders: Contenders, rounds: int, said: Callable[[], object]
) -> tuple[Case, str]:
    """The case of some contenders, the first of which is heedful, and the fastest of the others in float32."""
    case = Case(name, "tokens", amount, interleave(contenders, rounds, said=said))
    peers = [peer for peer in list(contenders)[1:] if "int8" not in peer] or list(contenders)
    return case, max(peers, key=case.speed)


def model() -> Transformer:
    """The model of Vaswani et al. (2017) with a vocabulary of 8,000, and dropout where all peers have it."""
    return cast(Transformer, build("transformer", size="base", vocab=VOCAB, order="post", dropout=0.1))


def is_peer_installed(name: str) -> bool:
    """Whether a peer is there."""
    return importlib.util.find_spec(name) is not None


# ---------------------------------------------------------------------- training

Scored = Callable[[Tensor, Tensor], Tensor]


def trainers(dtype: torch.dtype) -> Contenders:
    """A step of each contender: the scores of a batch, their loss, its gradients, and AdamW."""
    source, target = torch.randint(END + 1, VOCAB, (BATCH, LENGTH)), torch.randint(END + 1, VOCAB, (BATCH, LENGTH + 1))
    source[::2, -6:] = PAD  # half of the sources are shorter, so that masks have something to hide
    ours, engine = model(), Engine(model().spec)
    scored: dict[str, tuple[nn.Module, Scored]] = {
        "heedful": (ours, ours),
        "torch.nn.Transformer": (engine, engine),
    }
    if is_peer_installed("transformers"):
        theirs = marian_peer.in_transformers(model())
        scored["transformers MarianMTModel"] = theirs, by_marian(theirs)
    return {name: step(*contender, source, target, dtype) for name, contender in scored.items()}


def by_marian(other: nn.Module) -> Scored:
    """The scores of Hugging Face's model, asked in its own words."""
    return lambda source, target: (
        other(input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target, use_cache=False).logits
    )


def step(learner: nn.Module, scored: Scored, source: Tensor, target: Tensor, dtype: torch.dtype) -> Callable[[], None]:
    """A training step, the same for all."""
    optimiser = torch.optim.AdamW(learner.train().parameters(), lr=1e-4, fused=True)

    def run() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype is torch.bfloat16):
            scores = scored(source, target[:, :-1])
            loss = cross_entropy(scores.flatten(0, 1).float(), target[:, 1:].flatten())
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return run


class Engine(nn.Module):
    """torch.nn.Transformer with tokens, sines and a tied output; dropout on the embeddings and residuals alone."""

    places: Tensor

    def __init__(self, s: TransformerSpec) -> None:
        super().__init__()
        self.table, self.drop = nn.Embedding(s.vocab, s.width), nn.Dropout(s.dropout)
        self.engine = nn.Transformer(s.width, s.heads, s.depth, s.depth, s.hidden or 0, s.dropout, batch_first=True)
        self.engine.encoder.norm = self.engine.decoder.norm = None  # after the last block's own norm, one too many
        self.register_buffer("places", waves(torch.arange(s.length)[None], s.width, torch.float32)[0])
        for part in self.engine.modules():
            if isinstance(part, nn.MultiheadAttention):
                part.dropout = 0.0
            if isinstance(part, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                part.dropout.p = 0.0  # the one within the feed-forward

    def forward(self, source: Tensor, target: Tensor) -> Tensor:  # B S, B T -> B T V
        hidden, future = source == PAD, nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        masks = {"src_key_padding_mask": hidden, "memory_key_padding_mask": hidden, "tgt_mask": future}
        y = self.engine(self.embedded(source), self.embedded(target), tgt_is_causal=True, **masks)
        return linear(y, self.table.weight)

    def embedded(self, tokens: Tensor) -> Tensor:
        """B T -> B T M."""
        scaled = self.table(tokens) * self.table.embedding_dim**0.5
        return self.drop(scaled + self.places[: tokens.shape[1]])


# ---------------------------------------------------------------------- decoding


def writers(threads: int) -> Iterator[tuple[str, int, Contenders]]:
    """The contenders of every search, each seen to have written as many tokens as it should."""
    ours = lively(model().eval())
    searches = [by_heedful(ours)]
    if is_peer_installed("transformers"):
        searches.append(by_transformers(ours))
    if is_peer_installed("ctranslate2"):
        searches.append(by_ctranslate2(ours, threads))
    for batch in (1, BATCH):
        source = torch.randint(END + 1, VOCAB, (batch, LENGTH))
        for beams in (1, BEAMS):
            title = f"{'greedy' if beams == 1 else f'beam {beams}'}, batch {batch}, {LENGTH} tokens in and {NEW} out"
            contenders = {name: run for search in searches for name, run in search(source, beams).items()}
            for name, run in contenders.items():
                wrote = [len(written) for written in run()]
                if wrote != [NEW] * batch:
                    raise Failure(f"{name} wrote {wrote} tokens and not {NEW} for each source; nothing can be compared")
            yield title, batch, contenders


def lively(model: Transformer) -> Transformer:
    """Random signs for the last norm: what has learned nothing would else say its last token again and again."""
    with torch.no_grad():
        last: Tensor = model.get_parameter(f"decoder.blocks.{model.spec.depth - 1}.norm3.weight")
        last.copy_(torch.randint(0, 2, last.shape) * 2.0 - 1.0)
    return model


Search = Callable[[Tensor, int], Contenders]


def by_heedful(ours: Transformer) -> Search:
    """heedful's own searches, in which no answer ends by itself, so that every contender writes as much."""
    rules = Rules(bias={END: marian_peer.NEVER})

    def search(source: Tensor, beams: int) -> Contenders:
        how = Decoding(beams=beams, max_new_tokens=NEW)
        return {"heedful": lambda: [best.tokens for [best] in searched(ours, {"source": source}, how, rules=rules)]}

    return search


def by_transformers(ours: Transformer) -> Search:
    """Hugging Face's `generate`."""
    other: Any = marian_peer.in_transformers(ours).eval()

    def search(source: Tensor, beams: int) -> Contenders:
        asked = {"num_beams": beams, "do_sample": False, "max_new_tokens": NEW, "bad_words_ids": None}
        present = (source != PAD).long()
        return {
            "transformers Marian generate": lambda: other.generate(input_ids=source, attention_mask=present, **asked)[
                :, 1:
            ].tolist()
        }

    return search


def by_ctranslate2(ours: Transformer, threads: int) -> Search:
    """CTranslate2's translators."""
    translators, names = marian_peer.in_ctranslate2(ours, threads), marian_peer.names(ours)

    def search(source: Tensor, beams: int) -> Contenders:
        words = [[names[index] for index in row] for row in source.tolist()]

        def by(translator: Any) -> Callable[[], list[list[str]]]:
            return lambda: [
                found.hypotheses[0]
                for found in translator.translate_batch(words, beam_size=beams, max_decoding_length=NEW)
            ]

        return {f"CTranslate2 {kind}": by(translator) for kind, translator in translators.items()}

    return search
