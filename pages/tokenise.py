"""Station one: text is cut into tokens, live as somebody types."""

from views import lessons, station

station.show("tokenise", {"texts": lessons.texts()})
