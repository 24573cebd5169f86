"""Transforms act on whole samples: what lies on an image moves as its pixels do, whatever transform and kind it is."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from heedful.data.sample_dice import dice_of
from heedful.data.transforms import MIXES, VARIATIONS, Augmentation, Move
from heedful.data.transforms.moves import Affine, Mirror, Shift
from heedful.data.transforms.spatial_sample import BoundingBoxes, Image, Labels, PerObject, Sample, Spatial
from heedful.data.transforms.variation import Variation
from heedful.errors import Refusal

SIZE = (24, 40)
MANY = 40  # images, each by dice of its own
WORDS = [*VARIATIONS, "crop(reflect=True)"]
FAINT = 1e-3


@dataclass(frozen=True, eq=False)
class Keypoints(Spatial, PerObject):
    """A kind of a user's own: N K 2."""

    def moved(self, move: Move) -> "Keypoints":
        return replace(self, values=move.points(self.values.flatten(0, 1)).view_as(self.values))


class Depths(Spatial):
    """A kind that does not say how it is moved."""


def variation(word: str):
    name, _, more = word.partition("(")
    return VARIATIONS[name](**({"reflect": True} if more else {}))


def moves(word: str) -> list[Move]:
    dice = torch.from_numpy(dice_of(3, 1, range(MANY)))
    return [move[at] for part in variation(word).parts for move in [part.draw(dice, SIZE)] for at in range(MANY)]


def boxes(count: int, seed: int = 0, margin: int = 0) -> BoundingBoxes:
    """Boxes of whole pixels, some at the edge; with a margin, within the middle of the image."""
    random = torch.Generator().manual_seed(seed)
    most = torch.tensor([SIZE[1], SIZE[0]])
    size = 4 + (torch.rand(count, 2, generator=random) * (most - 2 * margin - 4) / 2).long()
    first = margin + (torch.rand(count, 2, generator=random) * (most - 2 * margin - size + 1)).long()
    return BoundingBoxes(torch.cat((first, first + size), 1).float())


def with_all(given: BoundingBoxes) -> BoundingBoxes:
    """Boxes, and that of the whole image."""
    return BoundingBoxes(torch.cat((given.values, torch.tensor([[0.0, 0.0, SIZE[1], SIZE[0]]]))))


def over(count: int) -> Tensor:
    """Points all over a box, as shares of its sides."""
    share = torch.linspace(0, 1, count)
    return torch.stack(torch.meshgrid(share, share, indexing="xy"), -1).flatten(0, 1)


def smallest(masks: Tensor) -> Tensor:
    """The smallest boxes around masks: N 4."""
    rows, columns = masks.any(2), masks.any(1)
    low = [some.float().argmax(1) for some in (columns, rows)]
    high = [some.shape[1] - some.flip(1).float().argmax(1) for some in (columns, rows)]
    return torch.stack((*low, *high), 1).float()


def exact() -> list[Move]:
    """Moves of whole pixels, mirrored, shifted and by whole numbers of times larger."""
    twice = torch.eye(2, 3)[None]
    half = torch.tensor([[[0.5, 0.0, 0.5], [0.0, 0.5, -0.5]]])
    return [
        *(Mirror(SIZE, torch.tensor([which])) for which in (True, False)),
        *(Shift(SIZE, torch.tensor([first]), 5, reflect) for first in ([0, 9], [10, 3], [5, 5]) for reflect in (0, 1)),
        Affine(SIZE, twice, (2 * SIZE[0], 3 * SIZE[1])),
        Affine(SIZE, half),
        *moves("flip"),
        *moves("crop"),
        *moves("crop(reflect=True)"),
    ]


def test_the_mask_of_a_box_that_is_moved_by_whole_pixels_is_the_mask_that_is_moved():
    given = boxes(12)
    for move in exact():
        found, wanted = given.moved(move).masks(move.size), given.masks(SIZE).moved(move)
        assert torch.equal(found.values, wanted.values), move


@pytest.mark.parametrize("word", WORDS)
def test_a_box_that_stays_on_the_image_is_the_smallest_around_its_mask_within_a_pixel(word):
    given, judged = boxes(12, margin=7), 0
    for move in moves(word):
        box, mask = given.moved(move).values, given.masks(SIZE).moved(move).values
        high, wide = move.size
        whole = (box[:, :2] > FAINT).all(1) & (box[:, 2] < wide - FAINT) & (box[:, 3] < high - FAINT)
        assert (box[whole] - smallest(mask[whole])).abs().amax() <= 1 + FAINT if whole.any() else True
        judged += int(whole.sum())
    assert judged > 3 * MANY


