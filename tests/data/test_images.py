"""Images of every make become the same numbers, and what is broken is named before anything is learned."""

import gzip
import io
import json
import struct
import tarfile
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from heedful.data.images import mnist_and_cifar
from heedful.data.images.decode import Broken, Size, as_rgb, as_text, frame_of, photograph, picture
from heedful.data.images.gallery import Files
from heedful.data.readers.labelled_images import ImageFiles
from heedful.errors import Refusal
from heedful.tasks.vision.image_classification import TASK

SIZE = Size(3, 16, 24)
RANDOM = np.random.default_rng(0)


def photo(high: int = 16, wide: int = 24) -> Image.Image:
    y, x = np.mgrid[:high, :wide]
    shades = np.stack((255 * x / wide, 255 * y / high, 128 + 100 * np.sin(x / 3) * np.cos(y / 4)), -1)
    return Image.fromarray(shades.astype(np.uint8))


def numbers(image: Image.Image) -> np.ndarray:
    return np.asarray(image).transpose(2, 0, 1)


def saved(folder: Path, image: Image.Image, name: str, **how: object) -> Path:
    image.save(folder / name, **how)
    return folder / name


# ---------------------------------------------------------------------- one file


@pytest.mark.parametrize(
    ("name", "how", "apart"),
    [
        ("a.png", {}, 0),
        ("a.bmp", {}, 0),
        ("a.webp", {"lossless": True}, 0),
        ("a.tiff", {}, 0),
        ("a.jpg", {"quality": 98, "subsampling": 0}, 12),
        ("a.jpg", {"quality": 98, "subsampling": 0, "progressive": True}, 12),
    ],
)
def test_a_photo_is_read_from_every_format(tmp_path, name, how, apart):
    found = picture(saved(tmp_path, photo(), name, **how), SIZE).astype(int)
    assert np.abs(found - numbers(photo())).max() <= apart


def test_grey_transparent_palette_and_deep_images_become_colour(tmp_path):
    grey = np.asarray(photo().convert("L"))
    wanted = np.broadcast_to(grey, SIZE)
    for mode in ("L", "LA", "I;16"):
        image = photo().convert("L") if mode != "I;16" else Image.fromarray(grey.astype(np.uint16) * 257)
        image = image.convert("LA") if mode == "LA" else image
        assert np.array_equal(picture(saved(tmp_path, image, f"{mode[0]}.png"), SIZE), wanted), mode
    palette = photo().quantize(64)
    assert np.array_equal(picture(saved(tmp_path, palette, "p.png"), SIZE), numbers(palette.convert("RGB")))
    half = photo().convert("RGBA")
    half.putalpha(Image.fromarray(np.where(np.arange(24) < 12, 0, 255).astype(np.uint8)[None].repeat(16, 0)))
    found = picture(saved(tmp_path, half, "half.png"), SIZE)
    assert (found[:, :, :12] == 255).all() and np.array_equal(found[:, :, 12:], numbers(photo())[:, :, 12:])
    assert np.array_equal(picture(saved(tmp_path, photo(), "c.png"), SIZE._replace(channels=1))[0], grey)


def test_what_is_transparent_is_a_channel_where_two_or_four_are_asked_for(tmp_path):
    grey, alpha = np.asarray(photo().convert("L")), RANDOM.integers(0, 256, (16, 24), dtype=np.uint8)
    clear = photo()
    clear.putalpha(Image.fromarray(alpha))
    file = saved(tmp_path, clear, "clear.png")
    assert np.array_equal(picture(file, SIZE._replace(channels=4)), [*numbers(photo()), alpha])
    assert np.array_equal(picture(file, SIZE._replace(channels=2)), [grey, alpha])
    for mode in ("RGB", "L", "P"):
        opaque = saved(tmp_path, photo().convert(mode), f"{mode}.png")
        found = picture(opaque, SIZE._replace(channels=4))
        assert np.array_equal(found[:3], picture(opaque, SIZE)) and (found[3] == 255).all(), mode


