"""Station two: the whole paper is read at once; where every token looked, and which heads join two words."""

from views import lessons, place, station

station.show("prefill", {"examples": lessons.examples(place.lang()), "papers": lessons.papers()})
