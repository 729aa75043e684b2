"""The remedies: what each solves, on which stage, in a plain word, and what it gained on this machine."""

from views import lab, station

station.show("remedies", {**lab.told(), "remedies": lab.remedies()})
