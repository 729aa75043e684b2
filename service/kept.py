"""What was measured on this machine, kept on disk: one small JSON file per thing measured, results by name.

A subject says what results depend on (processor, threads, dtype, torch, and where it matters the weights): another
subject is another file, so figures of another machine or model are never shown as this one's.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MAX_RESULTS = 400
"""Of one subject; the oldest go first."""
MAX_SUBJECTS = 256
MAX_BYTES = 2**22
"""A file that is larger was not written here."""

_log = logging.getLogger(__name__)

Results = dict[str, dict[str, Any]]


class Kept:
    """Files in one folder, read and written whole. Blocking: call it from a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, subject: Mapping[str, Any]) -> Results:
        """All results of a subject by name, each with `taken`, its time in ISO 8601. A damaged file counts as none."""
        path = self._path(subject)
        try:
            if path.stat().st_size > MAX_BYTES:
                raise ValueError("too large")
            content = json.loads(path.read_text("utf-8"))
            results = content["results"]
            if content["subject"] != dict(subject) or not all(
                isinstance(one["taken"], str) for one in results.values()
            ):
                raise ValueError("not what was written")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            _log.warning("%s is damaged and not used", path.name)
            return {}
        return dict(results)

    def put(self, subject: Mapping[str, Any], name: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a result under its name, in place of an older one: the result with `taken`. A disk that is full is told
        in the log; the result is still given."""
        results = self.read(subject)
        results.pop(name, None)
        results[name] = told = {**result, "taken": datetime.now(UTC).isoformat(timespec="seconds")}
        while len(results) > MAX_RESULTS:
            del results[next(iter(results))]
        path = self._path(subject)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".part")
            partial.write_text(json.dumps({"subject": dict(subject), "results": results}), "utf-8")
            partial.replace(path)
            self._prune()
        except OSError:
            _log.exception("what was measured could not be kept")
        return told

    def _prune(self) -> None:
        files = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[:-MAX_SUBJECTS]:
            path.unlink(missing_ok=True)

    def _path(self, subject: Mapping[str, Any]) -> Path:
        key = json.dumps(dict(subject), sort_keys=True)
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
