"""Pictures of any number of channels, each a file of NumPy's (`.npy`): rows, columns and channels of whole numbers.

The header is matched by a pattern: NumPy's own reader hands it to Python's parser.
"""

from __future__ import annotations

import io
import re
from math import prod

import numpy as np
from numpy.typing import NDArray

from heedful.data.images.limits import MOST, SIDE, TOO_MANY, Broken

ENDING = ".npy"
MAGIC = b"\x93NUMPY"
LENGTHS = {1: 2, 2: 4, 3: 4}  # bytes that tell how long the header is, by version
HEADER = re.compile(
    rb"\{'descr': '([^']{1,20})', 'fortran_order': (True|False), 'shape': \(((?:\d{1,9}, ?)*(?:\d{1,9})?)\), ?\}\s*"
)
WHOLE = {"|u1": "u1", "<u2": "<u2", ">u2": ">u2"}  # levels from 0 to 255, or to 65,535


def array(data: bytes, channels: int) -> NDArray[np.uint8]:
    """What a file holds, in 8 bits: C H W. Channels stand last or first."""
    after = 8 + LENGTHS.get(data[6], 0) if len(data) > 12 and data.startswith(MAGIC) else 0
    first = after + int.from_bytes(data[8:after], "little")
    found = HEADER.fullmatch(data, after, first) if after > 8 else None
    if found is None:
        raise Broken("it is no array of NumPy's of a plain kind")
    kind, sizes = found[1].decode("latin-1"), [int(one) for one in re.findall(rb"\d+", found[3])]
    if kind not in WHOLE:
        raise Broken(f"its numbers are {kind!r}; save it as uint8 or uint16")
    if len(sizes) not in (2, 3):
        raise Broken(f"it is an array of {len(sizes)} axes; save rows x columns x {channels}")
    if prod(sizes) * np.dtype(WHOLE[kind]).itemsize != len(data) - first:
        raise Broken(f"it says that it holds {' x '.join(map(str, sizes))} numbers and does not")
    turned = found[2] == b"True"  # the first axis goes fastest
    numbers = np.frombuffer(data, WHOLE[kind], offset=first).reshape(sizes[::-1] if turned else sizes)
    levels = (numbers >> 8 if numbers.itemsize == 2 else numbers).astype(np.uint8)
    return np.ascontiguousarray(channels_first(levels.T if turned else levels, channels))


def channels_first(numbers: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    """Rows, columns and channels as C H W."""
    if numbers.ndim == 2 and channels == 1:
        numbers = numbers[..., None]
    if numbers.ndim == 2 or not numbers.size or channels not in (numbers.shape[-1], numbers.shape[0]):
        said = " x ".join(map(str, numbers.shape))
        raise Broken(f"it is an array of {said}, and {channels} channels are wanted; save rows x columns x {channels}")
    made = numbers.transpose(2, 0, 1) if numbers.shape[-1] == channels else numbers
    if prod(made.shape[1:]) > MOST or max(made.shape[1:]) > SIDE:
        raise Broken(f"it has {made.shape[1]} x {made.shape[2]} pixels{TOO_MANY}")
    return made


def npy_bytes(pixels: NDArray[np.uint8]) -> bytes:
    """A picture (C H W) as such a file."""
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    return stream.getvalue()