def test_transparent_pixels_lend_no_colour_to_their_neighbours_when_scaled(tmp_path):
    clear = Image.new("RGBA", (32, 32), (255, 0, 0, 0))
    clear.paste(Image.new("RGBA", (32, 16), (0, 0, 255, 255)), (0, 0))
    found = picture(saved(tmp_path, clear, "clear.png"), Size(4, 6, 6))
    assert (found[0][found[3] > 0] < 8).all() and (found[3][0] == 255).all() and (found[3][-1] == 0).all()


@pytest.mark.parametrize("made", [lambda x: x, lambda x: x.transpose(2, 0, 1), np.asfortranarray])
@pytest.mark.parametrize("kind", ["u1", "<u2", ">u2"])
def test_arrays_have_any_number_of_channels(tmp_path, made, kind):
    pixels = RANDOM.integers(0, 256, (16, 24, 5), dtype=np.uint8)
    wider = pixels.astype(kind) * (257 if kind != "u1" else 1)
    np.save(tmp_path / "a.npy", made(wider.astype(kind)))
    assert np.array_equal(picture(tmp_path / "a.npy", Size(5, 16, 24)), pixels.transpose(2, 0, 1))
    small = picture(tmp_path / "a.npy", Size(5, 8, 8))
    one = Image.fromarray(pixels[..., 3]).resize((8, 8), Image.Resampling.BICUBIC, box=(4, 0, 20, 16))
    assert small.shape == (5, 8, 8) and np.abs(small[3].astype(int) - np.asarray(one)).max() <= 1


def test_an_array_is_shown_to_people_by_its_first_channels(tmp_path):
    pixels = RANDOM.integers(0, 256, (16, 24, 5), dtype=np.uint8)
    np.save(tmp_path / "a.npy", pixels)
    assert np.array_equal(photograph(tmp_path / "a.npy", Size(5, 16, 24))[0], pixels.transpose(2, 0, 1)[:3])
    np.save(tmp_path / "grey.npy", pixels[..., 0])
    assert np.array_equal(photograph(tmp_path / "grey.npy", Size(1, 16, 24))[0], np.stack([pixels[..., 0]] * 3))
    half = np.stack([np.full((2, 2), 100), np.array([[0, 255], [0, 255]])]).astype(np.uint8)
    assert np.array_equal(as_rgb(half), np.broadcast_to([[255, 100], [255, 100]], (3, 2, 2)))


def test_a_photograph_is_shown_whole_and_its_frame_is_what_a_model_sees_of_it(tmp_path):
    pixels = RANDOM.integers(0, 256, (4, 8, 3), dtype=np.uint8).repeat(400, 0).repeat(400, 1)
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    shown, frame = photograph(tmp_path / "wide.png", Size(3, 16, 16))
    assert shown.shape == (3, 400, 800) and frame == (0.25, 0.0, 0.75, 1.0)
    left, top, right, bottom = (round(share * side) for share, side in zip(frame, (800, 400) * 2, strict=True))
    seen = np.asarray(Image.fromarray(shown.transpose(1, 2, 0)[top:bottom, left:right]).resize((16, 16)))
    assert np.abs(seen.transpose(2, 0, 1).astype(int) - picture(tmp_path / "wide.png", Size(3, 16, 16))).mean() < 3
    assert frame_of(30, 10, Size(3, 10, 10)) == pytest.approx((0.0, 1 / 3, 1.0, 2 / 3))


