"""A slow machine is no fault: hypothesis sets no time limit per example."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
