"""How the package reads: files, functions and signatures stay short, and a function's name says what it does."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "heedful"

FILE_LINES = 250
BODY_LINES = 30  # of a function, without its signature and its docstring
CONSTRUCTOR_ARGUMENTS = 8
FORWARD_ARGUMENTS = 4
FORWARD_BRANCHES = 3

# At most 10, each with its reason.
EXCEPTIONS = {
    "blocks/block.py CrossBlock.forward": "a decoder's layer looks at itself, at a source and at its own past",
    "blocks/block.py PostNormCrossBlock.forward": "the same in another order",
    "models/text/bert.py Bert.forward": "each argument is a field of the batch that some encoder reads",
    "objectives/cross_entropy.py Pieces.forward": "autograd calls it with all that the loss is told",
    "engines/decode_kernel_triton.py newest": "a kernel is one function, for a GPU calls no others",
}

# A past participle alone does not say what a function does to what: `read_pairs` and `sum_bucket` do.
IRREGULAR = frozenset(
    [
        "begun",
        "bound",
        "bought",
        "broken",
        "brought",
        "built",
        "caught",
        "chosen",
        "dealt",
        "done",
        "drawn",
        "fed",
        "felt",
        "forgotten",
        "fought",
        "found",
        "frozen",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
        "learnt",
        "led",
        "left",
        "lent",
        "lost",
        "made",
        "meant",
        "met",
        "paid",
        "read",
        "said",
        "seen",
        "sent",
        "shown",
        "spelt",
        "spent",
        "spoken",
        "stood",
        "struck",
        "swept",
        "taken",
        "taught",
        "thrown",
        "told",
        "torn",
        "understood",
        "unknown",
        "untaught",
        "within",
        "won",
        "worn",
        "woven",
        "wound",
        "written",
    ]
)
VERBS_IN_ED = frozenset({"bleed", "breed", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed"})

Function = ast.FunctionDef | ast.AsyncFunctionDef
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.Try, ast.BoolOp, ast.Match)


def too_long(name: str, source: str) -> Iterator[str]:
    lines = len(source.splitlines())
    if lines > FILE_LINES:
        yield f"{name} has {lines} lines, and {FILE_LINES} are the most"


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Every function and method, however deep, with the names that lead to it."""

    def within(node: ast.AST, path: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, ast.ClassDef | Function)
            inside = f"{path}.{child.name}".lstrip(".") if named else path
            if isinstance(child, Function):
                yield inside, child
            yield from within(child, inside)

    return within(tree, "")


def body_lines(function: Function) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return function.body[-1].end_lineno - body[0].lineno + 1 if body else 0


def arguments(function: Function) -> int:
    given = function.args
    return len([a for a in given.posonlyargs + given.args + given.kwonlyargs if a.arg not in ("self", "cls", "ctx")])


def faults(function: Function) -> Iterator[str]:
    """What of one function is over its limit."""
    branches = sum(isinstance(node, BRANCHES) for node in ast.walk(function))
    measures = [(body_lines(function), BODY_LINES, "lines in its body")]
    if function.name == "__init__":
        measures += [(arguments(function), CONSTRUCTOR_ARGUMENTS, "arguments")]
    if function.name == "forward":
        measures += [(arguments(function), FORWARD_ARGUMENTS, "arguments"), (branches, FORWARD_BRANCHES, "branches")]
    for count, most, what in measures:
        if count > most:
            yield f"has {count} {what}, and {most} are the most"


def misshapen(name: str, source: str) -> Iterator[str]:
    for path, function in functions(ast.parse(source)):
        for fault in faults(function):
            yield f"{name} {path} {fault}"


def is_participle(name: str) -> bool:
    word = name.strip("_")
    return word in IRREGULAR or (word.isalpha() and word.endswith("ed") and word not in VERBS_IN_ED)


def bare_participles(name: str, source: str) -> Iterator[str]:
    for node in ast.parse(source).body:
        if isinstance(node, Function) and is_participle(node.name):
            yield f"{name} {node.name} is a bare participle; say what it does to what"


RULES = (too_long, misshapen, bare_participles)


def found(rule) -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield from rule(str(path.relative_to(PACKAGE)), path.read_text(encoding="utf-8"))


def excepted(line: str) -> bool:
    return any(line.startswith(f"{place} ") for place in EXCEPTIONS)


@pytest.mark.parametrize("rule", RULES)
def test_the_package_keeps_the_ruler(rule):
    assert not (over := [line for line in found(rule) if not excepted(line)]), "\n".join(over)


def test_exceptions_are_few_and_needed():
    lines = [line for rule in RULES for line in found(rule)]
    assert len(EXCEPTIONS) <= 10
    assert [place for place in EXCEPTIONS if not any(line.startswith(f"{place} ") for line in lines)] == []


# The rules themselves: a rule that finds nothing proves nothing until it has found something.

BROKEN = [
    (too_long, "\n" * 251),
    (misshapen, "def f():\n" + "    x = 1\n" * 31),
    (misshapen, "class A:\n    def f(self):\n        def g():\n" + "            x = 1\n" * 31),
    (misshapen, "class A:\n    def __init__(self, a, b, c, d, e, f, g, *, h, i): ..."),
    (misshapen, "class A:\n    def forward(self, a, b, c, d, e): ..."),
    (misshapen, "class A:\n    def forward(self, a):\n        return [a and 1, a or 2, 1 if a else 2, a and 3]"),
    (bare_participles, "def told(): ..."),
    (bare_participles, "def _described(): ..."),
]
SOUND = [
    (too_long, "\n" * 250),
    (misshapen, 'def f(\n    a,\n    b,\n):\n    """' + "A\n" * 9 + '    """\n' + "    x = 1\n" * 30),
    (misshapen, "class A:\n    def __init__(self, a, b, c, d, e, f, g, h): ..."),
    (misshapen, "class A:\n    def forward(self, a, b, c, d): return a and b or (c if d else a)"),
    (misshapen, "def forward_all(a, b, c, d, e): ..."),
    (bare_participles, "def read_pairs(): ...\ndef seed(): ...\ndef is_told(): ...\nclass A:\n    def told(self): ..."),
]


@pytest.mark.parametrize(("rule", "source"), BROKEN)
def test_each_rule_finds_what_breaks_it(rule, source):
    assert len(list(rule("a.py", source))) >= 1


@pytest.mark.parametrize(("rule", "source"), SOUND)
def test_no_rule_objects_to_what_keeps_it(rule, source):
    assert list(rule("a.py", source)) == []
