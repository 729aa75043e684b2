"""Waiting: TTFT against the paper's length and TPOT against the context, measured here, and what they feel like."""

from views import lessons, station

(paper,) = [example for example in lessons.examples("en") if example["id"] == "long-paper"]
station.show("waiting", {"text": paper["settings"]["prompt"]})
