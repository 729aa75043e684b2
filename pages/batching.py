"""Continuous batching: eight people served one by one, in batches, and joining and leaving at any step."""

from views import lab

lab.show("batching")
