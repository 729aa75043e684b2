"""`python -m engine.weights fetch|prepare NAME [--accept-terms]`: for `start.py`, with a progress bar."""

from __future__ import annotations

import argparse
import sys
import threading
import time

from engine.settings import Refusal
from engine.weights import DEFAULT, MODELS, fetch, prepare, resolve
from engine.words import say


class Bar:
    """Progress as one line that grows and tells the seconds; in a log a line for every quarter, and one now and then,
    since reading a model's file is silent for up to a minute."""

    def __init__(self, lang: str, every: float | None = None) -> None:
        self.lang = lang
        self.watched = sys.stdout.isatty()
        self.last = ""
        self.now = (0.0, "")
        self.begun = time.monotonic()
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.every = every or (1.0 if self.watched else 15.0)
        threading.Thread(target=self._remind, daemon=True).start()

    def __call__(self, fraction: float, what: str) -> None:
        with self.lock:
            quarter = int(fraction * 4) != int(self.now[0] * 4) or what != self.now[1]
            if what != self.now[1]:
                self.begun = time.monotonic()
            self.now = (fraction, what)
            if self.watched or quarter:
                self._show()

    def close(self) -> None:
        """What is printed next begins a line of its own."""
        self.over.set()
        with self.lock:
            if self.last and self.watched:
                print(flush=True)

    def _remind(self) -> None:
        while not self.over.wait(self.every):
            with self.lock:
                if self.last and self.now[0] < 1 and not self.over.is_set():
                    self._show()

    def _show(self) -> None:
        fraction, what = self.now
        percent, seconds = int(fraction * 100), int(time.monotonic() - self.begun)
        line = f"[{'#' * (percent * 30 // 100):30}] {percent:3}% {say(f'start.{what}', self.lang)}"
        if seconds:
            line += say("start.so_far", self.lang, seconds=seconds)
        if line != self.last:
            print(f"\r{line}\033[K" if self.watched else line, end="" if self.watched else "\n", flush=True)
            self.last = line


def main() -> int:
    """`python -m engine.weights fetch|prepare NAME`: for `start.py`, with a progress bar. Exit status 2 on refusal."""
    parser = argparse.ArgumentParser(prog="python -m engine.weights")
    parser.add_argument("action", choices=("fetch", "prepare"))
    parser.add_argument("name", nargs="?", default=DEFAULT)
    parser.add_argument("--accept-terms", action="store_true")
    parser.add_argument("--lang", choices=("en", "zh"), default="en")
    options = parser.parse_args()

    bar = Bar(options.lang)
    try:
        if options.name not in MODELS:
            resolve(options.name)
        elif options.action == "fetch":
            fetch(options.name, bar, options.accept_terms)
        else:
            prepare(options.name, bar)
    except Refusal as refusal:
        bar.close()
        print(say(f"errors.{refusal.code}", options.lang, **refusal.values), file=sys.stderr)
        return 2
    bar.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
