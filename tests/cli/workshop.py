"""A folder as users have them: trained runs, files of their own, and all that can be wrong with either."""

import gzip
import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

from heedful import build, save, tokenizers
from heedful.cli import main
from heedful.data.formats import pharaoh
from heedful.data.toys.invented_language import sentences
from tests.tasks.encoders import folder as encoder
from tests.tasks.encoders import modules

SMALL = ["data=toy", "data.samples=80", "data.held_out=12", "training.steps=2", "training.batch=8"]
RECIPES = ("reverse", "sort", "sets", "series", "translate")
SMALLER = {"translate": ["data.tokenizer=bpe(size=320)", "decoding.max_new_tokens=9", "training.steps=20"]}

PAIRS = [f"{n:03d}\t{f'{n:03d}'[::-1]}" for n in range(120)]
SETS = [f"{n // 3},{'even' if n // 3 % 2 == 0 else 'odd'},{n % 7},{n % 5}" for n in range(360)]
SERIES = [f"{n % 7},{n % 5}.5" for n in range(600)]
PHRASES = sentences(120, 3)
ENGLISH, INVENTED = ([getattr(phrase, side) for phrase in PHRASES] for side in ("source", "target"))
LINKS = [pharaoh.write(phrase.links) for phrase in PHRASES]

FILES: dict[str, str | bytes] = {
    "pairs.tsv": "\n".join(PAIRS),
    "one_field.tsv": "ab\tba\nabc\n",
    "three_fields.tsv": "ab\tba\n\na\tb\tc\n",
    "no_source.tsv": "ab\tba\n\tba\n",
    "no_target.tsv": "ab\tba\nab\t  \n",
    "empty.tsv": "",
    "blank.tsv": "\n \n\t\n",
    "binary.tsv": bytes(range(256)),
    "latin.tsv": "ab\tba\nü\tü\n".encode("latin-1"),
    "few.tsv": "ab\tba\ncd\tdc\n",
    "long.tsv": "\n".join(f"{n:03d}{'x' * 97}\t{n}" for n in range(120)),
    "three.source": "a\nb\nc\n",
    "two.target": "a\nb\n",
    "gap.target": "a\n\nc\n",
    "train.en": "\n".join(ENGLISH),
    "train.xx": "\n".join(INVENTED),
    "train.tsv": "\n".join(map("\t".join, zip(ENGLISH, INVENTED, strict=True))),
    "train.links": "\n".join(LINKS),
    "short.links": "\n".join(LINKS[:-1]),
    "wrong.links": "\n".join((LINKS[0], "0-0 1:1", *LINKS[2:])),
    "far.links": "\n".join((*LINKS[:2], "0-0 99-1", *LINKS[3:])),
    "cut.en.gz": gzip.compress("\n".join(ENGLISH).encode())[:-20],
    "latin.en": "\n".join(("caf\u00e9", *ENGLISH[1:])).encode("latin-1"),
    "gap.en": "\n".join((*ENGLISH[:5], "", *ENGLISH[6:])),
    "long.en": "\n".join((*ENGLISH[:9], "a dog " * 200, *ENGLISH[10:])),
    "one.links": "0-0\n",
    "notes.json": "{}",
    "tok.json": tokenizers.train(ENGLISH, "bpe", 300).layout.text,
    "foreign.json": tokenizers.train(ENGLISH, "words", 90).layout.text.replace("<begin>", "<s>"),
    "sets.csv": "\n".join(("set,label,x,y", *SETS)),
    "words.csv": "a,x,1,2\na,x,one,2\n",
    "nan.csv": "a,x,1,2\na,x,nan,2\n",
    "huge.csv": "a,x,1,2\na,x,1,1e300\n",
    "ragged.csv": "a,x,1,2\n\na,x,1\n",
    "two_labels.csv": "a,x,1,2\na,y,1,2\n",
    "no_label.csv": "a,x,1,2\nb,,1,2\n",
    "no_numbers.csv": "a,x\nb,y\n",
    "header_only.csv": "set,label,x,y\n",
    "rare.csv": "\n".join((*SETS, *(f"r{n},rare{n},1,{n}" for n in range(60)))),
    "wide_sets.csv": "\n".join(f"{line},1" for line in SETS),
    "series.csv": "\n".join(("a,b", *SERIES)),
    "short.csv": "\n".join(SERIES[:60]),
    "shortest.csv": "1,2\n3,4\n",
    "wide.csv": "\n".join(f"{line},1" for line in SERIES),
    "infinite.csv": "1,2\n3,inf\n",
    "semicolons.csv": "1;2\n3;4\n",
    "old_mac.csv": "1,2\r3,4\r",
    "long_field.csv": f"1,2\n1,{'9' * 200_000}\n",
    "opinions.tsv": "\n".join(
        f"film {n} is {'good' if n % 2 else 'bad'}\t{'pos' if n % 2 else 'neg'}" for n in range(60)
    ),
    "one_class.tsv": "\n".join(f"film {n}\tgood" for n in range(60)),
    "words.conll": "the\tO\ncat\n",
    "tags.conll": "the O\ncat NOUN\n",
    "facts.jsonl": '{"question": "who ?", "context": "a cat sat", "answer": "dog"}\n',
    "facts.json": '{"data": 3}',
    "talk.jsonl": '{"messages": [{"role": "assistant", "content": "hello"}]}\n',
    "own.yaml": "task: pairs\ndata: pairs.tsv\nmodel: {width: 16, depth: 1, heads: 2}\n"
    "training: {steps: 2, batch: 8}\n",
    "list.yaml": "- task\n- data\n",
    "open.yaml": "task: [pairs\n",
    "empty.yaml": "",
    "no_task.yaml": "data: pairs.tsv\nmodel: {}\n",
    "other_task.yaml": "task: pears\ndata: pairs.tsv\nmodel: {}\n",
    "number_key.yaml": "task: pairs\ndata: pairs.tsv\nmodel: {}\n1: 2\n",
    "wrong_key.yaml": "task: pairs\ndata: pairs.tsv\nmodel: {}\ntrainning: {steps: 1}\n",
    "number_model.yaml": "task: pairs\ndata: pairs.tsv\nmodel: 3\n",
    "number_data.yaml": "task: pairs\ndata: 3\nmodel: {}\n",
    "deep.yaml": "[" * 3000,
    "aliases.yaml": "task: &a [x]\ndata: [*a, *a]\n",
    "code.yaml": "task: !!python/object/apply:os.mkdir [run_by_a_recipe]\n",
    "large.yaml": "#" * 70_000,
    "no_date.yaml": "about: 2024-13-45\n",
    "latin.yaml": "about: ü\n".encode("latin-1"),
}