def test_arrays_that_are_no_pictures_are_told_apart(tmp_path):
    def said(made: np.ndarray | bytes, channels: int = 3) -> str:
        if isinstance(made, bytes):
            (tmp_path / "a.npy").write_bytes(made)
        else:
            np.save(tmp_path / "a.npy", made)
        with pytest.raises(Broken) as broken:
            picture(tmp_path / "a.npy", Size(channels, 4, 4))
        return str(broken.value)

    assert said(np.zeros((4, 4, 5), np.uint8)) == (
        "it is an array of 4 x 4 x 5, and 3 channels are wanted; save rows x columns x 3"
    )
    assert said(np.zeros((4, 4, 3), np.float32)) == "its numbers are '<f4'; save it as uint8 or uint16"
    for shape in ((), (48,), (4, 4, 3, 1), (1,) * 64):
        assert said(np.zeros(shape, np.uint8)) == f"it is an array of {len(shape)} axes; save rows x columns x 3"
    assert said(np.zeros((5, 7), np.uint8), 5) == (
        "it is an array of 5 x 7, and 5 channels are wanted; save rows x columns x 5"
    )
    assert said(np.zeros((0, 4, 3), np.uint8)).startswith("it is an array of 0 x 4 x 3, and 3 channels are wanted")
    ones = b"{'descr': '|u1', 'fortran_order': False, 'shape': (" + b"1, " * 20000 + b"), }\n"
    assert "20000 axes" in said(b"\x93NUMPY\x02\x00" + len(ones).to_bytes(4, "little") + ones + b"\x00")
    assert "its numbers are '|O'" in said(np.array([[{}]], dtype=object))  # a pickle, which nobody opens
    stream = io.BytesIO()
    np.save(stream, np.zeros((4, 4, 3), np.uint8))
    whole = stream.getvalue()
    assert said(whole[:-1]) == "it says that it holds 4 x 4 x 3 numbers and does not"
    many = whole.replace(b"(4, 4, 3), }".ljust(32), b"(999999999, 999999999, 3), }".ljust(32))
    assert len(many) == len(whole) and said(many).startswith("it says that it holds 999999999 x 999999999 x 3")
    for bad in (b"", whole[:10], whole.replace(b"NUMPY", b"NUMPX"), whole.replace(b"'shape'", b"'shapf'"), whole[:60]):
        assert said(bad) == "it is no array of NumPy's of a plain kind"
    assert said(np.zeros((1 << 17, 1, 3), np.uint8)).startswith("it has 131072 x 1 pixels, and 67,108,864 are the most")


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_is_upright_whatever_way_the_camera_was_held(tmp_path, orientation):
    turns = {2: [0], 3: [3], 4: [1], 5: [5], 6: [2], 7: [6], 8: [4]}  # how it lies in the file, by PIL's transposes
    lying = photo()
    for turn in turns.get(orientation, []):
        lying = lying.transpose(Image.Transpose(turn))
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = picture(saved(tmp_path, lying, "a.png", exif=exif), SIZE)
    assert np.array_equal(found, numbers(photo()))


@pytest.mark.parametrize("kind", ["jpeg", "png", "webp"])
def test_a_photo_is_upright_whatever_else_its_camera_wrote(tmp_path, kind):
    entries = [(0x0100, 2, 3, b"30"), (0x0112, 3, 1, b"\x06"), (0x0128, 2, 2, b"2")]  # two that are no numbers
    each = b"".join(struct.pack("<HHI4s", *entry) for entry in entries)
    exif = b"Exif\x00\x00II*\x00" + struct.pack("<IH", 8, len(entries)) + each + bytes(4)
    path = saved(tmp_path, photo().transpose(Image.Transpose.ROTATE_90), f"a.{kind}", exif=exif)
    with Image.open(path) as image, pytest.raises(struct.error):  # it writes all of them anew
        ImageOps.exif_transpose(image)
    assert np.abs(picture(path, SIZE).astype(int) - numbers(photo())).mean() < 8


def test_a_large_photo_is_scaled_and_its_middle_kept(tmp_path):
    wide = Image.new("RGB", (90, 30), "red")
    wide.paste(Image.new("RGB", (46, 30), "blue"), (22, 0))
    found = picture(saved(tmp_path, wide, "wide.png"), Size(3, 16, 16))
    assert (found[2] == 255).all() and (found[0] == 0).all()
    large = picture(saved(tmp_path, photo(800, 1200), "large.jpg", quality=95), SIZE).astype(int)
    wanted = numbers(photo(800, 1200).resize((24, 16), Image.Resampling.BICUBIC))
    assert np.abs(large - wanted).mean() < 3


