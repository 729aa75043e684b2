"""Chunked prefill: a long paper arrives while somebody is answered; both on one clock, by chunk size."""

from views import lab

lab.show("chunked")
