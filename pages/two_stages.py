"""Why two stages: prefill and decode of a real run side by side, under this machine's roofline, and the race."""

from views import station

station.show("two_stages")
