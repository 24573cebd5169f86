"""Many processes, one run: who does what, what is said to all, and who is missing. One alone is the simplest case."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from heedful.errors import Failure, Refusal

TOLD = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # by torchrun, in the environment
PATIENCE = timedelta(hours=1)  # others wait so long while the first one scores; one that died is noticed at once
PARTING = 10.0  # seconds; by then who has not come will not
LOST = "gloo|nccl|connection|socket|peer|store"  # as torch speaks of a process that no longer answers


class Ranks:
    """A lone process: it has all samples, and speaks for all."""

    rank, size = 0, 1
    made: Any = None

    @property
    def first(self) -> bool:
        """Whether this is the process that prints, draws, scores and writes."""
        return self.rank == 0

    def share(self, samples: Sequence[Any], together: int = 1) -> tuple[Sequence[Any], float]:
        """The samples of a micro-batch that are this process's, and how much they count: 0 where it has none.

        Samples are dealt out like cards: they stand in order of length, so that everyone gets long ones and short ones.
        So many go `together` as a model has members, each of which reads one of them, in any process.
        Who is left without one works on somebody else's, to take part in what all do together, and counts nothing.
        """
        hands = range(self.rank * together, len(samples), self.size * together)
        own = [sample for at in hands for sample in samples[at : at + together]]
        return (own, 1.0) if len(own) else (samples[:1], 0.0)

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over all processes."""
        return tensor

    def any(self, said: bool) -> bool:
        """Whether one of the processes says so."""
        return said

    def told(self, number: Callable[[], float]) -> float:
        """A number that the first process works out, for all."""
        return number()

    def wait(self) -> None:
        """Goes on when all have come so far."""
        return

    def gone(self) -> list[int]:
        """The processes of this machine that are no more."""
        return []

    def mesh(self, device: str) -> Any:
        """All processes in a row, as torch wants to know them."""
        from torch.distributed.device_mesh import init_device_mesh

        self.made = self.made or init_device_mesh(device, (self.size,))
        return self.made


ONE = Ranks()


class Many(Ranks):
    """One of the processes that torchrun started."""

    def __init__(self, rank: int, size: int, store: Store) -> None:
        self.rank, self.size, self.store = rank, size, store
        host = int.from_bytes(hashlib.sha256(socket.gethostname().encode()).digest()[:7], "big")
        mine = torch.tensor([host, os.getpid()])
        everyone = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(everyone, mine)
        self.beside = {at: int(pid) for at, (home, pid) in enumerate(everyone) if int(home) == host}

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(tensor)
        return tensor

    def any(self, said: bool) -> bool:
        heard = torch.tensor(float(said))  # on the CPU: nobody waits for a GPU
        return bool(self.sum(heard))

    def told(self, number: Callable[[], float]) -> float:
        said = torch.tensor(number() if self.first else 0.0, dtype=torch.float64)
        dist.broadcast(said, 0)
        return float(said)

    def wait(self) -> None:
        self.any(False)

    def part(self) -> None:
        """Returns when no process has anything left to hear: one that hangs up sooner may bring others down."""
        self.wait()
        self.store.add("parting", 1)
        until = time.monotonic() + PARTING
        while self.store.add("parting", 0) < self.size and time.monotonic() < until:
            time.sleep(0.01)

    def gone(self) -> list[int]:
        return [rank for rank, pid in self.beside.items() if not alive(pid)]

    def speaks(self) -> bool:
        """Whether this process is the first to speak of what went wrong: all see it, and one line is enough."""
        try:
            return self.store.add("spoken", 1) == 1
        except RuntimeError:  # the store itself is gone
            return True


class Ended(BaseException):
    """The process was asked to end, by torchrun where another one has died."""


def alive(pid: int) -> bool:
    """Whether a process of this machine runs; one that has died and whose parent has not heard of it does not."""
    try:
        os.kill(pid, 0)
        return re.search(r"\) [ZX] ", Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")) is None
    except ProcessLookupError:
        return False
    except OSError:  # no such folder on this system
        return True


def is_launched() -> bool:
    """Whether torchrun, or something like it, started this process as one of several."""
    return all(name in os.environ for name in TOLD)


def is_restarted() -> bool:
    """Whether torchrun started this process again after a failure: what was begun goes on."""
    return attempt() > 0


def attempt() -> int:
    """How many times torchrun has started these processes before."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def own_device(place: torch.device) -> torch.device:
    """The device of this process, of the kind that was asked for."""
    if place.type == "cpu" or not is_launched():
        return place
    if place.type == "mps" or place.index is not None:
        raise Refusal(f"each of several processes has a GPU of its own, and not {place}; use --device cuda or cpu")
    local, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= count:
        raise Refusal(
            f"process {local} of this machine has no GPU of its own, for there are {count}; "
            f"use --nproc-per-node {count}, or --device cpu"
        )
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


@contextlib.contextmanager
def join_processes(cpu: bool = False) -> Iterator[Ranks]:
    """All processes of this run, met and ready to talk; a lone process where nobody started more.

    What stops one of them is said once, and who is missing is named.
    """
    if not is_launched():
        yield ONE
        return
    shared, rank, size = next(iter(rendezvous("env://", timeout=PATIENCE)))
    store = PrefixStore(f"attempt-{attempt()}", shared)  # torchrun keeps the same one when it starts again
    backend = "gloo" if cpu or not torch.cuda.is_available() else "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, store=PrefixStore("group", store), rank=rank, world_size=size, timeout=PATIENCE)
    ranks = Many(rank, size, store)
    with spoken_once(ranks), warnings.catch_warnings():
        if not ranks.first:
            warnings.simplefilter("ignore")
        yield ranks
        ranks.part()
    dist.destroy_process_group()


def leave(status: int) -> NoReturn:
    """Ends one of several processes without taking Python down.

    torch's threads for talking outlive their group and may hold the last hand on a tensor of Python's: one that lets go
    of it while Python is taken down aborts the process (torch 2.11 and 2.13; on a busy machine one exit in forty).
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it any more
            stream.flush()
    os._exit(status)


@contextlib.contextmanager
def spoken_once(ranks: Many) -> Iterator[None]:
    """Lets one process say what went wrong, and names the one that is gone where that is what went wrong."""

    def end(*_: object) -> None:
        raise Ended

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except (Ended, RuntimeError) as error:
        lost = isinstance(error, Ended) or (
            not isinstance(error, Failure) and re.search(LOST, str(error), re.IGNORECASE) is not None
        )
        why = Failure(missing(ranks, isinstance(error, Ended))) if lost else error
        if not ranks.speaks():
            raise SystemExit(1) from None
        raise why from None
    except Refusal as refused:
        if not ranks.speaks():
            raise SystemExit(refused.status) from None
        raise
    except Exception:
        ranks.speaks()  # nobody else need say that this one is gone
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def missing(ranks: Many, asked: bool) -> str:
    """Who is gone, and how to go on; a process takes a moment to be seen as dead."""
    until = time.monotonic() + (0.3 if asked else 2.0)
    while not (gone := ranks.gone()) and time.monotonic() < until:
        time.sleep(0.02)
    names = ", ".join(f"{rank} (process {ranks.beside[rank]})" for rank in gone)
    what = f"rank {names} is gone" if gone else "asked to end" if asked else "a rank on another machine is gone"
    return f"{what}; go on from what was saved last with --resume, or let torchrun do so with --max-restarts"
