"""Pickles under every usual name, code beside a model, links out of the folder, and what is no file at all."""

import os
import socket
from pathlib import Path

from tests.formats.malice.good import Bad
from tests.formats.malice.tools import PICKLE, WEIGHTS, a_folder, both, empty, holds, lacks, leads, only, pipe

NAMES = (
    "pytorch_model.bin",
    "pytorch_model-00001-of-00002.bin",
    "adapter_model.bin",
    "training_args.bin",
    "model.pt",
    "optimizer.pt",
    "consolidated.00.pth",
    "rng_state.pth",
    "epoch=1.ckpt",
    "weights.pkl",
    "model.pickle",
    "model.joblib",
    "arrays.npy",
    "arrays.npz",
    "tf_model.h5",
    "flax_model.msgpack",
    "MODEL.PT",
)
UNREAD = r"holds no model; {} is never opened, for such files can run code: load it with the tool .* as safetensors$"
CODE = "import os\nos.system('touch executed')\n"
CONFIG = '{"architectures": ["Evil"], "auto_map": {"AutoModel": "modeling_evil.Evil"}, "trust_remote_code": true}'
MODULES = ("modeling_evil.py", "__init__.py", "torch.py", "json.py", "heedful.py", "sitecustomize.py", "setup.py")
INDEX = '{"weight_map": {"inputs.table.weight": "../../../../etc/passwd", "b": "/etc/shadow", "c": "model.bin"}}'
OUT = r"is a link that leads out of the folder; put what it leads to in its place$"


