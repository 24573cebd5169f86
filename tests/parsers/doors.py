"""Every way by which something written elsewhere comes in: good files, how they are damaged, how they are read."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import heedful
from heedful import models
from heedful.data import line_files as own_files
from heedful.data.formats import chat_jsonl, conll, documents, labelled_text, parallel_text, pharaoh, squad
from heedful.data.images import mnist_and_cifar, sources
from heedful.data.parallel_sample import Sides
from heedful.formats import hf_models
from heedful.formats.foreign_config import Config
from heedful.formats.layout_registry import LAYOUTS
from heedful.models import part_tables, part_words
from heedful.safe import plain_data
from heedful.tasks.text.sequence_pairs import TASK as PAIRS
from heedful.training import record, report, run, table, trained_run
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import validate_spec
from tests.formats.layouts import CONFIGS
from tests.formats.malice.good import BEGUN, make
from tests.parsers.mutations import Mutation, of_bytes, of_json, of_lines, of_rows, of_words, of_yaml


class Good(NamedTuple):
    """A file as it should be, how it is damaged, and how it is read, whatever it holds by then."""

    path: Path
    damage: Mutation
    read: Callable[[], object]


def written(path: Path, content: str | bytes, damage: Mutation, read: Callable[[Path], object]) -> Good:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Good(path, damage, lambda: read(path))


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").split("\n")


KEYS = [
    "training.steps=3",
    "training.rate=1e-3",
    "training.betas=[0.9, 0.98]",
    "seed=3",
    "model.width=8",
    "model.mechanism=softmax",
    "data=toy",
    "data=sst",
    "data.train=a.tsv",
    "data.augment=crop(padding=4)",
    "model.size=base",
    "training.lora={rank: 4}",
    "data.pixels=8",
    "start=runs/x",
    "decoding.beams=3",
    "compare=scratch",
    "about=x",
    "task=pairs",
    "training.freeze=[inputs]",
    "model.position=rotary",
    "model={width: 8}",
    "training={steps: 3}",
    "data={name: files}",
    "decoding={}",
    "expected=x",
    "data.samples=20",
    "model.labels=[a, b]",
]


def keys(place: Path) -> list[Good]:
    """What is changed in a recipe, on the command line."""

    def resolve(recipe: str, path: Path) -> None:
        run = recipes.resolve(recipe, [path.read_text(encoding="utf-8", errors="replace")])
        validate_spec(plain_data.yaml_of(run.text()))
        models.spec(**{"family": "gpt", "vocab": 9} | run.model)

    names = ("reverse", "classify-sst", "vit", "gpt-text", "translate", "finetune-images")
    return [
        written(place / f"{name} {at}", key, of_words, lambda path, name=name: resolve(name, path))  # type: ignore[misc]
        for name in names
        for at, key in enumerate(KEYS)
    ]


def own_recipes(place: Path) -> list[Good]:
    """Recipes in files of one's own, alone and with changes."""
    home = files("heedful") / "recipes"
    changes: tuple[tuple[str, ...], ...] = (
        (),
        ("data=toy",),
        ("data.train=x", "start=x"),
        ("data=x",),
        ("model.size=s",),
    )
    return [
        written(
            place / f"{name}-{at}.yaml",
            home.joinpath(f"{name}.yaml").read_text(encoding="utf-8"),
            of_yaml,
            lambda path, more=more: recipes.resolve(str(path), more),  # type: ignore[misc]
        )
        for name in recipes.names()
        for at, more in enumerate(changes)
    ]


def runs(place: Path) -> list[Good]:
    """What a run leaves, as it is read when it goes on, is finished, or is compared."""
    make(place / "run", "run")
    folder = place / "run"

    def reported() -> None:
        record.cut_back(folder / "metrics.jsonl", 9)
        report.curves(record.rows(folder / "metrics.jsonl"), PAIRS.metrics)
        table.row(folder).cells(("exact",))

    def finished() -> None:
        run.train(recipes.resolve("reverse", BEGUN), folder, True, torch.device("cpu"))

    return [
        Good(folder / "run.yaml", of_yaml, lambda: trained_run.begun_run(folder)),
        Good(folder / "run.yaml", of_yaml, lambda: table.row(folder)),
        Good(folder / "run.yaml", of_yaml, finished),
        Good(folder / "result.json", of_json, lambda: table.row(folder).cells(("exact",))),
        Good(folder / "result.json", of_json, finished),
        Good(folder / "metrics.jsonl", of_rows, reported),
        Good(folder / "timing.jsonl", of_rows, reported),
    ]


def folders(place: Path) -> list[Good]:
    """Models of our own layout: spec, task and weights."""
    made = []
    for name in ("pairs", "sets", "series"):
        folder = place / name
        make(folder, name)
        made += [Good(folder / "spec.json", of_json, lambda folder=folder: trained_run.load_trained(folder))]  # type: ignore[misc]
        made += [Good(folder / "task.json", of_json, lambda folder=folder: trained_run.load_trained(folder))]  # type: ignore[misc]
        weights = folder / "model.safetensors"
        made += [Good(weights, of_header, lambda folder=folder: trained_run.load_trained(folder))]  # type: ignore[misc]
    return made


