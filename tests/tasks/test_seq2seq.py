"""One pipeline, one loss and one set of scores serve whatever is read: here images, which are captioned."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from heedful.data.encoded_pairs import encoded_pairs
from heedful.data.parallel_sample import Pair
from heedful.decoding import Decoding, search
from heedful.metrics.metric import gather_metrics, scores
from heedful.models import build
from heedful.models.text.transformer import BEGIN, END
from heedful.pipelines.pairs_learned import PairsLearned
from heedful.pipelines.pipeline import unheard
from heedful.pipelines.seq2seq_pipeline import Seq2Seq, Seq2SeqCollate, Source
from heedful.tasks import TASKS
from heedful.tasks.work import Work
from heedful.tokenizers import Tokenizer
from tests.decoding.test_captioner import Captioner, images
from tests.judging import judged

SHORT = Decoding(max_new_tokens=9)


@dataclass(frozen=True)
class Captioned:
    """An image, what should be written to it, and how both are told in a table."""

    image: torch.Tensor
    target: list[int]
    texts: Pair


class Images(Source):
    """Images, in the field `image`."""

    def accepts(self, given, what, learned):
        return Captioned(given, [], Pair("an image", ""))

    def length(self, sample, learned):
        return 16

    def batch(self, samples, learned):
        return {"image": torch.stack([one.image for one in samples])}

    def as_input(self, sample, learned):
        return sample.texts.source

    def words(self, model, sample, learned):
        return ["class", *(f"patch {at}" for at in range(16))]


def docked():
    """A vision transformer of the house, docked to a decoder of the house."""
    torch.manual_seed(3)
    eye = {"family": "vit", "channels": 1, "high": 16, "wide": 16, "patch": 4, "width": 16, "heads": 2, "depth": 1}
    writer = {"family": "transformer_decoder", "vocab": 12, "width": 24, "heads": 2, "depth": 2}
    made = build("composite", encoder=eye, decoder=writer).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(3.0 if weight.dim() > 1 else 1.0)  # so that images differ by more than what is written
    return made


@pytest.fixture(scope="module", params=[Captioner, docked])
def model(request):
    return request.param().eval()


@pytest.fixture(scope="module")
def work():
    tokenizer = Tokenizer.of_characters(["abcdefgh"])
    task = replace(
        TASKS["pairs"], pipeline=Seq2Seq("an image", Images()), collate=Seq2SeqCollate(source=Images()), views=()
    )
    return Work(task, PairsLearned(tokenizer, search=SHORT))


@pytest.fixture(scope="module")
def samples(work):
    written = [[5, 6], [7], [8, 5, 9], [6], [4, 4]]
    pairs = zip(images(), written, strict=True)
    return [Captioned(image, ids, Pair("an image", work.tokenizer.decode(ids))) for image, ids in pairs]


def test_captions_their_best_and_their_stream_are_what_the_search_finds(model, work):
    for decoding, best in ((SHORT, 1), (SHORT.but(beams=3), 2), (SHORT.but(temperature=1.2), 2)):
        found = search(model, {"image": images()}, decoding, best, seed=3)
        said = list(work.best(model, images(), decoding, best, seed=3))
        assert [[one.tokens for one in some] for some in said] == [[one.tokens for one in some] for some in found]
    plain = [one.plain() for one in work.predict(model, images())]
    assert len(set(plain)) > 1
    assert plain == ["".join(work.stream(model, image, SHORT)) for image in images()]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_the_right_captions_token_by_token(model, work, samples, smoothing):
    loss, count = judged(work, model, work.batch(samples), smoothing=smoothing)
    wanted = torch.zeros((), dtype=torch.float64)
    for one in samples:
        said = model(one.image[None], torch.tensor([[BEGIN, *one.target]]))[0]
        answer = torch.tensor([*one.target, END])
        wanted += cross_entropy(said, answer, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(loss, wanted)
    assert int(count) == sum(len(one.target) + 1 for one in samples)


def test_scores_of_shares_are_those_of_all_and_a_caption_that_is_right_counts(model, work, samples):
    results = work.pipeline.results(model, samples, work.learned, unheard)
    right = [replace(samples[0], target=list(results[0].tokens)), *samples[1:]]
    assert work.score(model, right)["exact"] == pytest.approx(0.2)
    assert 0 < work.score(model, right)["tokens"] < 1
    shares = [
        gather_metrics(work.task.metrics, work.pipeline.results, model, part, work.learned, unheard)
        for part in (right[:2], right[2:])
    ]
    for one, other in zip(*shares, strict=True):
        one.merge(other)
    assert scores(shares[0]) == work.score(model, right)


def test_captions_are_shown_and_looked_into_over_patches(model, work, samples):
    shown = work.show(model, samples[:2])
    assert shown.rows[1][:2] == ("an image", samples[1].texts.target) and shown.right == (False, False)
    seen = work.look(model, samples[0].image)
    crossed = [one for one in seen.maps if one.path.endswith("cross")]
    assert crossed and all(list(one.columns)[:2] == ["class", "patch 0"] for one in crossed)


@pytest.mark.parametrize("name", ["translation", "summarisation"])
def test_merged_scores_of_texts_are_those_of_one_pass(name, translator):
    task, samples = TASKS[name], translator.splits.test[:40]
    shorter = [replace(one, texts=replace(one.texts, target=f"{one.texts.target} and more")) for one in samples[:20]]
    samples = [*shorter, *samples[20:]]
    results, learned = translator.pipeline.results, translator.learned
    whole = gather_metrics(task.metrics, results, translator.model, samples, learned, unheard)
    shares = [
        gather_metrics(task.metrics, results, translator.model, part, learned, unheard)
        for part in (samples[:13], samples[13:])
    ]
    for one, other in zip(*shares, strict=True):
        one.merge(other)
    assert scores(shares[0]) == pytest.approx(scores(whole), rel=1e-5)
    assert len({*scores(whole).values()}) > 1


def test_pairs_are_encoded_once_and_keep_their_places():
    tokenizer = Tokenizer.of_characters(["abc"])
    made = encoded_pairs([Pair("ab", "c"), Pair("c", "ba")], tokenizer.encode_all, len(tokenizer))
    assert [(one.place, tokenizer.decode(one.source), tokenizer.decode(one.target)) for one in made] == [
        (0, "ab", "c"),
        (1, "c", "ba"),
    ]