def test_a_picture_within_a_text_is_read_to_the_last_bit():
    for channels in (1, 2, 3, 4, 5, 7):
        pixels = RANDOM.integers(0, 256, (channels, 5, 7), dtype=np.uint8)
        assert np.array_equal(picture(as_text(pixels), Size(channels, 5, 7)), pixels)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(wide: int, high: int) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_what_is_broken_is_said_in_a_few_words(tmp_path):
    whole = io.BytesIO()
    photo(200, 200).save(whole, "PNG")
    deep = io.BytesIO()
    Image.fromarray(np.full((4, 4), 200, dtype=np.int32)).save(deep, "TIFF")
    cases = {
        "deep.tiff": deep.getvalue(),
        "cut.png": whole.getvalue()[:-3000],
        "text.jpg": b"no picture at all",
        "empty.png": b"",
        "page.svg.png": b"<svg></svg>",
        "a.eps.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    }
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(Broken) as said:
            picture(tmp_path / name, SIZE)
        assert 5 < len(str(said.value)) < 200 and "\n" not in str(said.value)
    for gone in (tmp_path / "gone.png", tmp_path):
        with pytest.raises(Broken):
            picture(gone, SIZE)


@pytest.mark.parametrize("size", [(8_500, 8_500), (10_000, 10_000), (30_000, 30_000), (1, 1 << 26), (1 << 26, 1)])
def test_a_small_file_that_unfolds_without_end_is_refused_in_our_words(tmp_path, size):
    (tmp_path / "bomb.png").write_bytes(bomb(*size))
    with pytest.raises(Broken, match=r"^it unfolds to .* pixels, and 67,108,864 are the most, 65,536 along a side$"):
        picture(tmp_path / "bomb.png", SIZE)


# ---------------------------------------------------------------------- folders and lists


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)  # of its own: how they are divided hangs on it
    for label in ("cat", "dog"):
        (tmp_path / "all" / label / "more").mkdir(parents=True)
        for at in range(20):
            pixels = random.integers(0, 256, (20 + at % 3, 18, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "all" / label / ("more" if at % 2 else ".") / f"{at}.png")
    return tmp_path


def of(path: Path, **more: object) -> ImageFiles:
    return ImageFiles(name=str(path), pixels=16, **more)


def test_a_folder_a_class_is_divided_and_no_image_stands_on_two_sides(folders):
    splits = of(folders / "all").read(1)
    places = [{one.place for one in split} for split in (splits.train, splits.valid, splits.test)]
    assert sum(map(len, places)) == len(set.union(*places)) == 40
    assert all(places) and all(
        Path(one.place).relative_to(folders / "all").parts[0] == one.label for one in splits.train
    )
    task, _ = TASK.open(of(folders / "all"), 1)
    assert (
        task.learned.labels == ("cat", "dog")
        and task.facts().items() >= {"channels": 3, "high": 16, "wide": 16, "classes": 2}.items()
    )


def test_an_image_keeps_its_side_at_whatever_size_and_in_whatever_colours_it_is_read(folders):
    ways = [{"pixels": [8, 8]}, {"pixels": [16, 12]}, {"pixels": [8, 8], "channels": 1}]
    found = [ImageFiles(name=str(folders / "all"), **way).read(0) for way in ways]
    assert len({tuple(tuple(one.place for one in side) for side in (s.train, s.valid, s.test)) for s in found}) == 1


def test_folders_of_halves_are_taken_as_they_are(folders):
    for half in ("train", "test"):
        (folders / "halves").mkdir(exist_ok=True)
        (folders / "halves" / half).symlink_to(folders / "all")
    splits = of(folders / "halves").read(1)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (36, 4, 40)


def divided(folders: Path, *names: str) -> Path:
    (folders / "halves").mkdir()
    for name in names:
        (folders / "halves" / name).symlink_to(folders / "all")
    return folders / "halves"


@pytest.mark.parametrize("names", ["train val", "Train Test", "TRAIN Validation", "train valid"])
def test_a_half_to_learn_from_and_another_are_known_by_many_names(folders, names):
    halves = divided(folders, *names.split())
    (halves / ".hidden").mkdir()
    (halves / "README.txt").touch()
    splits = of(halves).read(1)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (36, 4, 40)
    assert {one.label for one in splits.test} == {"cat", "dog"}


def test_three_halves_are_taken_as_they_are(folders):
    splits = of(divided(folders, "Train", "Val", "Test")).read(1)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (40, 40, 40)
    assert {Path(one.place).parts[len(folders.parts) + 1] for one in splits.valid} == {"Val"}


@pytest.mark.parametrize("more", ["more", "Val"])
def test_what_stands_beside_halves_is_no_class_and_is_not_forgotten(folders, more):
    halves = divided(folders, "train", "val", more)
    with pytest.raises(Refusal, match=r"is divided into train and \w+, and (more|val) is there too; move it away"):
        of(halves).read(1)


def test_a_class_may_be_called_train(folders):
    splits = of(divided(folders, "train", "ship")).read(1)
    assert {one.label for one in splits.train} == {"train", "ship"}


@pytest.mark.parametrize("halves", [False, True])
def test_a_class_of_one_image_is_learned_from_wherever_it_falls(folders, halves):
    for at in range(30):
        (folders / "all" / f"rare{at}").mkdir()
        pixels = np.random.default_rng([at, 2]).integers(0, 256, (18, 18, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folders / "all" / f"rare{at}" / "0.png")
    task, splits = TASK.open(of(divided(folders, "train", "test") if halves else folders / "all"), 1)
    assert len(task.learned.labels) == 32 and splits.valid and splits.test
    assert (len(splits.test) == 70) == halves


def test_too_few_images_to_hold_some_out_are_refused(tmp_path):
    for half in ("train", "test"):
        for label in range(4):
            (tmp_path / half / str(label)).mkdir(parents=True)
            Image.new("L", (16, 16), 9 * label).save(tmp_path / half / str(label) / "0.png")
    with pytest.raises(
        Refusal, match=r"has too few images of each class to hold some out; add more, or give data\.train"
    ):
        of(tmp_path).read(1)


@pytest.mark.parametrize("kind", ["header", "plain", "jsonl"])
def test_a_list_names_paths_and_labels(folders, kind):
    rows = [(f"all/{label}/{at}.png", label) for label in ("cat", "dog") for at in range(0, 20, 2)]
    if kind == "jsonl":
        text = "\n".join(json.dumps({"image": path, "label": label}) for path, label in rows)
    else:
        text = "label,path\n" * (kind == "header")
        text += "\n".join(",".join((label, path) if kind == "header" else (path, label)) for path, label in rows)
    (folders / f"list.{'jsonl' if kind == 'jsonl' else 'csv'}").write_text(text)
    spec = ImageFiles(
        name="files", pixels=16, **{split: str(next(folders.glob("list.*"))) for split in ("train", "valid", "test")}
    )
    splits = spec.read(1)
    assert [(one.place, one.label) for one in splits.test] == [(str(folders / path), label) for path, label in rows]


def test_broken_images_are_named_and_refused_or_left_out(folders):
    for name in ("0.png", "2.png"):
        path = folders / "all" / "cat" / name
        path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(Refusal, match=r"2 of 40 images cannot be read: .*cat/0\.png .*data\.broken=skip"):
        of(folders / "all").read(1)
    with pytest.warns(UserWarning, match=r"2 of 40 images cannot be read: .*cat/0\.png .*left out"):
        splits = of(folders / "all", broken="skip").read(1)
    assert len(splits.train) + len(splits.valid) + len(splits.test) == 38


def test_all_that_are_left_out_are_named(folders):
    for at in range(9):
        (folders / "all" / "dog" / f"broken{at}.png").write_bytes(b"no picture")
    with pytest.warns(UserWarning, match="9 of 49 images") as told:
        of(folders / "all", broken="skip").read(1)
    assert all(f"broken{at}.png (it is no image that can be read)" in str(told[0].message) for at in range(9))


def test_files_of_other_kinds_and_empty_classes_are_told(folders):
    (folders / "all" / "cow" / "more").mkdir(parents=True)
    (folders / "all" / "dog" / "x.heic").write_bytes(b"")
    (folders / "all" / "cat" / "notes.txt").write_text("not an image")
    (folders / "all" / "cat" / ".hidden").touch()
    photo().save(folders / "all" / "cat" / "photo.JFIF", "JPEG")
    with pytest.warns(UserWarning, match="passed over|without images") as told:
        splits = of(folders / "all").read(1)
    assert [str(one.message).removeprefix(f"{folders / 'all'}: ") for one in told] == [
        f"files of other kinds are passed over: 2, first {folders / 'all' / 'cat' / 'notes.txt'}",
        "folders without images make no class: cow",
    ]
    assert sum(map(len, (splits.train, splits.valid, splits.test))) == 41


def test_what_is_hidden_is_told_and_links_are_followed_but_not_in_circles(folders):
    cat = folders / "all" / "cat"
    for name in (".x.png", ".thumbs/t.png", "../.cache/u.png", "../../elsewhere/e.png", "../loose.txt"):
        (cat / name).parent.mkdir(exist_ok=True)
        photo().save(cat / name, "PNG")
    (cat / "linked").symlink_to(folders / "elsewhere")
    (cat / "circle").symlink_to(folders / "all")
    with pytest.warns(UserWarning, match="passed over") as told:
        splits = of(folders / "all").read(1)
    first = {"files of other kinds": (1, folders / "all/loose.txt"), "hidden images": (3, folders / "all/.cache/u.png")}
    assert [str(one.message).removeprefix(f"{folders / 'all'}: ") for one in told] == [
        f"{kind} are passed over: {count}, first {path}" for kind, (count, path) in first.items()
    ]
    read = [one for split in (splits.train, splits.valid, splits.test) for one in split]
    assert len(read) == 41 and [one.label for one in read if one.place.endswith("e.png")] == ["cat"]


def test_a_folder_that_may_not_be_read_is_refused(folders, monkeypatch):
    shut = folders / "all" / "dog" / "more"
    real = Path.iterdir

    def denied(path: Path):
        if path == shut:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(Refusal, match="more cannot be read: Permission denied"):
        of(folders / "all").read(1)


def test_pictures_that_do_not_fit_are_decoded_again(folders, monkeypatch):
    paths = sorted((folders / "all").rglob("*.png"))
    kept = Files(paths, SIZE).take(range(40))
    monkeypatch.setattr("heedful.data.images.gallery.ROOM", 3 * 16 * 24 * 5)
    gallery = Files(paths, SIZE)
    assert sum(one is not None for one in gallery.kept) == 5
    assert np.array_equal(gallery.take(range(40)), kept)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda at: (at / "x").mkdir(), "holds no images"),
        (lambda at: (at / "x").mkdir() or (at / "x" / "a.heic").touch(), r"a\.heic is none of \.jpg, .*convert"),
        (lambda at: photo().save(at / "loose.png"), "is in no folder of a class"),
        (
            lambda at: (
                (at / "train-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03")
                and (at / "t10k-images-idx3-ubyte").touch()
            ),
            "idx",
        ),
        (lambda at: (at / "data_batch_1.bin").write_bytes(b"123"), "is no file of CIFAR-10's records"),
        (lambda at: (at / "cifar-10-binary.tar.gz").write_bytes(b"123"), "cannot be unpacked"),
    ],
)
def test_a_folder_of_other_things_is_refused(tmp_path, made, said):
    made(tmp_path)
    with pytest.raises(Refusal, match=said):
        of(tmp_path).read(1)