def of_header(dice: Any, data: bytes) -> bytes:
    """Damage to the header of a safetensors file, which says how long it is."""
    if dice.random() < 0.2:
        return of_bytes(dice, data)
    size = int.from_bytes(data[:8], "little")
    made = of_json(dice, data[8 : 8 + size])
    return len(made).to_bytes(8, "little") + made + data[8 + size :]


SETTINGS = {
    "architectures": ["X"],
    "tokenizer_class": "X",
    "bos_token": "a",
    "eos_token": {"content": "b"},
    "model_max_length": 9,
    "added_tokens_decoder": {"0": {"content": "a", "special": True}},
}
HOW = {"eos_token_id": [1, 2], "decoder_start_token_id": 1, "forced_bos_token_id": 2, "pad_token_id": 0}
PIXELS = {
    **{"do_resize": True, "size": {"height": 16, "width": 16}, "resample": 3, "do_center_crop": True, "crop_size": 16},
    **{"do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "do_convert_rgb": True},
    **{"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.2, 0.1], "image_processor_type": "ViTImageProcessor"},
}


def public_folders(place: Path) -> list[Good]:
    """Models in the layouts of others: config.json and what lies beside it."""
    made: list[Good] = []
    for kind, configs in CONFIGS.items():
        for at, config in enumerate(configs):
            folder = place / f"{kind}-{at}"
            spec = hf_models.read_spec(LAYOUTS[kind], Config({"model_type": kind, **config}, "config.json"), {})
            heedful.save(models.assemble(spec), folder, layout="hf")
            path = folder / "config.json"
            values = json.loads(path.read_text()) | {"model_type": kind} | config
            load = lambda path: heedful.load(path.parent)  # noqa: E731
            made.append(written(path, json.dumps(values), of_json, load))
            if at == 0 and kind in ("vit", "beit", "resnet"):
                made.append(written(folder / "preprocessor_config.json", json.dumps(PIXELS), of_json, load))
            if at == 0 and kind in ("gpt2", "bart", "t5", "marian"):
                made.append(written(folder / "generation_config.json", json.dumps(HOW), of_json, load))
    return made


def tokenizers(place: Path) -> list[Good]:
    """What tokenizers are told beside their vocabularies."""
    made: list[Good] = []
    for kind in ("gpt2", "bert"):
        folder = place / kind
        folder.mkdir(parents=True)
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "ab", "##a", "Ġ", "<|endoftext|>"]
        (folder / "vocab.txt").write_text("\n".join(tokens))
        (folder / "vocab.json").write_text(json.dumps({token: at for at, token in enumerate(tokens)}))
        (folder / "merges.txt").write_text("#version: 0.2\na b\n")
        (folder / "config.json").write_text(json.dumps({"model_type": kind}))
        for name in ("tokenizer_config.json", "special_tokens_map.json", "config.json"):
            content = json.dumps(SETTINGS | {"model_type": kind})
            one = written(
                folder / name, content, of_json, lambda path: heedful.tokenizers.hf_folders.read_folder(path.parent)
            )
            made.append(one)
    return made


MODEL = {"family": "gpt", "vocab": 9, "width": 8, "heads": 2, "depth": 1, "length": 16}


def spec_words(place: Path) -> list[Good]:
    """Words of specs: every kind of part, with an argument."""
    every = {
        **{
            "mechanism": (*part_tables.MECHANISMS, "window(size=128)"),
            "position": (*part_tables.POSITIONS, *part_tables.ROTARY),
        },
        **{"bias": part_tables.BIASES, "norm": ("layer", "rms(eps=1e-5)"), "feedforward": part_tables.FEEDFORWARDS},
        **{
            "stack": part_tables.STACKS,
            "order": part_tables.BLOCKS,
            "join": part_tables.JOINS,
            "project": part_tables.PROJECTIONS,
        },
    }

    def built(path: Path) -> None:
        for line in lines_of(path):
            key, _, word = line.partition("=")
            part_words.parse(word)
            for family in ("gpt", "transformer", "bert"):
                models.spec(**MODEL | {"family": family, **({key: word} if key in every else {"mechanism": word})})

    return [
        written(place / f"{key} {word}", f"{key}={word}", of_words, built)
        for key, named in every.items()
        for word in named
    ]


TREE = {"question": "where ?", "id": "1", "answers": [{"text": "here", "answer_start": 3}]}
SQUAD = {"version": "2", "data": [{"title": "x", "paragraphs": [{"context": "it here", "qas": [TREE, TREE]}]}]}
TALK = {"messages": [{"role": r, "content": r} for r in ("system", "user", "assistant", "user", "assistant")]}
TAGGED = "a\tX\tB-per\nb\tY\tI-per\n\nc\tZ\tO\n"
ROWS = "".join(json.dumps({"text": f"t {at}", "label": "ab"[at % 2]}) + "\n" for at in range(4))
ASKED = "".join(json.dumps({"question": "w", "context": "it here", "answers": ["here"]}) + "\n" for _ in range(3))


def data(place: Path) -> list[Good]:
    """Data of one's own, in every format."""
    sides = place / "a.src", place / "a.tgt", place / "a.align"
    for path, text in zip(sides, ("a b\nc d\n", "A B\nC D\n", "0-0 1-1\n0-1 1-0\n"), strict=True):
        written(path, text, of_lines, len)
    both = Sides(source=str(sides[0]), target=str(sides[1]), alignment=str(sides[2]))
    every: list[tuple[str, str, Mutation, Callable[[Path], object]]] = [
        ("a.tsv", "a\tb\nc\td\n", of_lines, lambda path: parallel_text.read_pairs(str(path))),
        ("text.tsv", "text\tlabel\na b\tx\nc d\ty\n", of_lines, lambda path: labelled_text.read_sentences(str(path))),
        (
            "two.csv",
            'sentence1,sentence2,label\na,b,x\n"c",d,y\n',
            of_lines,
            lambda path: labelled_text.read_sentences(str(path)),
        ),
        ("text.jsonl", ROWS, of_rows, lambda path: labelled_text.read_sentences(str(path))),
        ("a.conll", TAGGED, of_lines, lambda path: [conll.spans(s.tags) for s in conll.read_tagged(str(path))]),
        ("squad.json", json.dumps(SQUAD), of_json, lambda path: squad.read_questions(str(path))),
        ("squad.jsonl", ASKED, of_rows, lambda path: squad.read_questions(str(path))),
        (
            "chat.jsonl",
            json.dumps(TALK) + "\n" + json.dumps(TALK),
            of_rows,
            lambda path: chat_jsonl.read_dialogues(str(path)),
        ),
        ("numbers.csv", "a,x,y\nb,1,2.5\nc,-1e3,4\n", of_lines, lambda path: list(own_files.numbers(path, 1))),
        (
            "free.txt",
            "a b c\n\nd e f\n",
            of_lines,
            lambda path: list(documents.cut(documents.read_texts(str(path)), "paragraph")),
        ),
        ("links.align", "0-0 1-1\n\n2-0 1?1\n", of_lines, lambda path: pharaoh.write(pharaoh.read_links(path)[0].sure)),
        ("images.csv", "image,label\na.png,x\nb.png,y\n", of_lines, lambda path: list(sources.images_of_list(path))),
        (
            "images.jsonl",
            '{"image": "a.png", "label": 3}\n' * 2,
            of_rows,
            lambda path: list(sources.images_of_list(path)),
        ),
    ]
    made = [written(place / name, text, damage, way) for name, text, damage, way in every]
    return made + [Good(path, of_lines, lambda: parallel_text.read_pairs(both)) for path in sides]


def pictures(place: Path) -> list[Good]:
    """Arrays of pictures: idx files, CIFAR-10's records, NumPy's arrays, files of images, and lists of treebanks."""
    from PIL import Image

    from heedful.data.images import decode
    from heedful.data.images.limits import Broken, Size
    from heedful.errors import Refusal

    def seen(path: Path) -> None:
        try:
            decode.picture(path, Size(4, 4, 3))
        except Broken as broken:
            raise Refusal(str(broken)) from None

    idx = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (2, 4, 4)) + bytes(32)
    labels = bytes([0, 0, 8, 1]) + (2).to_bytes(4, "big") + bytes([0, 1])
    mnist, cifar = place / "mnist", place / "cifar"
    made = [
        written(
            mnist / f"{half}-{kind}-idx{axes}-ubyte", data, of_bytes, lambda path: mnist_and_cifar.read_idx(path.parent)
        )
        for half in ("train", "t10k")
        for kind, axes, data in (("images", 3, idx), ("labels", 1, labels))
    ]
    record = bytes([1]) + bytes(3072)
    names = [*(f"data_batch_{at}.bin" for at in range(1, 6)), "test_batch.bin"]
    made += [
        written(cifar / name, record, of_bytes, lambda path: mnist_and_cifar.read_cifar(path.parent)) for name in names
    ]
    np.save(place / "a.npy", np.zeros((4, 4, 3), np.uint8))
    made.append(Good(place / "a.npy", of_bytes, lambda: seen(place / "a.npy")))
    for ending in ("png", "jpg", "webp", "gif", "bmp"):
        path = place / f"a.{ending}"
        Image.new("RGB", (8, 8), (1, 2, 3)).save(path)
        made.append(Good(path, of_bytes, lambda path=path: seen(path)))  # type: ignore[misc]
    return made


DOORS: dict[str, Callable[[Path], list[Good]]] = {
    one.__name__: one
    for one in (keys, own_recipes, runs, folders, public_folders, tokenizers, spec_words, data, pictures)
}
