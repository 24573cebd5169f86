"""Kinds of attention as others wrote them, to be timed beside ours where they are installed: of the same sizes."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Container
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import elu

from heedful.attention.projections import split
from heedful.bench.measure import is_installed

Look = Callable[[Tensor, Tensor, Tensor], Tensor]
Make = Callable[[int, int, int, str], Look]  # of heads, their width, a length and a device

FEATURES, RANK, WINDOW = 128, 64, 512  # as ours have


class Peer(NamedTuple):
    """A kind as one package has it, and the devices that it runs on."""

    kind: str
    make: Callable[[int, int, int], nn.Module]  # of heads, their width and a length
    devices: tuple[str, ...] = ("cpu", "cuda")


def packages(device: str) -> tuple[str, ...]:
    """The packages that would take part on a device."""
    return tuple(package for package, peer in PEERS.items() if device in peer.devices)


def find_peers(device: str, kinds: Container[str]) -> dict[str, Make]:
    """The peers of these kinds that are installed, each by its kind and its package; flex attention is torch's own."""
    there = {package: PEERS[package] for package in packages(device) if is_installed(package)}
    wanted = {package: peer for package, peer in there.items() if peer.kind in kinds}
    made: dict[str, Make] = {f"{peer.kind} by {name}": partial(place_peer, peer.make) for name, peer in wanted.items()}
    return {**made, "flex attention, bare, window": bare} if device == "cuda" and "window" in kinds else made


def place_peer(make: Callable[[int, int, int], nn.Module], heads: int, width: int, length: int, device: str) -> Look:
    """A peer on its device, in the precision that is timed there; what it says when it is made is not shown."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return make(heads, width, length).to(device, precision(device))


def precision(device: str) -> torch.dtype:
    """What is timed: bfloat16 on a GPU, float32 elsewhere."""
    return torch.bfloat16 if device == "cuda" else torch.float32


def performer(heads: int, width: int, length: int) -> nn.Module:
    """Random features, causal as ours is timed."""
    peer: Any = import_module("performer_pytorch")
    return peer.FastAttention(width, FEATURES, causal=True)


def window(heads: int, width: int, length: int) -> nn.Module:
    """A causal window, in blocks of its size."""
    peer: Any = import_module("local_attention")
    return peer.LocalAttention(WINDOW, causal=True, exact_windowsize=True, autopad=True)


class Shortened(nn.Module):
    """The linformer package's layer without its projections."""

    def __init__(self, heads: int, width: int, length: int) -> None:
        super().__init__()
        peer: Any = import_module("linformer")
        self.heads, self.layer = heads, peer.LinformerSelfAttention(heads * width, length, RANK, heads)
        self.layer.to_q, self.layer.to_k, self.layer.to_v = (Handed() for _ in range(3))
        self.layer.to_out = nn.Identity()

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2).flatten(2) for x in (q, k, v))
        self.layer.to_q.x, self.layer.to_k.x, self.layer.to_v.x = q, k, v
        return split(self.layer(q), self.heads)


class Handed(nn.Module):
    """In the place of a projection: gives what it was handed."""

    x: Tensor

    def forward(self, _: Tensor) -> Tensor:
        return self.x


class Chunked(nn.Module):
    """Linear attention by flash-linear-attention's kernels, which take B T H D."""

    def __init__(self, heads: int, width: int, length: int) -> None:
        super().__init__()
        peer: Any = import_module("fla.ops.linear_attn")
        self.kernel = peer.chunk_linear_attn

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (elu(q) + 1, elu(k) + 1, v))
        return self.kernel(q, k, v, scale=1.0, normalize=True)[0].transpose(1, 2)


def bare(heads: int, width: int, length: int, device: str) -> Look:
    """Flex attention itself with a causal window, its block mask made beforehand."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def near(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i >= j) & (i - j < WINDOW)

    blocks = create_block_mask(near, None, None, length, length, device=device, _compile=True)
    flex: Any = torch.compile(flex_attention)  # as ours: the first length by itself, then any
    return lambda q, k, v: flex(q, k, v, block_mask=blocks)


PEERS = {
    "performer-pytorch": Peer("performer", performer),
    "linformer": Peer("linformer", Shortened),
    "local-attention": Peer("window", window),
    "flash-linear-attention": Peer("linear", Chunked, devices=("cuda",)),
}
