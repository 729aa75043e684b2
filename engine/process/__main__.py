"""`python -m engine.process`, as the service starts it: connects back and serves until the connection ends."""

from __future__ import annotations

import json
import sys
from multiprocessing.connection import Client

from engine.process import EngineProcess


def main() -> int:
    start = json.loads(sys.stdin.readline())
    host, port = start["address"]
    connection = Client((host, int(port)), authkey=bytes.fromhex(start["key"]))
    try:
        EngineProcess(connection, start.get("device", ""), start.get("dtype", "")).serve()
    except (EOFError, ConnectionError, BrokenPipeError):
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
