"""Small pieces of work between two steps of the runs: what a page asks of the engine. Results are plain values.

Each takes a `desk.Desk` (the models and runs there are) and arguments from the service; none knows the process that
calls it. Labs use what measures here; `engine.process.jobs` is the list of all by name.
"""
