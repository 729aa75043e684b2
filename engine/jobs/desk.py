"""What a job is handed: the models and runs there are, and a way to let others go first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from engine.model import LanguageModel
from engine.run import Run


class Desk(Protocol):
    """The engine process as its jobs see it; a job asks for nothing else."""

    @property
    def models(self) -> Mapping[str, LanguageModel]:
        """Those that are loaded, by name."""

    @property
    def active(self) -> Mapping[str, Run]:
        """Runs that go on, by id."""

    @property
    def kept(self) -> Mapping[str, Run]:
        """Finished runs whose tensors are still here, by id."""

    def run(self, run_id: str) -> Run:
        """An active or kept run. Raises `Refusal("not_kept")`."""

    def give_way(self) -> None:
        """For a long job, between two of its layers or steps. Raises `Refusal` to end it: `others_at_work` when a run
        waits to begin, `job_cancelled` when nobody waits for the job any more."""
