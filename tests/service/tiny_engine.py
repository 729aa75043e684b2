"""An engine process without a model, over a real connection. A prompt tells it what to do: `die`, or answer.

Arguments: `quits` (ends before it connects) or `dies` (ends when it has connected).
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from multiprocessing.connection import Client
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from engine.trace import Finished
from tests.engine.traces import FACTS, run


def main() -> None:
    start = json.loads(sys.stdin.readline())
    if "quits" in sys.argv:
        return
    connection = Client(tuple(start["address"]), authkey=bytes.fromhex(start["key"]))
    if "dies" in sys.argv:
        os._exit(3)
    while True:
        match connection.recv():
            case ("quit",):
                return
            case ("load", name):
                connection.send(("status", "ready", {"model": name, "facts": replace(FACTS, model=name)}))
            case ("submit", run_id, settings, _):
                events = run([0.5, 1.0, 1.5], settings.prompt).events
                if settings.prompt == "die":
                    connection.send(("events", run_id, list(events[:4])))
                    os._exit(3)
                connection.send(("events", run_id, list(events)))
            case ("job", job, "pid", _):
                connection.send(("result", job, os.getpid()))
            case ("stop", run_id, reason):
                connection.send(("events", run_id, [Finished(2.0, reason)]))


if __name__ == "__main__":
    try:
        main()
    except EOFError:  # the service is gone, and so am I
        sys.exit(0)
