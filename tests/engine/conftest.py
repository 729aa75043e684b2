"""Tiny models get one thread.

Two threads that wait for each other over matrices of 32 numbers take several times as long as one, on a busy machine
above all.
"""

import torch

torch.set_num_threads(1)