@pytest.mark.parametrize("word", WORDS)
def test_a_box_holds_all_that_is_seen_of_an_object_and_nothing_more(word):
    given = with_all(boxes(6, seed=1))
    lattice = over(257)
    for move in moves(word)[::8]:
        most = torch.tensor([move.size[1], move.size[0]])
        for box, was in zip(given.moved(move).values, given.values, strict=True):
            points = move.points(was[:2] + lattice * (was[2:] - was[:2]))
            seen = points[((points > -FAINT) & (points < most + FAINT)).all(1)]
            if not len(seen):
                assert (box[2:] - box[:2]).prod() < 0.2
                continue
            told = torch.cat((seen.amin(0), seen.amax(0)))
            assert ((box - told) * torch.tensor([-1, -1, 1, 1]) >= -2 * FAINT).all(), (box, told)
            assert (box - told).abs().max() < 0.3, (box, told)


@pytest.mark.parametrize("word", WORDS)
def test_a_mask_goes_where_its_points_go_and_nothing_comes_in(word):
    given = with_all(boxes(4, seed=2))
    lattice = over(65)
    for move in moves(word)[::8]:
        most = torch.tensor([move.size[1], move.size[0]])
        for mask, box in zip(given.masks(SIZE).moved(move).values, given.values, strict=True):
            there = move.points(box[:2] + lattice * (box[2:] - box[:2]))
            rows, columns = mask.nonzero().unbind(1)
            true = torch.stack((columns, rows), 1) + 0.5
            assert len(true) == 0 or torch.cdist(true, there).amin(1).max() < 0.8
            inner = move.points(box[:2] + 1.5 + lattice * (box[2:] - box[:2] - 3))
            at = inner[((inner >= 0) & (inner < most)).all(1)].long()
            assert mask[at[:, 1], at[:, 0]].all()


@pytest.mark.parametrize("word", WORDS)
def test_points_go_where_pixels_go(word):
    y, x = torch.meshgrid(torch.arange(SIZE[0]) + 0.5, torch.arange(SIZE[1]) + 0.5, indexing="ij")
    for move in moves(word):
        made = move.pixels(torch.stack((x, y)))  # each pixel tells where it was
        at = torch.stack((x, y), -1).view(-1, 2)
        there = move.points(made.flatten(1).T)
        inner = move.masks(torch.nn.functional.pad(torch.ones(1, SIZE[0] - 4, SIZE[1] - 4), (2,) * 4) > 0.5)[0]
        assert (there - at)[inner.flatten()].abs().max() < 0.02 if inner.any() else True


def sample(place: int, **more: object) -> Sample:
    given = boxes(5, seed=place)
    points = given.values.view(5, 2, 2)
    fields = {
        "boxes": given,
        "masks": given.masks(SIZE),
        "classes": Labels(torch.arange(5)),
        "points": Keypoints(points),
    }
    pixels = torch.rand(3, *SIZE, generator=torch.Generator().manual_seed(place))
    return Sample(place, image=Image(pixels), title="five boxes", **(fields | more))


@pytest.mark.parametrize("word", WORDS)
def test_a_sample_is_varied_as_its_image_is_in_any_batch_and_alike_by_the_same_dice(word):
    augment = Augmentation((variation(word),), seed=5)
    dice = torch.from_numpy(dice_of(5, 2, [3, 8]))
    pixels = torch.stack([sample(place).image.pixels for place in (3, 8)])
    batch = augment.varied(pixels, dice)
    for at, place in enumerate((3, 8)):
        one, again, *later = (augment.of_sample(sample(place), epoch) for epoch in (2, 2, *range(3, 13)))
        torch.testing.assert_close(one.image.pixels, batch[at], rtol=0, atol=1e-6)
        assert torch.equal(one.image.pixels, again.image.pixels) and one["title"] == "five boxes"
        for name in ("boxes", "masks", "classes", "points"):
            assert torch.equal(one[name].values, again[name].values), name
        assert any(not torch.equal(one.image.pixels, other.image.pixels) for other in later)


@pytest.mark.parametrize("word", WORDS)
def test_fields_of_one_object_are_lost_together_when_it_leaves_the_image(word):
    edge = BoundingBoxes(torch.tensor([[0.0, 0, 1, 1], [39, 23, 40, 24], [16, 8, 24, 16]]))
    fields = {"boxes": edge, "masks": edge.masks(SIZE), "classes": Labels(torch.arange(3))}
    fields["points"] = Keypoints(edge.values.view(3, 2, 2))
    for place in range(30):
        one = Augmentation((variation(word),)).of_sample(sample(place, **fields), 1)
        kept = one["classes"].values
        assert all(len(one[name].values) == len(kept) for name in fields)
        assert (one["boxes"].present() & one["masks"].present()).all()
        if word in ("crop", "crop(reflect=True)"):
            shift = Shift(SIZE, variation(word).draw(torch.from_numpy(dice_of(0, 1, [place])), SIZE).first, 4, False)
            seen = edge.masks(SIZE).moved(shift).values.flatten(1).any(1)
            assert torch.equal(kept, seen.nonzero()[:, 0]) and 2 in kept


