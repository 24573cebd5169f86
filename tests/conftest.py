"""Toys are so small that a second thread only makes them wait; and one thread adds in one order, here and in a process started here."""

import os

import torch

os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)
