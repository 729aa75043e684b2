"""What is measured of a machine and kept: peaks, decode in batches, the parts of a pass, how long people wait.

`results` (their names, and what follows from them) and `recorded` (those that ship with the project) are the service's
too and load no torch; `pieces` measures all of them, for `python -m engine measure`.
"""