# ---------------------------------------------------------------------- public sets


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_idx_files_are_read_plain_and_zipped(tmp_path):
    images, labels = RANDOM.integers(0, 256, (30, 7, 5), dtype=np.uint8), np.arange(30, dtype=np.uint8) % 10
    for name, part in (("train", slice(0, 20)), ("t10k", slice(20, 30))):
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images[part])))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(labels[part]))
    splits = ImageFiles(name=str(tmp_path)).read(1)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (18, 2, 10)
    assert np.array_equal(np.stack([one.pixels[0] for one in splits.test]), images[20:])
    assert [one.label for one in splits.test] == [str(n) for n in labels[20:]]


@pytest.mark.parametrize("channels", [2, 4, 5])
def test_idx_files_have_any_number_of_channels(tmp_path, channels):
    images = RANDOM.integers(0, 256, (20, channels, 6, 8), dtype=np.uint8)
    splits = mnist(tmp_path, images, images).read(1)
    assert splits.test[3].pixels.shape == (channels, 6, 8) and np.array_equal(splits.test[3].pixels, images[3])


def test_idx_files_whose_channels_stand_last_are_refused(tmp_path):
    images = np.zeros((20, 28, 28, 3), dtype=np.uint8)
    with pytest.raises(Refusal, match="has images of 28 channels, 3 pixels wide; write channels before rows and col"):
        mnist(tmp_path, images, images).read(1)