def a_socket(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    handle = os.open(folder, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{handle}/{WEIGHTS}")  # a socket's path must be short
    os.close(handle)


def swapped(folder: Path) -> None:
    """A model folder of which nothing is left but the link that a hub's cache would have."""
    (folder / "blobs").mkdir()
    (folder / WEIGHTS).rename(folder / "blobs" / "0")
    (folder / WEIGHTS).symlink_to(Path("blobs") / "0")


SPOILT = r"copy or train it again, or remove .*/manifest.json if you changed it on purpose$"
MANIFESTS = {
    f"a model's manifest that {what}": Bad(spoil, said)
    for what, spoil, said in (
        ("is a pickle", holds("manifest.json", PICKLE), rf"manifest.json is missing or cannot be read; {SPOILT}"),
        ("is a link", leads("manifest.json", "OUTSIDE/spec.json"), rf"missing or cannot be read; {SPOILT}"),
        ("is a pipe", pipe("manifest.json"), rf"missing or cannot be read; {SPOILT}"),
        ("leads out", holds("manifest.json", '{"files": {"../outside/spec.json": {}}}'), rf"is missing; {SPOILT}"),
        ("leads far out", holds("manifest.json", '{"files": {"/dev/zero": {}}}'), rf"/dev/zero is missing; {SPOILT}"),
        ("is beside a link", both(holds("manifest.json", '{"files": {"a": {}}}'), leads("a", "/dev/zero")), OUT),
        ("is none", holds("manifest.json", '{"files": {"spec.json": 1}}'), rf"one that was written here; {SPOILT}"),
    )
}
PICKLES = {f"only {name}": Bad(only(name, PICKLE), UNREAD.format(name)) for name in NAMES} | {
    "a pickle beside the spec": Bad(
        both(lacks(WEIGHTS), holds("pytorch_model.bin", PICKLE)), r"not whole; pytorch_model.bin is never opened"
    ),
    "a pickle for weights": Bad(holds(WEIGHTS, PICKLE), rf"{WEIGHTS} cannot be read: its header is longer than the"),
    "a pickle for a spec": Bad(holds("spec.json", PICKLE), r"spec.json cannot be read as JSON: .*; copy or train"),
    "a pickle for a task": Bad(holds("task.json", PICKLE), r"task.json cannot be read as JSON", way="trained"),
    "a pickle for a tokenizer": Bad(
        holds("tokenizer.json", PICKLE), r"tokenizer.json is no tokenizer: it is neither", way="trained"
    ),
    "a pickle for a model of pieces": Bad(
        holds("tokenizer.model", PICKLE), r"tokenizer.model is no tokenizer: it is neither", way="tokenizer"
    ),
    "pickles beside a good model": Bad(
        lambda folder: [holds(name, PICKLE)(folder) for name in NAMES], way="trained", unopened=NAMES
    ),
}
MODULE = {
    "a config with code alone": Bad(
        both(only("config.json", CONFIG), holds(MODULES[0], CODE)), r"config.json: model_type is missing"
    ),
    "a config with code beside a good model": Bad(
        both(holds("config.json", CONFIG), *(holds(name, CODE) for name in MODULES)),
        way="trained",
        unopened=("config.json", *MODULES),
    ),
    "an index that leads out": Bad(
        both(lacks(WEIGHTS), holds(f"{WEIGHTS}.index.json", INDEX)),
        rf"{WEIGHTS} does not exist, so the folder is not whole; copy or train it again$",
        unopened=(f"{WEIGHTS}.index.json",),
    ),
    "an index beside a good model": Bad(
        holds(f"{WEIGHTS}.index.json", INDEX), unopened=(f"{WEIGHTS}.index.json",), way="trained"
    ),
    "nothing": Bad(empty, r"holds no model; name a run folder or the model/ in it"),
}
LINKS = {
    f"{name} leads out": Bad(leads(name, f"OUTSIDE/{name}"), f"{name} {OUT}", way="trained")
    for name in (WEIGHTS, "spec.json", "task.json", "tokenizer.json")
} | {
    "the tokenizer beside leads out": Bad(leads("tokenizer.json", "OUTSIDE/tokenizer.json"), OUT, way="beside"),
    "weights lead to a device": Bad(leads(WEIGHTS, "/dev/zero"), OUT),
    "a tokenizer leads to a device": Bad(leads("tokenizer.json", "/dev/zero"), OUT, way="trained"),
    "a named tokenizer leads to a device": Bad(
        leads("tokenizer.json", "/dev/zero"), r"tokenizer.json is no tokenizer: it is no plain file$", way="tokenizer"
    ),
    "a task leads to secrets": Bad(leads("task.json", "/proc/self/environ"), OUT, way="trained"),
    "a spec leads up": Bad(leads("spec.json", "../outside/spec.json"), OUT),
    "a spec leads by way of a link": Bad(
        both(lambda folder: (folder / "up").symlink_to(".."), leads("spec.json", "up/outside/spec.json")), OUT
    ),
    "weights lead to themselves": Bad(leads(WEIGHTS, WEIGHTS), rf"{WEIGHTS} cannot be read: .*symbolic links"),
    "weights lead nowhere": Bad(leads(WEIGHTS, "nowhere"), rf"{WEIGHTS} does not exist, so the folder is not whole"),
    "weights lead within": Bad(swapped, way="trained"),
    "a model folder leads out": Bad(leads("model", "OUTSIDE"), f"model {OUT}", good="run"),
    "a model folder leads out of a run": Bad(leads("model", "OUTSIDE"), OUT, good="run", way="trained"),
    "a run's spec leads out": Bad(leads("run.yaml", "OUTSIDE/run.yaml"), f"run.yaml {OUT}", "run", "begun"),
    "a run's spec leads out of a table": Bad(leads("run.yaml", "OUTSIDE/run.yaml"), OUT, "run", "table"),
    "a result leads out": Bad(leads("result.json", "OUTSIDE/result.json"), f"result.json {OUT}", "run", "table"),
    "times lead out": Bad(leads("timing.jsonl", "OUTSIDE/timing.jsonl"), f"timing.jsonl {OUT}", "run", "table"),
}
KINDS = {
    f"a pipe for {name}": Bad(
        pipe(name), rf"{name} (cannot be read|is no tokenizer).*: it is no plain file", way="trained"
    )
    for name in (WEIGHTS, "spec.json", "task.json", "tokenizer.json")
} | {
    f"a folder for {name}": Bad(a_folder(name), rf"{name} .*(it is no plain file|is a folder)", way="trained")
    for name in (WEIGHTS, "spec.json", "task.json", "tokenizer.json")
}
KINDS |= {
    "a socket for weights": Bad(a_socket, rf"{WEIGHTS} cannot be read: it is no plain file"),
    "a pipe for a run's spec": Bad(
        pipe("run.yaml"), r"run.yaml cannot be read as YAML: it is no plain", "run", "recipe"
    ),
    "a pipe for a model of pieces": Bad(pipe("tokenizer.model"), r"it is no plain file$", way="tokenizer"),
}
PLACES = PICKLES | MANIFESTS | MODULE | LINKS | KINDS
