"""The scratch paper: the KV cache itself, its bytes, who shares it, and that what is written in it stays."""

from views import lessons, place, station

station.show("notes", {"examples": lessons.examples(place.lang())})