def mnist(folder: Path, train: np.ndarray, test: np.ndarray) -> ImageFiles:
    for name, images in (("train", train), ("t10k", test)):
        (folder / f"{name}-images-idx{images.ndim}-ubyte").write_bytes(idx(images))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx(np.arange(len(images), dtype=np.uint8) % 3))
    return ImageFiles(name=str(folder))


def test_halves_of_two_sizes_are_refused_before_anything_is_learned(tmp_path):
    small, large, colour = (np.zeros((20, *shape), dtype=np.uint8) for shape in ((4, 4), (4, 6), (3, 4, 4)))
    with pytest.raises(Refusal, match=r"4 x 4 pixels of 1 channel to learn from and of 4 x 6 pixels of 1 channel to"):
        mnist(tmp_path, small, large).read(1)
    (tmp_path / "t10k-images-idx3-ubyte").unlink()
    with pytest.raises(
        Refusal, match=r"pixels of 1 channel to learn from and of 4 x 4 pixels of 3 channels to test on"
    ):
        mnist(tmp_path, small, colour).read(1)


def test_two_classes_of_one_name_are_refused(tmp_path):
    images = RANDOM.integers(0, 256, (20, 4, 4), dtype=np.uint8)
    spec = mnist(tmp_path, images, images)
    (tmp_path / "classes.txt").write_text("cat\ndog\ncow\n")
    assert {one.label for one in spec.read(1).test} == {"cat", "dog", "cow"}
    (tmp_path / "classes.txt").write_text("cat\ndog\n cat\n")
    with pytest.raises(Refusal, match=r"classes\.txt names two classes 'cat', which would be one; give each a name"):
        spec.read(1)


