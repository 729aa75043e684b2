"""Smaller notes: K and V squeezed to 8, 4 or 2 bits, what it saves, and when a fact is lost."""

from views import lab

lab.show("smaller_notes")
