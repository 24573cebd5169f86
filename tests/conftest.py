"""Toys are so small that a second thread only makes them wait, here and in every process that a test starts."""

import os

import torch

os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)
