"""Attention that learns from given alignments: what it adds to the loss, where its gradient goes, and that it helps."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.data.collate import Batch
from heedful.data.formats import pharaoh
from heedful.data.toys.invented_language import sentences
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.alignment import agreement
from heedful.metrics.alignment_error import Gaze
from heedful.pipelines.translation_pipeline import align_words
from heedful.tasks import TASKS
from heedful.training import run
from heedful.training.loop import Loop
from tests.judging import judged
from tests.training.runs import CPU, first_samples, loop_of, short

GUIDED = "decoder.blocks.0.cross"  # of two layers, the last but one
WIDTH = 16  # of a head
PRECISE = {"training__dtype": "float64", "objective__guidance": 1}


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    return loop_of(tmp_path_factory.mktemp("guided"), short("translate", **PRECISE))


def added(loop: Loop, batch: Batch, **terms: float) -> tuple[Tensor, dict[str, Tensor]]:
    """What guidance adds to the loss, and to the gradient of each weight."""
    found = []
    for guidance in (0.0, 0.7):
        loop.model.zero_grad()
        torch.manual_seed(1)  # the same dropout, where there is some
        total, _ = judged(loop.task, loop.model, batch, guidance=guidance, **terms)
        total.backward()
        slopes = {n: p.grad.clone() for n, p in loop.model.named_parameters() if p.grad is not None}
        found.append((total.detach(), slopes))
    (plain, before), (guided, after) = found
    return (guided - plain) / 0.7, {name: (after[name] - before[name]) / 0.7 for name in after}


# ---------------------------------------------------------------------- the loss


def test_a_target_sub_word_is_guided_evenly_to_all_sub_words_of_the_words_it_is_linked_to(loop: Loop) -> None:
    samples = first_samples(loop, 9)
    guide = loop.task.batch(samples)["guide"]
    for row, sample in zip(guide, samples, strict=True):
        words = [loop.task.tokenizer.words(ids)[1] for ids in (sample.source, sample.target)]
        linked = sample.texts.links.sure
        wanted = torch.zeros_like(row)
        for t, target in enumerate(words[1]):
            places = [s for s, source in enumerate(words[0]) if (source, target) in linked]
            wanted[t, places] = 1 / len(places)  # every target word of the invented language is linked
        torch.testing.assert_close(row, wanted)
    assert len({*guide.flatten().tolist()}) > 3  # some words are linked to several sub-words


def test_guidance_is_the_cross_entropy_of_the_first_head_of_the_layer_before_the_last(loop: Loop) -> None:
    samples = first_samples(loop, 9)
    batch = loop.task.batch(samples)
    with torch.no_grad(), look(loop.model) as seen:
        loop.model(batch["source"], batch["target"])
    weights = seen.weights(GUIDED)[:, 0]
    places = batch["guide"] > 0
    wanted = -(batch["guide"].double()[places] * weights[places].log()).sum()
    found, _ = added(loop, batch)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=0)


@pytest.mark.parametrize("consistency", [0.0, 1.0])
def test_the_guidance_of_a_batch_is_the_sum_over_its_samples(loop: Loop, consistency: float) -> None:
    samples = first_samples(loop, 6)
    assert len({loop.task.length(sample) for sample in samples}) > 1  # some are padded
    alone = [added(loop, loop.task.batch([sample]), consistency=consistency)[0] for sample in samples]
    together, _ = added(loop, loop.task.batch(samples), consistency=consistency)
    torch.testing.assert_close(together, torch.stack(alone).sum(), rtol=1e-9, atol=0)


def test_two_passes_are_guided_by_their_mean(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, short("translate", model__dropout=0.3, **PRECISE))
    batch = loop.task.batch(first_samples(loop, 6))
    once, _ = added(loop, batch)
    twice, _ = added(loop, batch, consistency=1.0)
    assert twice == pytest.approx(float(once), rel=0.2) and twice != once


def test_guidance_is_not_counted(loop: Loop) -> None:
    batch = loop.task.batch(first_samples(loop, 6))
    counts = [int(judged(loop.task, loop.model, batch, guidance=share)[1]) for share in (0.0, 1.0)]
    assert counts[0] == counts[1] == int((batch["answer"] != 0).sum())


def test_a_sample_without_any_link_adds_nothing(loop: Loop) -> None:
    batch = loop.task.batch(first_samples(loop, 3))
    batch["guide"][1] = 0
    rest = loop.task.batch([first_samples(loop, 3)[at] for at in (0, 2)])
    torch.testing.assert_close(added(loop, batch)[0], added(loop, rest)[0], rtol=1e-10, atol=0)


# ---------------------------------------------------------------------- its gradient


def test_the_gradient_of_guidance_goes_through_the_queries_and_keys_of_the_guided_head_and_what_is_before(
    loop: Loop,
) -> None:
    _, slopes = added(loop, loop.task.batch(first_samples(loop, 6)))
    scale = max(float(slope.abs().max()) for slope in slopes.values())
    reached = {name for name, slope in slopes.items() if slope.abs().max() > 1e-9 * scale}
    behind = {name for name in slopes if name.startswith(("decoder.blocks.1.", "decoder.norm."))}
    behind |= {f"{GUIDED}.join.weight", f"{GUIDED}.join.bias", "decoder.blocks.0.norm3.weight"}
    behind |= {name for name in slopes if name.startswith("decoder.blocks.0.feedforward.")}
    assert behind and not reached & behind
    assert {f"{GUIDED}.project.to_q.weight", f"{GUIDED}.project.to_kv.weight", "encoder.norm.weight"} <= reached
    for part in ("weight", "bias"):
        queries, keys = slopes[f"{GUIDED}.project.to_q.{part}"], slopes[f"{GUIDED}.project.to_kv.{part}"]
        assert queries[:WIDTH].abs().max() > 1e-6 * scale
        assert queries[WIDTH:].abs().max() <= 1e-9 * scale  # other heads
        assert keys[WIDTH:].abs().max() <= 1e-9 * scale  # other heads, and all values
    assert slopes[f"{GUIDED}.project.to_kv.weight"][:WIDTH].abs().max() > 1e-6 * scale


# ---------------------------------------------------------------------- what comes of it


def rate_after(steps: int, folder: Path, guidance: float) -> float:
    """The error rate of the guided head after some steps."""
    sizes = {"data__samples": 1200, "data__held_out": 60, "training__tokens": 512, "training__warmup": 10}
    sizes |= {"training__steps": steps, "training__average": 0}
    loop = loop_of(folder, short("translate", objective__guidance=guidance, **sizes))
    for step in range(steps):
        loop.step(loop.portions.of(loop.portions.samples(step)))
        loop.progress.step += 1
    learned = replace(loop.task.learned, gaze=Gaze(GUIDED, 0, False))  # type: ignore[attr-defined]
    shown = list(align_words(loop.model, loop.splits.test, learned))
    return agreement([one.links for one in shown], [one.gold.sure for one in shown if one.gold]).error_rate


def test_a_guided_head_aligns_better_after_as_many_steps(tmp_path: Path) -> None:
    assert rate_after(40, tmp_path, guidance=1.0) < 0.5 < 0.75 < rate_after(40, tmp_path, guidance=0.0)


# ---------------------------------------------------------------------- what it needs


def parallel(folder: Path, count: int = 120, aligned: bool = True) -> dict[str, Any]:
    phrases = sentences(count, 3)
    lines = {
        "source": [phrase.source for phrase in phrases],
        "target": [phrase.target for phrase in phrases],
        "alignment": [pharaoh.write(phrase.links) for phrase in phrases],
    }
    for name, texts in lines.items():
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    sides = ("source", "target", "alignment")[: 3 if aligned else 2]
    return {f"data__train__{side}": folder / side for side in sides}


def test_guidance_needs_alignments_to_learn_from(tmp_path: Path) -> None:
    bare = short("translate", objective__guidance=1, **parallel(tmp_path, aligned=False))
    with pytest.raises(
        Refusal, match=r"^objective\.guidance learns from alignments; name them with data\.train\.alignm"
    ):
        run.prepare(bare, CPU)
    ready = run.prepare(short("translate", objective__guidance=1, **parallel(tmp_path)), CPU)
    assert "guide" in ready.task.batch(ready.splits.train[:3])


def test_only_what_is_learned_from_needs_alignments(tmp_path: Path) -> None:
    changes = parallel(tmp_path)
    for split in ("valid", "test"):
        changes |= {f"data__{split}__{side}": tmp_path / side for side in ("source", "target")}
    ready = run.prepare(short("translate", objective__guidance=1, **changes), CPU)
    assert all(sample.texts.links is None for sample in ready.splits.valid)
    assert ready.task.score(ready.model, ready.splits.valid[:3])["perplexity"] > 1


@pytest.mark.parametrize("recipe", ["reverse", "sets", "series"])
def test_guidance_is_for_translations(recipe: str) -> None:
    with pytest.raises(Refusal, match=r"^unknown key 'objective\.guidance'; did you mean 'objective\.guided'\?"):
        run.prepare(short(recipe, objective__guidance=0.5), CPU)


def test_a_compiled_model_cannot_be_guided() -> None:
    with pytest.raises(Refusal, match=r"^objective\.guidance looks into the model, .*; leave training\.compile out$"):
        run.prepare(short("translate", objective__guidance=1, training__compile="true"), CPU)


@pytest.mark.parametrize("kind", ["words(size=60)", "characters", "unigram(size=120)", "wordpiece(size=150)"])
def test_guidance_means_the_words_of_the_text_whatever_the_tokenizer(tmp_path: Path, kind: str) -> None:
    reader = TASKS["translation"].reader("invented")(name="invented", samples=200, held_out=40, tokenizer=kind)
    task, splits = TASKS["translation"].open(reader, 1)
    task = task.configured({"guidance": 1.0}, splits)
    for sample in (*splits.train[:60], *splits.valid):
        source, target = task.learned.words(sample)
        assert max(source) + 1 == len(sample.texts.source.split())
        assert max(target) + 1 == len(sample.texts.target.split())
    assert torch.isfinite(task.batch(splits.train[:60])["guide"]).all()