def endless(head: bytes) -> bytes:
    """A gzipped file of few bytes that unfolds to more than may be."""
    pieces = zlib.compressobj(9, wbits=31)
    zeros = bytes(1 << 24)
    return b"".join([pieces.compress(head), *(pieces.compress(zeros) for _ in range(17)), pieces.flush()])


@pytest.mark.parametrize(
    ("sizes", "said"),
    [((2, 4, 4), "holds 2 x 4 x 4 bytes and does not"), ((1 << 17, 32, 33), "x 33 bytes, and 128 MB are the most")],
)
def test_an_idx_file_is_unfolded_no_further_than_it_says(tmp_path, monkeypatch, sizes, said):
    monkeypatch.setattr(mnist_and_cifar, "LARGEST", 1 << 27)
    for name in ("train", "t10k"):
        head = bytes([0, 0, 8, 3]) + struct.pack(">3I", *sizes)
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(endless(head))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(np.zeros(2, dtype=np.uint8)))
    tracemalloc.start()
    with pytest.raises(Refusal, match=said):
        ImageFiles(name=str(tmp_path)).read(1)
    room = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert room < 1 << 28


def test_records_and_their_archive_are_unfolded_no_further_than_they_may(tmp_path):
    whole = endless(tarfile.TarInfo("data_batch_1.bin").tobuf())
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(whole)
    with pytest.raises(Refusal, match=r"tar\.gz cannot be unpacked: it unfolds to more than 256 MB; copy it again"):
        ImageFiles(name=str(tmp_path)).read(1)
    (tmp_path / "cifar-10-binary.tar.gz").unlink()
    (tmp_path / "data_batch_1.bin").write_bytes(whole)
    with pytest.raises(Refusal, match=r"data_batch_1\.bin holds more than the 134,217,728 bytes that it may"):
        ImageFiles(name=str(tmp_path)).read(1)


