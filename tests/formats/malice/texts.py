"""JSON and YAML that mean more than they say: code for words, absurd numbers, bombs of aliases."""

import json
from pathlib import Path

from tests.formats.malice.good import Bad
from tests.formats.malice.tools import Spoil, holds, replaces, says

NOT_A_WORD = r"spec.json: .* cannot be read; write a word, or word\(key=value, ...\) with plain values$"
CODE = (
    "performer(features=__import__('os').system('touch executed'))",
    "__import__('os').system('touch executed')",
    "softmax(x=[c for c in ().__class__.__base__.__subclasses__()])",
    "(lambda: softmax)()",
    "softmax if print('executed') else softmax",
    "window(size=(1).__class__)",
    "window(**{'size': 3})",
    "window(size=10**10**10)",
    "window(size=9" + "9" * 5000 + ")",
    "(" * 100_000,
    "-" * 100_000 + "1",
    "a(" * 50_000,
    "x." * 100_000 + "x",
    "f'{open(1)}'",
)


def spec(said: str, **values: object) -> Bad:
    return Bad(says("spec.json", **values), rf"spec.json: {said}")


def task(said: str, good: str = "sets", **values: object) -> Bad:
    return Bad(says("task.json", **values), said, good, "trained")


def rewritten(key: str, value: str) -> Spoil:
    """One value of a spec, in JSON as it stands."""

    def spoil(folder: Path) -> None:
        values = json.loads((folder / "spec.json").read_text()) | {key: "HERE"}
        (folder / "spec.json").write_text(json.dumps(values).replace('"HERE"', value))

    return spoil


SPECS = {f"code for a mechanism: {code[:40]}": Bad(says("spec.json", mechanism=code), NOT_A_WORD) for code in CODE} | {
    "code for a position": spec(".* cannot be read", position="sine(width=exec('1'))"),
    "code for a bias": spec(".* cannot be read", bias="alibi(heads=open('x','w'))"),
    "code for a norm": spec(".* cannot be read; write a word", norm="torch.load('x')"),
    "code for a family": spec("unknown family 'os.system'", family="os.system"),
    "a family that is an object": spec("unknown family", family={"py/object": "os.system"}),
    "code among the keys": spec("unknown key 'model.__reduce__'", __reduce__=["os.system", ["touch executed"]]),
    "modules among the keys": spec("unknown key 'model.auto_map'", auto_map={"AutoModel": "evil.Evil"}),
    "a target to be made": spec("unknown key 'model._target_'", _target_="os.system"),
    "a key of a megabyte": spec("unknown key 'model.k+ ... k*", **{"k" * 10**6: 1}),
    "a word of ten megabytes": spec("unknown .* 'm+ \\.\\.\\. ", norm="m" * 10**7),
    "a depth of a thousand million": spec(r"\d+ tensors are too few for depth 1000000000; mend", depth=10**9),
    "a decoder as deep": spec(r"\d+ tensors are too few for decoder_depth", decoder_depth=10**9),
    "a vocabulary of a thousand million": Bad(
        says("spec.json", vocab=10**9), r"tensor '.*' is \[7, 8\], not \[10{9}, 8\]"
    ),
    "a negative vocabulary": spec("model.vocab=-1 does not fit: it should be 1 or more", vocab=-1),
    "an absurd width": spec("the model cannot be built", width=10**18),
    "a width beyond all": spec("the model cannot be built", width=10**30),
    "an absurd hidden width": Bad(says("spec.json", hidden=10**12), r"tensor '.*' is \[.*\], not \[10{12}, 8\]"),
    "absurd heads": spec(".*", heads=10**18),
    "an absurd length": spec("model.length=1000000000000000 does not fit: .* less than", length=10**15),
    "an absurd length that positions have": Bad(
        says("spec.json", length=2**31 - 1, position="learned"), r"model.safetensors: tensor .* is missing"
    ),
    "an absurd network": Bad(says("spec.json", position="network(hidden=1000000000)"), r"tensor .* is missing"),
    "no number": Bad(rewritten("dropout", "NaN"), r"spec.json cannot be read as JSON: NaN is no number"),
    "a number without end": Bad(
        rewritten("width", "9" * 10_000), r"spec.json cannot be read as JSON: Exceeds the limit"
    ),
    "a number beyond all": Bad(rewritten("dropout", "1e999"), r"JSON: 1e999 is no number that can be held"),
    "a depth of brackets": Bad(holds("spec.json", "[" * 10**6), r"spec.json cannot be read as JSON: maximum recursion"),
    "a depth of braces": Bad(
        holds("spec.json", '{"a":' * 10**6), r"spec.json cannot be read as JSON: maximum recursion"
    ),
    "a key twice": Bad(replaces("spec.json", "{", '{"width": 8, '), r"JSON: key 'width' stands there twice"),
    "another coding": Bad(holds("spec.json", "{}".encode("utf-16")), r"spec.json cannot be read as JSON"),
    "half a character": spec(".* cannot be read; write a word", norm="\ud800"),
    "a zero in a word": spec(".* cannot be read; write a word", norm="layer\0"),
}
TASKS = {
    "an unknown task": task(r"task.json: task 'os.system' is not known", task="os.system"),
    "a task of a megabyte": task(r"task.json: task 't+ \.\.\. ", task="t" * 10**6),
    "a task that is an object": task(r"task.json: task .* is not known", task={"py/object": "os.system"}),
    "absurd channels": task(r"the task says channels=10{18} and the model does not", channels=10**18),
    "negative channels": task(r"the task says channels=-1 and the model does not", channels=-1),
    "channels beyond numbers": task(r"task.json (is not whole|cannot be read)", channels=[10**30]),
    "labels that are none": task(r"task.json is not whole: labels should be words", labels=[None, {}]),
    "labels without end": task(r"the task says classes=100000 and", labels=[str(at) for at in range(100_000)]),
    "an absurd horizon": task(r"is not whole: its numbers are not between 1 and", "series", horizon=10**18),
    "a negative past": task(r"is not whole: its numbers are not between 1 and", "series", past=-1),
    "an infinite past": Bad(
        replaces("task.json", '"past": 4', '"past": Infinity'), r"JSON: Infinity is no number", "series", "trained"
    ),
    "means that are none": task(r"task.json is not whole", "series", mean={"a": 1, "b": 2}),
    "absurd beams": task(r"task.json is not whole: .* less than or equal to 1000", "pairs", decoding={"beams": 10**9}),
    "a list for decoding": task(r"task.json is not whole", "pairs", decoding=[1]),
    "code for decoding": task(r"task.json is not whole", "pairs", decoding={"__reduce__": "os.system"}),
}
LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{at}: &a{at} [{f'*a{at - 1}, ' * 9}*a{at - 1}]\n" for at in range(1, 10))
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{at}: &a{at} {{<<: [{f'*a{at - 1}, ' * 9}*a{at - 1}]}}\n" for at in range(1, 10)
)
UNREAD = r"run.yaml cannot be read as YAML: .*"
NO_TAG = rf"{UNREAD}could not determine a constructor for the tag"


