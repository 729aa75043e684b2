"""Every job by its name: what can be asked of the engine process beside runs, between two steps (`docs/api.md`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.jobs.attention import attention, attention_map, looks
from engine.jobs.beginnings import beginning
from engine.jobs.choices import choice, reads
from engine.jobs.explore import heads_for_pair, logit_lens, sampled_rows
from engine.jobs.machine import peak
from engine.jobs.notes import columns, note_bytes, note_values, watch_columns
from engine.jobs.pieces import count, tokenise, vocabulary
from engine.jobs.stages import decode_batch, parts
from engine.labs.heads import head_qkv
from engine.labs.jobs import lab_piece, lab_plan

Job = Callable[..., Any]
"""Takes an `engine.jobs.desk.Desk` and the job's arguments; gives plain values."""

JOBS: dict[str, Job] = {
    "attention": attention,
    "map": attention_map,
    "looks": looks,
    "heads_for_pair": heads_for_pair,
    "sampled_rows": sampled_rows,
    "logit_lens": logit_lens,
    "note_values": note_values,
    "note_bytes": note_bytes,
    "watch_columns": watch_columns,
    "columns": columns,
    "choice": choice,
    "reads": reads,
    "peak": peak,
    "decode_batch": decode_batch,
    "parts": parts,
    "beginning": beginning,
    "tokenise": tokenise,
    "count": count,
    "vocabulary": vocabulary,
    "lab_plan": lab_plan,
    "lab_piece": lab_piece,
    "head_qkv": head_qkv,
}