def spec(**changes: Any) -> Callable[[Path], None]:
    return lambda model: change_json(model / "spec.json", changes)


def task(**changes: Any) -> Callable[[Path], None]:
    return lambda model: change_json(model / "task.json", changes)


def change_json(path: Path, changes: dict[str, Any]) -> None:
    values = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))


def holds(name: str, content: str) -> Callable[[Path], object]:
    return lambda model: (model / name).write_text(content)


def lacks(name: str) -> Callable[[Path], None]:
    return lambda model: (model / name).unlink()


def weights(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(model: Path) -> None:
        tensors = load_file(model / "model.safetensors")
        change(tensors)
        save_file(tensors, model / "model.safetensors")

    return apply


def cut_short(model: Path) -> None:
    whole = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def only_a_pickle(model: Path) -> None:
    for path in model.iterdir():
        path.unlink()
    (model / "pytorch_model.bin").write_bytes(b"\x80\x02.")


def leads_out(model: Path) -> None:
    (model / "model.safetensors").unlink()
    (model / "model.safetensors").symlink_to("../../runs/reverse/model/model.safetensors")


def a_pipe(model: Path) -> None:
    (model / "model.safetensors").unlink()
    os.mkfifo(model / "model.safetensors")


TABLE = "inputs.table.weight"
BROKEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "spec_is_broken": ("reverse", holds("spec.json", "{")),
    "spec_is_a_list": ("reverse", holds("spec.json", "[]")),
    "spec_is_deep": ("reverse", holds("spec.json", "[" * 100_000)),
    "spec_of_no_family": ("reverse", spec(family=None)),
    "spec_of_another_family": ("reverse", spec(family="transfomer")),
    "spec_with_a_list_for_family": ("reverse", spec(family=["transformer"])),
    "spec_with_a_wrong_key": ("reverse", spec(widht=3)),
    "spec_with_a_negative_width": ("reverse", spec(width=-1)),
    "spec_far_too_wide": ("reverse", spec(width=10**30)),
    "spec_far_too_deep": ("reverse", spec(depth=10**9)),
    "spec_with_far_too_many_words": ("reverse", spec(vocab=10**12)),
    "spec_with_code": ("reverse", spec(mechanism="__import__('os').mkdir('run_by_a_spec')")),
    "weights_cut_short": ("reverse", cut_short),
    "weights_empty": ("reverse", holds("model.safetensors", "")),
    "weights_gone": ("reverse", lacks("model.safetensors")),
    "weights_with_one_missing": ("reverse", weights(lambda tensors: tensors.pop(TABLE))),
    "weights_with_one_more": ("reverse", weights(lambda tensors: tensors.update(extra=tensors[TABLE].clone()))),
    "weights_of_another_shape": ("reverse", weights(lambda tensors: tensors.update({TABLE: tensors[TABLE][:-1]}))),
    "task_gone": ("reverse", lacks("task.json")),
    "task_is_broken": ("reverse", holds("task.json", "task")),
    "task_unknown": ("reverse", task(task="pears")),
    "task_with_a_list": ("reverse", task(task=["pairs"])),
    "task_of_another_model": ("reverse", task(task="sets", labels=["a"], channels=2)),
    "task_without_labels": ("sets", task(labels=None)),
    "task_with_fewer_labels": ("sets", task(labels=["1"])),
    "task_with_numbers_for_labels": ("sets", task(labels=[1, 2, 3, 4])),
    "task_with_a_word_for_channels": ("sets", task(channels="two")),
    "task_with_a_negative_horizon": ("series", task(horizon=-1)),
    "task_of_no_images": ("vit", task(high=-3)),
    "task_of_larger_images": ("vit", task(high=64)),
    "spec_with_other_names_of_classes": ("vit", spec(labels=["cat", "cross", "ring", "square", "triangle"])),
    "spec_with_too_few_names_of_classes": ("vit", spec(labels=["cat"])),
    "task_without_words": ("translate", task(bleu=None)),
    "task_with_other_words": ("translate", task(bleu="14a")),
    "task_with_a_word_for_a_gaze": ("translate", task(gaze="decoder")),
    "task_with_no_beams": ("translate", task(decoding={"beams": 0})),
    "task_that_looks_at_no_layer": ("translate", task(gaze={"layer": "decoder.cross", "head": 0, "read": False})),
    "tokenizer_gone": ("reverse", lacks("tokenizer.json")),
    "tokenizer_is_broken": ("reverse", holds("tokenizer.json", "{}")),
    "only_a_pickle": ("reverse", only_a_pickle),
    "weights_that_lead_out": ("reverse", leads_out),
    "weights_are_a_pipe": ("reverse", a_pipe),
    "spec_with_a_key_twice": ("reverse", holds("spec.json", '{"width": 8, "width": 16}')),
}


