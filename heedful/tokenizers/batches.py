"""Texts by the batch: as many at once as the engine gets, and the next while it is at one."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 1 << 19  # characters that the engine gets in one batch
LONG = 1 << 17  # characters of a text that ends its batch: the engine gives a text to one core, and others need work
AHEAD = max(2, os.cpu_count() or 1)  # batches it works on: no core waits for a long text, or for ids to become lists


def ahead(work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """What work makes of items, in order, while it is at the next ones."""
    if len(items) == 1:
        yield work(items[0])
        return
    with ThreadPoolExecutor(AHEAD) as pool:
        begun: deque[Future[R]] = deque()
        for item in items:
            begun.append(pool.submit(work, item))
            if len(begun) > AHEAD:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def batches(texts: Sequence[str], times: int = 1) -> Iterator[list[str]]:
    """Texts in order, as many at once as the engine gets in one batch; fewer, where it could make them much longer."""
    batch: list[str] = []
    room = most = AT_ONCE * 8 // max(8, times)
    for text in texts:
        batch.append(text)
        room -= len(text) + 1
        if room < 0 or len(text) > LONG:
            yield batch
            batch, room = [], most
    if batch:
        yield batch