def run(said: str, text: str) -> Bad:
    return Bad(holds("run.yaml", text), said, "run", "begun")


RUNS = {
    f"a run with {tag}": run(NO_TAG, f"task: !!python/{tag} {value}\n")
    for tag, value in {
        "object/apply:os.system": "['touch executed']",
        "object/new:os.system": "['touch executed']",
        "object:collections.OrderedDict": "{}",
        "name:os.system": "''",
        "module:os": "''",
        "tuple": "[1]",
    }.items()
} | {
    "a run of laughs": run(rf"{UNREAD}it has an alias", LAUGHS),
    "a run of merges": run(rf"{UNREAD}it has an alias", MERGES),
    "a run that holds itself": run(rf"{UNREAD}it has an alias", "task: &a [*a]\n"),
    "a deep run": run(rf"{UNREAD}maximum recursion", "[" * 3000),
    "a deeper run": run(rf"{UNREAD}maximum recursion", "- " * 20_000 + "a"),
    "a run with an absurd number": run(rf"{UNREAD}a number has far too many digits", f"seed: 0x{'f' * 50_000}\n"),
    "a run with an absurd seed": run(
        r"run.yaml: seed=-1 does not fit", "task: pairs\ndata: toy\nmodel: {}\nseed: -1\n"
    ),
    "two runs": run(rf"{UNREAD}expected a single document", "task: a\n---\ntask: b\n"),
    "a run that is binary": run(UNREAD, "\0\1\2"),
    "a run that is a tag": run(r"run.yaml is no recipe|YAML", "!!set {a, b}\n"),
}
TEXTS = SPECS | TASKS | RUNS
