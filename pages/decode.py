"""Station three: one word per turn; how it is chosen, what it costs, why it stops."""

from views import lessons, station

station.show("decode", {"endings": lessons.endings()})