def make(place: Path) -> None:
    """Fills a folder; the current one must be that folder."""
    for name, content in FILES.items():
        (place / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (place / "folder").mkdir()
    (place / "folder" / "notes.txt").write_text("not to be lost")
    make_pictures(place)
    assert status("train", "vit", *SMALL, "--out", "runs/vit") == 0
    for recipe in RECIPES:
        assert status("train", recipe, *SMALL, *SMALLER.get(recipe, ()), "--out", f"runs/{recipe}") == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heedful.training.run.finish", interrupt)
        assert status("train", "reverse", *SMALL, "--out", "runs/unfinished") == 130
    for name, (recipe, spoil) in BROKEN.items():
        shutil.copytree(place / "runs" / recipe / "model", place / "broken" / name)
        (place / "broken" / name / "manifest.json").unlink()  # which would refuse all of them alike
        spoil(place / "broken" / name)
    shutil.copytree(place / "runs" / "reverse" / "model", place / "broken" / "run_is_broken" / "model")
    (place / "broken" / "run_is_broken" / "run.yaml").write_text("task: [")
    shutil.copytree(place / "runs" / "reverse" / "model", place / "broken" / "run_lacks_data" / "model")
    (place / "broken" / "run_lacks_data" / "run.yaml").write_text("task: pairs\nmodel: {}\n")
    shutil.copytree(place / "runs" / "unfinished", place / "broken" / "checkpoint_cut_short")
    cut_short(next((place / "broken" / "checkpoint_cut_short" / "checkpoints").iterdir()))
    shutil.copytree(place / "runs" / "unfinished", place / "broken" / "run_that_leads_out")
    (place / "broken" / "run_that_leads_out" / ".metrics.jsonl.aside").symlink_to(place / "pairs.tsv")
    shutil.copytree(place / "runs" / "reverse" / "model", place / "model_alone")
    encoder(place / "encoders" / "states", "states")
    encoder(place / "encoders" / "tags", "tags", classes=2)
    encoder(place / "encoders" / "mute", "states").joinpath("vocab.txt").unlink()
    modules(encoder(place / "encoders" / "dense", "states"), "Transformer", "Pooling", "Dense")
    five = build("vit", channels=5, high=16, wide=16, classes=2, width=8, heads=2, depth=1)
    save(five, place / "encoders" / "five", layout="hf")
    gpt = build("gpt", vocab=9, width=8, heads=2, depth=1)
    save(gpt, place / "encoders" / "gpt", layout="hf")


def make_pictures(place: Path) -> None:
    """Folders of images, a folder a class; in one of them an image is cut short, and in another one lies loose."""
    random = np.random.default_rng(0)
    for name in ("photos", "cut_photos", "loose_photos"):
        for at in range(40):
            (place / name / f"class{at % 2}").mkdir(parents=True, exist_ok=True)
            image = Image.fromarray(random.integers(0, 256, (20, 24, 3), dtype=np.uint8))
            image.save(place / name / f"class{at % 2}" / f"{at}.png")
    for name in ("class0", "class1"):
        shutil.copytree(place / "photos" / name, place / "one_class" / "class0", dirs_exist_ok=True)
    for half in ("train", "val", "notes"):
        shutil.copytree(place / "photos", place / "halves_and_more" / half)
    for name, side in (("two_sizes", 10), ("two_names", 8)):
        make_numbers(place / name, side)
    (place / "two_names" / "classes.txt").write_text("cat\ncat\n")
    for side in (10_000, 30_000):  # it says that it is so large, and holds nothing
        head = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
        (place / f"bomb{side}.png").write_bytes(start + b"\0\0\0\0IDAT\x35\xaf\x06\x1e")
    whole = (place / "photos" / "class0" / "0.png").read_bytes()
    (place / "cut_photos" / "class0" / "0.png").write_bytes(whole[:300])
    (place / "loose_photos" / "a.png").write_bytes(whole)
    (place / "photos.csv").write_text("path,label\nphotos/class0/0.png,a\nphotos/class1/1.png,\n")
    (place / "headed.csv").write_text("img,y\nphotos/class0/0.png,a\n")
    (place / "unlabelled.jsonl").write_text('{"image": "photos/class0/0.png"}\n')
    (place / "photos.jsonl").write_text('{"image": "photos/class0/0.png", "label": "a"}\n{"image": 3}\n')


def make_numbers(folder: Path, side: int) -> None:
    """Images as MNIST has them, those to learn from 8 pixels wide and those to test on of another side."""
    folder.mkdir()
    for half, wide in (("train", 8), ("t10k", side)):
        images = struct.pack(">4B3I", 0, 0, 8, 3, 20, 8, wide) + bytes(20 * 8 * wide)
        (folder / f"{half}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, mtime=0))
        (folder / f"{half}-labels-idx1-ubyte").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, 20) + b"\0\1" * 10)


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def status(*words: str) -> object:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    return left.value.code


def listing(place: Path) -> dict[str, bytes | None]:
    """All that lies in a folder: files with what is in them, folders with nothing."""
    return {str(path.relative_to(place)): path.read_bytes() if path.is_file() else None for path in place.rglob("*")}


def marks(place: Path) -> dict[str, tuple[int, ...]]:
    """All that lies in a folder: files with when they were written and how long they are, which no writing leaves."""
    found = {str(path.relative_to(place)): path for path in place.rglob("*")}
    return {name: mark(path) if path.is_file() else () for name, path in found.items()}


def mark(path: Path) -> tuple[int, ...]:
    told = path.stat()
    return told.st_ino, told.st_size, told.st_mtime_ns, told.st_ctime_ns
