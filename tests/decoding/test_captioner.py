"""A source is what a model encodes: images are captioned by the very searches that serve translators and decoders."""

import sys
from dataclasses import replace

import pytest
import torch

import heedful
from heedful.attention import Context, Everything
from heedful.decoding import Decoding, begin, search, stream
from heedful.decoding.chat_template import Chat
from heedful.errors import Refusal
from heedful.models import build
from heedful.models.text.transformer import BEGIN, END, PAD, SPECIAL
from heedful.models.writer import Beginning, Writer
from tests.decoding.toys import KINDS, beam, greedy, same, sample, sources, writer

NEW = 9


class Captioner(Writer):
    """A vision transformer that sees, and the decoder of a translator that looks at its states."""

    special, reads = SPECIAL, frozenset({"image"})

    def __init__(self, **words):
        super().__init__()
        self.text = writer(4, **words)
        self.eye = build("vit", channels=1, high=16, wide=16, patch=4, width=16, heads=2, depth=1, classes=3).double()
        self.outputs = self.text.outputs

    def forward(self, image, target):
        return self.decode(target, self.begin({"image": image}))

    def begin(self, batch):
        states = 9 * self.eye.encode(batch["image"])  # so that images differ by more than what is written
        prompt = torch.full((len(states), 1), BEGIN)
        return Beginning.of(Context(states, Everything()), prompt, torch.full((len(states),), states.shape[1]))

    def states(self, tokens, context, memory=None, positions=None):
        return self.text.states(tokens, context, memory, positions)

    def memory(self, beams=1):
        return self.text.memory(beams)


def images(count=5):
    torch.manual_seed(0)
    return torch.rand(count, 1, 16, 16, dtype=torch.float64)


def flat(found):
    return [one for some in found for one in (some if isinstance(some, list) else [some])]


@pytest.mark.parametrize("kind", ["sine", "rotary", "alibi", "additive"])
@pytest.mark.parametrize("find", [greedy, beam, sample], ids=["greedy", "beam", "sample"])
def test_a_caption_is_the_same_with_memory_and_without_and_beside_others(find, kind):
    model = Captioner(**KINDS[kind]).eval()
    fast = find(model, images(), max_new_tokens=NEW)
    same(flat(fast), flat(find(model, images(), max_new_tokens=NEW, remember=False)))
    assert len({round(one.score, 6) for one in flat(fast)}) >= 5  # it does see
    if find is not sample:
        same(flat(fast), flat(find(model, image[None], max_new_tokens=NEW)[0] for image in images()))


@pytest.mark.parametrize("how", [{}, {"temperature": 1.3, "top_k": 8}])
def test_a_caption_is_streamed_as_it_is_found(how):
    model, decoding = Captioner().eval(), Decoding(max_new_tokens=NEW, **how)
    for number, [expected] in enumerate(search(model, {"image": images()}, decoding, seed=3)):
        batch = {"image": images()[number : number + 1]}
        assert tuple(stream(model, batch, decoding, 3, number)) == expected.tokens


def test_a_caption_is_at_most_fifty_tokens_longer_than_there_are_patches():
    model = Captioner().eval()
    model.special = replace(SPECIAL, never=(PAD, BEGIN, END))
    assert {len(one.tokens) for one in greedy(model, images(2))} == {1 + 16 + 50}  # the class token is read too


def test_a_captioner_is_looked_into_as_it_looks_at_patches():
    model = Captioner().eval()
    context = begin(model, {"image": images(2)})
    with heedful.look(model) as seen:
        model.decode(torch.tensor([[BEGIN, 5, 7]]).expand(2, -1), context)
    [cross] = [path for path in seen.paths if path.endswith("blocks.1.cross")]
    assert seen.weights(cross).shape == (2, 2, 3, 17)


def test_who_reads_images_is_asked_with_no_text():
    with pytest.raises(Refusal, match=r"'Captioner' reads image, not prompts; ask it by decoding\.search"):
        heedful.generate(Captioner(), [3, 4])
    with pytest.raises(Refusal, match="the batch has no image, which the model reads"):
        search(Captioner(), {"prompt": torch.tensor([[3]])}, Decoding())
    with pytest.raises(Refusal, match="'Captioner' does not chat"):
        Chat(Captioner(), Decoding())


@pytest.mark.parametrize("kind", ["learned", "rotary", "alibi"])
def test_targets_go_on_with_prompts_of_unequal_length_each_as_it_would_alone(kind):
    model, source = writer(4, **KINDS[kind]), sources((7, 3, 5))
    prompts = [[BEGIN, 5, 7], [BEGIN], [BEGIN, 9]]
    filled = torch.tensor([[*row, *[-1] * (3 - len(row))] for row in prompts])
    for decoding in (Decoding(max_new_tokens=NEW), Decoding(beams=3, max_new_tokens=NEW)):
        together = search(model, {"source": source, "prompt": filled}, decoding)
        for at, row in enumerate(prompts):
            alone = {"source": source[at : at + 1], "prompt": torch.tensor([row])}
            same(together[at], search(model, alone, decoding)[0])
    room = model.room(begin(model, {"source": source, "prompt": filled}))
    assert room == (model.spec.length - 2 if kind == "learned" else sys.maxsize - 2)  # the last is never read
