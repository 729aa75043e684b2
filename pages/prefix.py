"""Prefix caching: the same passage, another question; what matches, what is read, and that nothing lent is changed."""

from views import lab

lab.show("prefix")
