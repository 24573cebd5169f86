"""Variations: the same as PIL's where PIL has them, and pure functions of seed, epoch and sample."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps

from heedful.data.images.decode import Size
from heedful.data.sample_dice import dice_of as dice_of_array
from heedful.data.sample_dice import draw, mix_bits
from heedful.data.toys.drawn_shapes import draw as drawn
from heedful.data.transforms import MIXES, VARIATIONS, colour, geometry, mixing, policies
from heedful.data.transforms.mixing import quantiles
from heedful.data.transforms.moves import affine, mirror_places, sample_pixels
from heedful.data.transforms.policies import OPERATIONS, SHEAR, OneOfMany
from heedful.errors import Refusal
from heedful.pipelines.image_preprocessing import augmentation_of
from heedful.training.spec.recipes import resolve

SIZE = Size(3, 12, 20)


def dice_of(seed: int, epoch: int, samples: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(dice_of_array(seed, epoch, samples))


def levels(count: int = 6, size: Size = SIZE, seed: int = 0) -> torch.Tensor:
    random = np.random.default_rng(seed)
    made = drawn(random.integers(0, 5, count), size, random)
    made[0] = random.integers(0, 256, made[0].shape)  # noise, and
    made[1] = 77  # a plain one
    return torch.from_numpy(made)


def pil(images: torch.Tensor) -> list[Image.Image]:
    return [Image.fromarray(one.permute(1, 2, 0).numpy()) for one in images]


def back(images: list[Image.Image]) -> torch.Tensor:
    return torch.stack([torch.from_numpy(np.array(one)).permute(2, 0, 1) for one in images]).float()


STRENGTHS = torch.tensor([0.05, 0.4, 1.0, 1.3, 1.99, 0.7])


@pytest.mark.parametrize(
    ("own", "theirs", "apart"),
    [
        (colour.brightness, ImageEnhance.Brightness, 1.01),
        (colour.saturation, ImageEnhance.Color, 2.01),
        (colour.contrast, ImageEnhance.Contrast, 2.01),
        (colour.sharpness, ImageEnhance.Sharpness, 2.01),
    ],
)
def test_a_change_of_shades_is_pils_to_a_rounding(own, theirs, apart):
    images = levels()
    wanted = [theirs(one).enhance(s) for one, s in zip(pil(images), STRENGTHS.tolist(), strict=True)]
    found = own(images / 255, STRENGTHS) * 255
    assert (found - back(wanted)).abs().max() <= apart


@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        (colour.autocontrast, ImageOps.autocontrast),
        (colour.equalise, ImageOps.equalize),
        (lambda x: colour.posterise(x, torch.full((len(x),), 3.0)), lambda one: ImageOps.posterize(one, 3)),
        (lambda x: colour.solarise(x, torch.full((len(x),), 100 / 255)), lambda one: ImageOps.solarize(one, 100)),
    ],
)
def test_a_change_of_levels_is_pils(own, theirs):
    images = levels()
    assert (own(images / 255) * 255 - back([theirs(one) for one in pil(images)])).abs().max() <= 1.01


def test_a_turned_moved_or_sheared_image_is_pils():
    size = Size(3, 25, 31)
    images, none = levels(size=size)[2:] / 255, torch.zeros(4)
    moved = sample_pixels(images, affine((none, none), none, (none + 2 * 3 / 31, none - 2 * 2 / 25), 25 / 31), 0.5)
    torch.testing.assert_close(moved[..., 2:, :-3], images[..., :-2, 3:], rtol=0, atol=1e-4)
    torch.testing.assert_close(moved[..., :2, :], torch.full_like(moved[..., :2, :], 0.5), rtol=0, atol=1e-4)
    for shears, turn in ((0.4, 0.0), 0.0), ((0.0, -0.3), 0.0), ((0.0, 0.0), 0.7):
        pair = (none + shears[0], none + shears[1])
        made = sample_pixels(images, affine(pair, none + turn, (none, none), 25 / 31), 0.5)
        if turn:
            theirs = [one.rotate(-np.degrees(turn), Image.Resampling.BILINEAR) for one in pil((images * 255).byte())]
        else:
            data = (1, shears[0], -shears[0] * 12.5, shears[1], 1, -shears[1] * 15.5)
            theirs = [
                one.transform((31, 25), Image.Transform.AFFINE, data, Image.Resampling.BILINEAR)
                for one in pil((images * 255).byte())
            ]
        gap = (made * 255 - back(theirs)).abs()[..., 9:-9, 9:-9]
        assert gap.max() < 3, (shears, turn, gap.max())


def test_what_is_turned_stays_as_far_from_the_middle_and_turns_both_ways_up_to_its_degrees():
    y, x = torch.meshgrid(torch.arange(33.0) - 16, torch.arange(33.0) - 16, indexing="ij")
    dot = torch.exp(-((x - 9) ** 2 + y**2) / 4).expand(200, 1, -1, -1)
    made = VARIATIONS["turn"](degrees=60)(dot, dice_of(1, 1, np.arange(200)))[:, 0]
    across, down = ((made * one).sum((1, 2)) / made.sum((1, 2)) for one in (x, y))
    assert ((across**2 + down**2).sqrt() - 9).abs().max() < 0.1
    angles = torch.rad2deg(torch.atan2(down, across))
    assert angles.min() < -50 and angles.max() > 50 and angles.abs().max() < 60.5
    plain = torch.full((3, 1, 8, 12), 0.3)
    torch.testing.assert_close(VARIATIONS["turn"]()(plain, dice_of(1, 1, np.arange(3))), plain)


def test_colours_turn_about_grey_and_some_images_lose_them():
    images = levels(300).float() / 255
    third = torch.full((300,), 1 / 3)
    torch.testing.assert_close(colour.hue(images, third), images.roll(1, 1), rtol=0, atol=1e-6)  # red becomes green
    torch.testing.assert_close(colour.hue(images, 0 * third), images, rtol=0, atol=1e-6)
    one, two = (colour.hue(0.4 + 0.1 * images, turn * third) for turn in (0.3, -0.7))  # where nothing is cut off
    torch.testing.assert_close(colour.hue(one, -0.3 * third), 0.4 + 0.1 * images, rtol=0, atol=1e-6)
    torch.testing.assert_close(colour.hue(two, third), one, rtol=0, atol=1e-6)
    dice = dice_of(1, 1, np.arange(300))
    made = VARIATIONS["grey"](chance=0.3)(images, dice)
    without = (made == colour.grey(images)).all(1).flatten(1).all(1)
    assert 0.2 < without.float().mean() < 0.4 and torch.equal(made[~without], images[~without])
    turned, plain = (VARIATIONS["colour"](strength=0.2, hue=hue)(images, dice) for hue in (0.1, 0.0))
    assert not torch.equal(turned, plain)
    shades = images[:, :1]
    assert torch.equal(colour.hue(shades, third), shades)


@pytest.mark.parametrize("word", [*VARIATIONS, *MIXES, "trivial", "crop(padding=3, reflect=True)"])
def test_an_image_is_varied_alike_whatever_batch_it_is_in(word):
    augment = augmentation_of([word], seed=3)
    images = levels(8)
    dice = dice_of(3, 5, np.arange(8))
    batch = {"images": images, "dice": dice, "other_images": images.roll(1, 0), "other_dice": dice.roll(1, 0)}
    whole, shares = augment(batch)
    for some in ([2], [5, 1], [7, 3, 0]):
        part, share = augment({name: tensor[some] for name, tensor in batch.items()})
        torch.testing.assert_close(part, whole[some], rtol=0, atol=1e-6)
        assert share is shares is None or torch.equal(share, shares[some])
    assert whole.shape == images.shape and whole.isfinite().all() and whole.min() >= -1e-6 and whole.max() <= 1 + 1e-6


@pytest.mark.parametrize("word", [*VARIATIONS, *MIXES])
def test_another_epoch_seed_or_sample_is_varied_otherwise(word):
    image = levels(64)[:1].expand(64, -1, -1, -1)
    other = levels(3)[2:].expand(64, -1, -1, -1)

    def made(seed: int, epoch: int) -> torch.Tensor:
        dice = dice_of(seed, epoch, np.arange(64))
        return augmentation_of([word])({"images": image, "dice": dice, "other_images": other, "other_dice": dice})[0]

    first = made(1, 1)
    assert torch.equal(first, made(1, 1))
    assert not torch.equal(first, made(1, 2)) and not torch.equal(first, made(2, 1))
    assert len(first.flatten(1).unique(dim=0)) > 1


def test_no_two_variations_throw_the_same_dice(monkeypatch):
    thrown: dict[str, set[int]] = {}
    for word in (*VARIATIONS, *MIXES, "colour(hue=0.1)"):
        asked: set[int] = set()

        def counted(dice, count, purpose=0, asked=asked):
            asked.add(purpose)
            return draw(dice, count, purpose)

        for module in (geometry, mixing, policies):
            monkeypatch.setattr(module, "draw", counted)
        dice = dice_of(1, 1, np.arange(4))
        images = levels(4)
        augmentation_of([word])({"images": images, "dice": dice, "other_images": images, "other_dice": dice})
        thrown[word] = asked
    instead = {"colour", "colour(hue=0.1)"}, {*MIXES}  # of these an image is given one alone
    for one, two in itertools.combinations(thrown, 2):
        assert thrown[one] and thrown[two]
        assert any({one, two} <= some for some in instead) or not thrown[one] & thrown[two], (one, two)


def test_dice_of_arrays_and_of_tensors_are_the_same():
    numbers = np.random.default_rng(0).integers(-(1 << 63), (1 << 63) - 1, 1000)
    assert np.array_equal(mix_bits(numbers), mix_bits(torch.from_numpy(numbers)).numpy())


def test_dice_are_even_and_those_of_purposes_and_samples_do_not_agree():
    one, two = (draw(dice_of(0, 0, np.arange(4096)), 2, purpose) for purpose in (0, 1))
    both = torch.cat((one, two), 1)
    assert both.min() >= 0 and both.max() < 1
    assert (both.mean(0) - 0.5).abs().max() < 0.02 and (both.std(0) - 12**-0.5).abs().max() < 0.01
    assert (torch.corrcoef(both.T) - torch.eye(4)).abs().max() < 0.06
    assert torch.corrcoef(torch.stack((both[1:, 0], both[:-1, 0])))[0, 1].abs() < 0.06


@pytest.mark.parametrize("strength", [0.1, 0.4, 1.0, 8.0])
def test_shares_of_a_mix_are_drawn_from_its_beta(strength):
    random = np.random.default_rng(0).beta(strength, strength, 200_000)
    table = quantiles(strength)
    assert table[0] == 0 and table[-1] == 1 and (np.diff(table) >= 0).all()
    shares = np.linspace(0, 1, 101)[1:-1]
    found = np.interp(shares, np.linspace(0, 1, len(table)), table)
    assert np.abs(np.quantile(random, shares) - found).max() < 0.02


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 40), st.integers(0, 300), st.integers(4, 40), st.integers(4, 40))
def test_the_share_of_cutmix_is_that_of_its_pixels(seed, epoch, high, wide):
    zeros, ones = torch.zeros(5, 1, high, wide), torch.ones(5, 1, high, wide)
    mixed, share = MIXES["cutmix"](1.0)(zeros, ones, dice_of(seed, epoch, np.arange(5)))
    torch.testing.assert_close(mixed.mean((1, 2, 3)), 1 - share)


class Strong(OneOfMany):
    """Another change for each dice, all as strong."""

    most = (SHEAR, 5.0, 1.0, 0.9)
    bits = 2

    def change(self, dice: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        one = torch.ones(len(dice))
        return dice, 0.7 * one, one


def test_each_change_of_trivial_augment_changes_an_image_alone():
    images = levels(size=Size(3, 24, 24))[2:3].expand(OPERATIONS, -1, -1, -1) / 255
    made = Strong()(images, torch.arange(OPERATIONS))
    assert torch.equal(made[0], images[0])
    assert all(not torch.equal(made[at], images[at]) for at in range(1, OPERATIONS))
    assert len(made.flatten(1).unique(dim=0)) == OPERATIONS


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("flipp", "did you mean 'flip'"),
        ("crop(padding=0)", "choose 1 or more"),
        ("mixup(strength=0)", "above 0"),
        ("erase(chance=2)", "from 0 to 1"),
        ("randaugment(changes=9)", "choose 1 to 8"),
        ("resized_crop(least=0)", "above 0"),
        ("turn(degrees=181)", "up to 180"),
    ],
)
def test_words_that_are_none_are_refused(word, said):
    with pytest.raises(Refusal, match=said):
        augmentation_of([word])


@pytest.mark.parametrize("word", [*VARIATIONS, *MIXES])
def test_only_changes_of_shades_ask_what_channels_are(word):
    for channels in (1, 3):
        augmentation_of([word], channels=channels)
    if word in ("colour", "grey", "trivial", "randaugment"):
        with pytest.raises(
            Refusal, match=f"{word} changes shades of grey or .* images have 4 channels; use some of flip"
        ):
            augmentation_of([word], channels=4)
    else:
        augmentation_of([word], channels=4)


@pytest.mark.parametrize("size", [Size(3, 1, 1), Size(1, 2, 5), Size(3, 5, 2)])
@pytest.mark.parametrize("word", [*VARIATIONS, *MIXES, "crop(reflect=True)"])
def test_the_smallest_images_are_varied_too(word, size):
    images = levels(24, size)
    dice = dice_of(1, 2, np.arange(24))
    batch = {"images": images, "dice": dice, "other_images": images.flip(0), "other_dice": dice.flip(0)}
    made, _ = augmentation_of([word])(batch)
    assert made.shape == images.shape and made.isfinite().all() and made.min() >= 0 and made.max() <= 1


def test_an_image_is_mirrored_as_torch_pads_it_and_as_numpy_does_beyond():
    line = torch.arange(7.0)[None, None, None]
    assert torch.equal(
        line[..., mirror_places(torch.arange(-6, 13), 7)], torch.nn.functional.pad(line, (6, 6, 0, 0), "reflect")
    )
    for side in (1, 2, 3):
        wanted = np.pad(np.arange(side), 9, "reflect")
        assert mirror_places(torch.arange(-9, side + 9), side).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("randaugment", ["randaugment"]),
        ("randaugment(changes=2,strength=0.3)", ["randaugment(changes=2,strength=0.3)"]),
        ("[randaugment(changes=2,strength=0.3)]", ["randaugment(changes=2, strength=0.3)"]),
        (
            "[flip, erase(chance=1, least=0.1, most=0.2), mixup]",
            ["flip", "erase(chance=1, least=0.1, most=0.2)", "mixup"],
        ),
        ("flip,crop", ["flip", "crop"]),
        ("[]", []),
    ],
)
def test_a_word_with_several_arguments_is_whole_though_yaml_cuts_it(text, words):
    assert resolve("vit", [f"data.augment={text}"]).data.augment == words
