"""Kinds that promise less than T^2 keep it at T = 65,536: the memory at hand would not hold one T x T tensor."""

import subprocess
import sys

import pytest

from heedful.models import attention_kinds

LENGTH = 65_536
SIZES = {"size": 64, "clusters": 256, "rank": 16, "landmarks": 16, "features": 16, "row": 32, "rounds": 1}
SIZES |= {"stride": 512, "far": 2048, "points": 16, "memory": 16, "everywhere": 2}
OWN = {"memory_compressed": {"size": 512}, "clustered": {"clusters": 16}}  # T^2 / size; and clusters that cost T each
SAME_ROAD = ("strided", "fixed", "axial", "local", "local2d", "blocks")  # as the other masks; test_blocks has them all
LIMIT = 1 << 30  # bytes above what is loaded: a T x T boolean has four times as many
PROGRAM = """
import resource, sys, torch
from heedful import models
from heedful.attention import Causal, Everything
from heedful.models import attention_kinds, part_tables, part_words
torch.set_num_threads(1)
length, limit = int(sys.argv[1]), int(sys.argv[2])
q, k, v = (torch.randn(1, 1, length, 4) for _ in range(3))
small = {"width": 4, "heads": 1, "depth": 1, "hidden": 4, "length": length, "position": "none", "pool": "each"}
[pages] = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")]
resource.setrlimit(resource.RLIMIT_AS, (pages * 1024 + limit, resource.RLIM_INFINITY))
for word in sys.argv[3:]:
    kind = attention_kinds.kind_named(part_words.parse(word)[0])
    with torch.no_grad():
        if kind.role in ("mechanism", "mask"):
            m, mask = part_tables.mechanism(word, 1, 4, length), part_tables.mask(word) or Everything()
            y = m(q, k, v, ((Causal() if kind.card.causal else Everything()) & mask).over(torch.empty(1, length)))
        else:
            given = {"mechanism": "linear" if kind.role == "join" else "softmax"}
            model = models.build("predictor", vocab=9, classes=4, **small | given | {kind.key[6:]: word})
            y = model(torch.arange(length)[None] % 5 + 4)[:, None]
    assert y.isfinite().all() and y.shape == v.shape, word
    print(word)
try:
    torch.ones(length, length, dtype=torch.bool)
except RuntimeError:
    print("and no more")
"""


@pytest.mark.parametrize("tier", "AB")
def test_what_promises_less_than_t_squared_keeps_it_at_65536(tier):
    promise = [
        name for name, kind in attention_kinds.every().items() if kind.card.cost != "T^2" and kind.card.tier == tier
    ]
    promise = [name for name in promise if name not in SAME_ROAD]
    assert len(promise) >= 10
    asked = [attention_kinds.kind_named(name).word(**SIZES | OWN.get(name, {})) for name in promise]
    run = [sys.executable, "-c", PROGRAM, str(LENGTH), str(LIMIT), *asked]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [*asked, "and no more"]


LONG = """
import resource, sys, torch
from itertools import product
from heedful import models
from heedful.attention import Memory
torch.set_num_threads(1)
tokens, numbers, length = torch.arange(2 * 16_384).view(2, -1) % 5 + 4, torch.arange(16_384), 16_384
small = {"width": 8, "heads": 2, "depth": 1, "hidden": 8, "length": length}
[pages] = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")]
resource.setrlimit(resource.RLIMIT_AS, (pages * 1024 + (1 << 28), resource.RLIM_INFINITY))
for family, own, word in product(("bert", "gpt"), (slice(0, 10_000), slice(6_384, length)), sys.argv[1:]):
    model = models.build(family, vocab=9, mechanism=word, **small).eval()
    places = torch.stack((numbers, torch.full_like(numbers, -1)))
    places[1, own] = numbers[:10_000]
    given = {"memory": Memory()} if family == "gpt" else {}
    with torch.no_grad():
        both, alone = model(tokens, positions=places, **given), model(tokens[1:, own])
    torch.testing.assert_close(both[1:, own], alone, rtol=1e-4, atol=1e-5)
    print(word)
"""


def test_models_of_texts_keep_it_with_padding_on_either_side_and_padding_says_nothing():
    asked = ["window(size=64)", "strided(size=64)", "linear", "softmax"]
    done = subprocess.run([sys.executable, "-c", LONG, *asked], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == asked * 4