def test_objects_are_told_by_boxes_alone_or_masks_alone_and_all_stay_where_nothing_tells():
    gone = BoundingBoxes(torch.tensor([[3.0, 3, 3, 9], [3, 3, 9, 9]]))
    classes = Labels(torch.tensor([7, 8]))
    assert Sample(boxes=gone, classes=classes).present()["classes"].values.tolist() == [8]
    assert Sample(masks=gone.masks(SIZE), classes=classes).present()["classes"].values.tolist() == [8]
    assert Sample(classes=classes).present()["classes"].values.tolist() == [7, 8]


@pytest.mark.parametrize("word", VARIATIONS)
def test_a_spatial_kind_that_does_not_say_how_it_is_moved_is_refused(word):
    said = r"a Depths does not say how it is moved; give it a method `moved\(move\)`"
    with pytest.raises(Refusal, match=said):
        Augmentation((variation(word),)).of_sample(sample(1, depths=Depths()), 0)


def test_bare_arrays_mixed_images_and_samples_without_an_image_are_refused():
    with pytest.raises(Refusal, match="boxes is a bare array, which does not say whether it moves with an image; give"):
        Sample(boxes=torch.zeros(2, 4))
    with pytest.raises(Refusal, match="leave mixup and cutmix out"):
        Augmentation((), (MIXES["mixup"](),)).of_sample(sample(1), 0)
    with pytest.raises(Refusal, match="a sample has 0 images, and one is varied"):
        Augmentation((VARIATIONS["flip"](),)).of_sample(Sample(title="nothing"), 0)


class Upside(Variation):
    """A transform of a user's own: every other image is upside down."""

    def draw(self, dice, size):
        upside = torch.tensor([[[1.0, 0, 0], [0, -1, 0]]]).expand(len(dice), -1, -1)
        return Affine(size, upside, which=dice % 2 == 0)


class Still(BoundingBoxes):
    """Boxes that stay where they are."""

    def moved(self, move):
        return self


class Strayed(Keypoints):
    """Points that go elsewhere than pixels."""

    def moved(self, move):
        return replace(super().moved(move), values=super().moved(move).values + 2)


VARIED = {word: (word,) for word in WORDS} | {"own": (), "several": ("flip", "crop")}


def unshaded(word: str) -> Augmentation:
    """Transforms by name, or one of a user's own, of which none changes shades: a pixel tells where it was."""
    parts = [part for name in VARIED[word] for part in variation(name).parts]
    parts += [] if word in WORDS else [Upside()]
    for part in parts:
        vars(part)["shaded"] = lambda images, dice: images
    return Augmentation(tuple(parts), seed=4)


def check_moves_together(augment: Augmentation, kind: type[BoundingBoxes], own: type[Keypoints]) -> int:
    """Whether the objects of varied samples are where their pixels are; how many samples were moved at all."""
    y, x = torch.meshgrid(torch.arange(SIZE[0]) + 0.5, torch.arange(SIZE[1]) + 0.5, indexing="ij")
    moved = 0
    for place in range(20):
        given = boxes(5, seed=place, margin=5)
        middle = (given.values[:, None, :2] + given.values[:, None, 2:]) / 2
        fields = {"masks": given.masks(SIZE), "boxes": kind(given.values), "middles": own(middle)}
        fields |= {"image": Image(torch.stack((x, y))), "which": Labels(torch.arange(5))}
        one = augment.of_sample(Sample(place, **fields), 1)
        was = one.image.pixels
        moved += not torch.equal(was, torch.stack((x, y)))
        for at, number in enumerate(one["which"].values.tolist()):
            rows, columns = one["masks"].values[at].nonzero().unbind(1)
            left, top, right, bottom = given.values[number]
            assert (was[0, rows, columns] > left - 1).all() and (was[0, rows, columns] < right + 1).all()
            assert (was[1, rows, columns] > top - 1).all() and (was[1, rows, columns] < bottom + 1).all()
            box, middle_now = one["boxes"].values[at], one["middles"].values[at, 0]
            low, high = torch.stack((columns.min(), rows.min())), torch.stack((columns.max(), rows.max())) + 1
            edge = torch.tensor([was.shape[2], was.shape[1]])
            if (low > 1).all() and (high < edge - 1).all():
                assert (torch.cat((low, high)) - box).abs().max() < 1.5
                across, down = middle_now.long().tolist()
                assert (was[:, down, across] - middle[number, 0]).abs().max() < 3
    return moved


@pytest.mark.parametrize("word", VARIED)
def test_boxes_masks_and_kinds_of_ones_own_move_with_the_pixels_of_a_whole_sample(word):
    moved = check_moves_together(unshaded(word), BoundingBoxes, Keypoints)
    assert (moved > 3) == any(type(part).draw is not Variation.draw for part in unshaded(word).variations), moved
    if moved:
        with pytest.raises(AssertionError):
            check_moves_together(unshaded(word), Still, Keypoints)


def test_points_of_ones_own_that_stray_from_the_pixels_break_the_law():
    with pytest.raises(AssertionError):
        check_moves_together(unshaded("several"), BoundingBoxes, Strayed)
