"""Station four: ids become bytes, bytes become characters, and some of them have to wait."""

from views import station

station.show("detokenise")
