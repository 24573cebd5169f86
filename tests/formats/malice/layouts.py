"""Folders in the layout of Hugging Face's that somebody made to do harm."""

import os
from pathlib import Path

from tests.formats.malice.good import Bad
from tests.formats.malice.places import CODE
from tests.formats.malice.tools import OUTSIDE, PICKLE, WEIGHTS, Spoil, both, holds, lacks, says

INDEX = f"{WEIGHTS}.index.json"
OUT = "is a link that leads out of the folder; put what it leads to in its place$"


def bad(spoil: Spoil, said: str, *unopened: str) -> Bad:
    return Bad(spoil, said, good="gpt2", unopened=unopened)


def config(said: str, **keys: object) -> Bad:
    return bad(says("config.json", **keys), rf"config.json: {said}")


def indexed(file: str) -> Spoil:
    """The weights elsewhere, as an index says."""
    text = f'{{"metadata": {{}}, "weight_map": {{"transformer.wte.weight": "{file}"}}}}'
    return both(lacks(WEIGHTS), holds(INDEX, text))


def links_out(name: str, to: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.symlink(folder.parent / OUTSIDE / to, folder / name)

    return spoil


LAYOUTS = {
    "a good gpt2": Bad(lambda folder: None, good="gpt2"),
    "code named by a gpt2": bad(
        both(says("config.json", auto_map={"AutoModel": "evil.Evil"}), holds("evil.py", CODE)), "auto_map is", "evil.py"
    ),
    "pickles for the weights of a gpt2": bad(
        both(lacks(WEIGHTS), holds("pytorch_model.bin", PICKLE)),
        "pytorch_model.bin is never opened",
        "pytorch_model.bin",
    ),
    "pickles beside a gpt2": Bad(
        both(*(holds(name, PICKLE) for name in ("pytorch_model.bin", "training_args.bin"))),
        good="gpt2",
        unopened=("pytorch_model.bin", "training_args.bin"),
    ),
    "an index of a gpt2 that leads up": bad(
        indexed("../../../../etc/passwd"), "which is no safetensors file of the folder"
    ),
    "an index of a gpt2 that leads away": bad(indexed("/etc/shadow"), "which is no safetensors file of the folder"),
    "an index of a gpt2 that names a pickle": bad(
        both(indexed("model.bin"), holds("model.bin", PICKLE)),
        "which is no safetensors file of the folder",
        "model.bin",
    ),
    "an index of a gpt2 that names a link": bad(
        both(indexed("a.safetensors"), links_out("a.safetensors", WEIGHTS)), f"a.safetensors {OUT}"
    ),
    "an index of a gpt2 that is a link": bad(both(lacks(WEIGHTS), links_out(INDEX, "spec.json")), f"{INDEX} {OUT}"),
    "weights of a gpt2 that are a link": bad(links_out(WEIGHTS, WEIGHTS), f"{WEIGHTS} {OUT}"),
    "a config that is a link": bad(links_out("config.json", "spec.json"), f"config.json {OUT}"),
    "a config with a model_type of nothing": config("model_type is '3'; it should be a text", model_type=3),
    "a config with a model_type of a path": config("unknown model_type '../../etc'", model_type="../../etc"),
    "a config of a thousand million layers": config("16 tensors are too few", n_layer=10**9),
    "a config of a vast vocabulary": bad(says("config.json", vocab_size=10**15), "'transformer.wte.weight' is"),
    "a config of a vast width": bad(says("config.json", n_embd=10**12, n_head=1), r"is \[|cannot be built"),
    "a config of no heads": config("model.heads=0 does not fit", n_head=0),
    "a config of fewer than no layers": config("model.depth=-1 does not fit", n_layer=-1),
    "a config of a number with an exponent": bad(
        holds("config.json", '{"n_layer": 1e999}'), "config.json cannot be read"
    ),
    "a config that says things twice": bad(
        holds("config.json", '{"model_type": "gpt2", "model_type": "llama"}'), "stands there twice"
    ),
    "a config nested without end": bad(holds("config.json", "[" * 10**6), "config.json cannot be read"),
    "a config that is a list": bad(holds("config.json", "[]"), "config.json should hold one JSON object"),
    "code for an activation": config("activation_function is 'os.system'; known", activation_function="os.system"),
    "a key that nobody knows": config("evil is", evil="rm"),
}
