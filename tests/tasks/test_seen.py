"""What is drawn over an image, and what its titles say of it."""

import pytest
import torch

import heedful
from heedful.data.readers.labelled_images import Shapes
from heedful.looking.overlay import caption, told_weights
from heedful.looking.rollout import rollout
from heedful.tasks import TASKS
from heedful.views.rollout_over_image import rolled_over

SMALL = {"width": 16, "heads": 2, "depth": 2, "hidden": 16, "patch": 4}
LAYERS = ("encoder.blocks.0.attention", "encoder.blocks.1.attention")
ROLLED, MEAN = "rollout through all layers", ", mean over all patches"


def looked(family: str, task: str = "image-classification", **more: object):
    work, splits = TASKS[task].open(Shapes(samples=20, held_out=4, pixels=[8, 12]), 7)
    torch.manual_seed(0)
    model = heedful.build(family, **work.facts(), **SMALL, **more).eval()
    return model, work.look(model, work.as_input(splits.train[0]))


@pytest.mark.parametrize(
    ("family", "more", "titles"),
    [
        ("vit", {}, (ROLLED, "segments of the last layer", *LAYERS)),
        ("vit", {"pool": "mean"}, (ROLLED + MEAN, *(layer + MEAN for layer in LAYERS))),
        (
            "vit",
            {"distilled": True},
            (f"{ROLLED}, the class token", f"{ROLLED}, the distillation token", "segments of the last layer", *LAYERS),
        ),
        (
            "vit",
            {"distilled": True, "pool": "mean", "leading": 2},
            (ROLLED + MEAN, f"{ROLLED}, the distillation token", *(layer + MEAN for layer in LAYERS)),
        ),
        ("convit", {"local_up_to_layer": 1}, (ROLLED, "segments of the last layer", LAYERS[0] + MEAN, LAYERS[1])),
    ],
)
def test_a_title_says_where_all_patches_look_and_no_class_token(family, more, titles):
    _, seen = looked(family, **more)
    assert tuple(part.title for part in seen.sections) == titles


def test_both_tokens_of_a_taught_model_are_rolled_out():
    model, seen = looked("vit", distilled=True)
    assert seen.maps[0].rows[:3] == ("class", "distillation", "0,0")
    held = rollout([map.weights for map in seen.maps], "mean")
    for at, part in enumerate(seen.sections[:2]):
        torch.testing.assert_close(part.weights[0][1], held[at, 2:].view(2, 3))
        assert f"the {('class', 'distillation')[at]} token's outputs" in part.note
    by_gradient = [dict(part.weights)["by gradient"] for part in seen.sections[:2]]
    assert not torch.equal(*by_gradient)
    titles = [part.title for part in rolled_over(seen.maps, 0.9, seen.sections, model)]
    assert titles == [f"{ROLLED}, 90% dropped, the {name} token" for name in ("class", "distillation")]


def test_a_title_says_that_windows_are_taken_together():
    task, splits = TASKS["image-classification"].open(Shapes(samples=20, held_out=4, pixels=[16, 16]), 7)
    sizes = {"width": 8, "heads": 1, "depths": [1, 1], "patch": 2, "window": 4}
    model = heedful.build("swin", **task.facts(), **sizes).eval()
    maps = task.look(model, task.as_input(splits.train[0])).maps
    assert maps and all(map.title == f"{map.path}, mean over windows" for map in maps)


@pytest.mark.parametrize(("discard", "titles"), [(0.0, []), (0.5, []), (0.9, [f"{ROLLED}, 90% dropped"])])
def test_a_rollout_that_is_drawn_anyway_is_not_drawn_twice(discard, titles):
    model, seen = looked("vit")
    assert [part.title for part in rolled_over(seen.maps, discard, seen.sections, model)] == titles
    assert rolled_over(seen.maps, 0.9, [], model) == []


def test_an_autoencoders_rollouts_are_drawn_over_what_is_shown_and_over_the_image():
    model, seen = looked(
        "mae", "masked-autoencoding", mask_ratio=0.5, decoder_width=16, decoder_depth=1, decoder_heads=2
    )
    encoder, decoder = rolled_over(seen.maps, 0.5, seen.sections, model)
    assert encoder.title == "rollout through the encoder, 50% dropped, mean over the patches shown"
    assert decoder.title == "rollout through the decoder, 50% dropped, mean over all patches"
    images = dict(seen.sections[0].pictures)
    assert encoder.image is images["shown"] and decoder.image is images["image"]
    layers = [map for map in seen.maps if map.path.startswith("encoder")]
    held = rollout([map.weights for map in layers], "mean", 0.5)[1:, 1:].mean(0)
    told = {f"{row},{column}": encoder.weights[0][1][row, column] for row in range(2) for column in range(3)}
    torch.testing.assert_close(torch.stack([told.pop(name) for name in layers[0].columns[1:]]), held)
    assert len(told) == 3 and all(weight.isnan() for weight in told.values())
    assert "nan" not in caption(*encoder.weights[0]) and not decoder.weights[0][1].isnan().any()
    told_over = [weight for row in told_weights(encoder.weights[0][1]) for weight in row]
    assert len(told_over) - told_over.count(None) == 3  # what is hidden is left as it is
