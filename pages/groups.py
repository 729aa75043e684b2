"""Shared notes: ordinary, grouped, multi-query and latent attention; K and V read once per group against repeated."""

from views import lab

lab.show("groups")
