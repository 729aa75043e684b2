"""Ours against the transformers library, alternating in one process: same weights, prompt, threads and answer length.

Ours is timed with everything it does for a person: sampling, candidates, norms, events and their JSON. The library
is timed at its streamer, recording nothing, and once more as tools that show attention use it: eager, all maps kept.
"""
