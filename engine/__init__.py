"""The model and its measurements: torch and transformers, no web, no plotting.

`docs/architecture.md` draws the packages and who may import whom; `settings` and `words` stand below all of them. The
pages' process imports `trace`, `plan`, `weights`, `disaggregation`, and of `labs`, `jobs.machine` and `measure.fit`
what is pure; none of it imports torch (`tests/test_imports.py` proves it in fresh interpreters).
"""

import os

# Read by the OpenMP runtime when torch loads it. Threads that wait for one another by spinning burn the time slice
# the other needs as soon as anything else runs (a browser, a page): on two busy cores a token took five to eight
# times as long as with threads that sleep while they wait. Measured in docs/decisions.md.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