def test_a_cut_gzipped_file_is_refused(tmp_path):
    spec = mnist(tmp_path, np.zeros((20, 4, 4), dtype=np.uint8), np.zeros((20, 4, 4), dtype=np.uint8))
    path = tmp_path / "train-images-idx3-ubyte"
    for cut in (-9, -5, -1):
        path.write_bytes(gzip.compress(idx(RANDOM.integers(0, 256, (20, 4, 4), dtype=np.uint8)))[:cut])
        with pytest.raises(Refusal, match="is gzipped but not whole"):
            spec.read(1)


def records(count: int, seed: int) -> bytes:
    random = np.random.default_rng(seed)
    rows = random.integers(0, 256, (count, mnist_and_cifar.RECORD), dtype=np.uint8)
    rows[:, 0] = np.arange(count) % 10
    return rows.tobytes()


@pytest.mark.parametrize("packed", [False, True])
def test_cifars_records_are_read_from_a_folder_and_from_their_archive(tmp_path, packed):
    files = {f"data_batch_{n}.bin": records(20, n) for n in range(1, 6)} | {"test_batch.bin": records(20, 6)}
    if packed:
        with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as tar:
            for name, data in files.items():
                member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    else:
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
    splits = ImageFiles(name=str(tmp_path)).read(1)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (90, 10, 20)
    row = np.frombuffer(files["test_batch.bin"], np.uint8)[3 * mnist_and_cifar.RECORD : 4 * mnist_and_cifar.RECORD]
    assert np.array_equal(splits.test[3].pixels.reshape(-1), row[1:]) and splits.test[3].label == "cat"


def test_a_part_of_cifar_that_is_missing_is_named(tmp_path):
    (tmp_path / "data_batch_1.bin").write_bytes(bytes(3073))
    with pytest.raises(Refusal, match=r"data_batch_2.bin is missing; copy the whole set"):
        mnist_and_cifar.read_cifar(tmp_path)


def test_cifars_sheets_are_read_row_by_row(tmp_path):
    pages = RANDOM.integers(0, 256, (1, 32, 32, 3), dtype=np.uint8)
    page = np.zeros((3200, 3200, 3), np.uint8)
    page[::32, ::32, 0], page[::32, ::32, 1] = np.arange(100)[:, None], np.arange(100)  # no two pictures alike
    page[32:64, 64:96] = pages[0]  # the second row, the third picture
    Image.fromarray(page).save(tmp_path / "train_batch_1.png", compress_level=1)
    for at in range(2, 6):
        (tmp_path / f"train_batch_{at}.png").symlink_to(tmp_path / "train_batch_1.png")
    (tmp_path / "test_batch.png").write_bytes((tmp_path / "train_batch_1.png").read_bytes())
    (tmp_path / "train_labels.bin").write_bytes(bytes(at % 10 for at in range(50_000)))
    (tmp_path / "test_labels.bin").write_bytes(bytes(at % 10 for at in range(10_000)))
    splits = ImageFiles(name=str(tmp_path)).read(1)
    assert np.array_equal(splits.test[102].pixels, pages[0].transpose(2, 0, 1)) and splits.test[102].label == "bird"
    assert splits.test[101].pixels.sum() == 2 and len(splits.train) + len(splits.valid) == 50_000
