"""A slow machine is no fault: hypothesis sets no time limit per example, and tiny models get one thread.

Two threads that wait for each other over matrices of 32 numbers take several times as long as one, on a busy machine
above all.
"""

import torch
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
torch.set_num_threads(1)
