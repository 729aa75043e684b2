"""People's exams: a `Run` is one person's, `step` advances all of them by one turn, told as events.

From outside: `admit` makes a run or refuses it, `step`, `complete` and `answer` drive it. A run's parts (`fork`,
`prefix`, `reread`, `speculation`, `forgetting`) are given the run; none of them drives it.
"""

from engine.run.admit import admit
from engine.run.choosing import choose_one
from engine.run.ending import Halt, finish, is_out_of_memory, reset_peak
from engine.run.passes import CHUNK
from engine.run.run import Emit, Run
from engine.run.turn import answer, complete, step

__all__ = [
    "CHUNK",
    "Emit",
    "Halt",
    "Run",
    "admit",
    "answer",
    "choose_one",
    "complete",
    "finish",
    "is_out_of_memory",
    "reset_peak",
    "step",
]
