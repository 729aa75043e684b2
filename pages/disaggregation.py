"""Prefill/decode disaggregation, simulated with this machine's costs: a queue of people, two arrangements, a link."""

from views import lab

lab.show("disaggregation")
