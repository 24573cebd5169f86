"""Toys are so small that a second thread only makes them wait, here and in every process that a test starts."""

import gc
import os

import torch
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # how fast a machine is, and how busy, proves nothing
settings.load_profile("untimed")
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)

# For each kind of device that is not there torch.manual_seed writes down the whole stack, which under pytest is deep.
if not torch.cuda.is_available():
    for absent in (torch.cuda, torch.xpu, torch.mtia):
        absent.manual_seed_all = lambda seed: None


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end, and need not be searched for garbage again and again."""
    gc.freeze()
