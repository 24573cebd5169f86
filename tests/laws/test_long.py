"""Kinds that promise less than T^2 keep it at T = 65,536: the memory at hand would not hold one T x T tensor."""

import subprocess
import sys

from heedful.models import words

LENGTH = 65_536
SIZES = {"size": 64, "clusters": 256, "rank": 16, "landmarks": 16, "features": 16, "row": 32, "rounds": 1}
SAME_ROAD = ("strided", "fixed", "axial", "local", "local2d", "blocks")  # as the other masks; test_blocks has them all
LIMIT = 1 << 30  # bytes above what is loaded: a T x T boolean has four times as many
PROGRAM = """
import resource, sys, torch
from heedful.attention import Causal, Everything
from heedful.models import words
torch.set_num_threads(1)
length, limit = int(sys.argv[1]), int(sys.argv[2])
q, k, v = (torch.randn(1, 1, length, 4) for _ in range(3))
[pages] = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")]
resource.setrlimit(resource.RLIMIT_AS, (pages * 1024 + limit, resource.RLIM_INFINITY))
for word in sys.argv[3:]:
    m, mask = words.mechanism(word, 1, 4, length), words.mask(word) or Everything()
    card = (words.MECHANISMS | words.MASKS)[words.parse(word)[0]].card
    with torch.no_grad():
        y = m(q, k, v, ((Causal() if card.causal else Everything()) & mask).over(torch.empty(1, length)))
    assert y.isfinite().all() and y.shape == v.shape, word
    print(word)
try:
    torch.ones(length, length, dtype=torch.bool)
except RuntimeError:
    print("and no more")
"""


def test_what_promises_less_than_t_squared_keeps_it_at_65536():
    known = words.MECHANISMS | words.MASKS
    promise = [word for word, kind in known.items() if kind.card.cost != "T^2" and kind.card.tier == "A"]
    promise = [word for word in promise if word not in SAME_ROAD]
    assert len(promise) >= 10
    asked = []
    for word in promise:
        sizes = [f"{name}={SIZES[name]}" for name in words.arguments(known[word]) if name in SIZES]
        asked.append(f"{word}({', '.join(sizes)})")
    run = [sys.executable, "-c", PROGRAM, str(LENGTH), str(LIMIT), *asked]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [*asked, "and no more"]
