"""Which model: one whose config is kept, one found on this machine, a config pasted or dropped in, or that of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import streamlit as st

from engine.plan.architecture import Architecture
from engine.plan.configs import configs, from_disk, kept
from engine.plan.fields import MAX_CONFIG_BYTES, parse
from engine.plan.read import read
from engine.settings import Refusal
from engine.weights import home
from engine.weights.catalogue import DEFAULT
from views.memory.text import plain
from views.words import say

MOST_FOLDERS = 200
"""Bound on folders offered."""
WAYS = ("known", "paste", "file", "folder")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model to plan for. `origin`: where its config came from, as text."""

    name: str
    architecture: Architecture
    origin: str


def choose() -> Chosen | None:
    """The widgets, and what they come to. None where there is nothing yet, or a sentence instead says why."""
    ways = {way: say(f"memory.way_{way}") for way in WAYS}
    way = st.segmented_control(say("memory.way"), WAYS, default="known", format_func=ways.__getitem__, key="memory-way")
    try:
        return {"paste": _pasted, "file": _dropped, "folder": _found}.get(way or "known", _known)()
    except Refusal as refusal:
        st.error(plain(say(f"errors.{refusal.code}", **refusal.values)))
        return None


def _known() -> Chosen:
    name = st.selectbox(
        say("memory.model"),
        tuple(configs()),
        index=tuple(configs()).index(DEFAULT),
        format_func=lambda name: f"{configs()[name].title} · {_size(name)}",
        key="memory-model",
    )
    origin = configs()[name]
    return Chosen(origin.title, read(kept(name)), f"{origin.source} ({origin.version[:12]})")


@cache
def _size(name: str) -> str:
    count = read(kept(name)).parameters
    return f"{count / 1e9:,.1f} B" if count >= 1e9 else f"{count / 1e6:,.0f} M"


def _pasted() -> Chosen | None:
    text = st.text_area(
        say("memory.paste"), height=180, key="memory-paste", placeholder='{"model_type": "llama", …}'
    ).strip()
    return Chosen(say("memory.own"), read(parse(text)), say("memory.way_paste")) if text else None


def _dropped() -> Chosen | None:
    file = st.file_uploader(say("memory.drop"), type=["json"], max_upload_size=1, key="memory-file")
    if file is None:
        return None
    return Chosen(say("memory.own"), read(parse(file.getvalue()[: MAX_CONFIG_BYTES + 1])), say("memory.way_file"))


def _found() -> Chosen | None:
    there = folders()
    if not there:
        st.info(say("memory.no_folders"))
        return None
    name = st.selectbox(say("memory.folder"), tuple(there), format_func=plain, key="memory-folder")
    return Chosen(name, read(from_disk(there[name])), say("memory.way_folder"))


def folders() -> dict[str, Path]:
    """Folders of models on this machine by name: ours, and the model hub's cache. Only names are looked at, and no path
    of a stranger's choosing is ever opened."""
    hub = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface") / "hub"
    found: dict[str, Path] = {}
    for pattern, base in (("*/config.json", home() / "models"), ("models--*/snapshots/*/config.json", hub)):
        for file in sorted(base.glob(pattern)) if base.is_dir() else ():
            if len(found) == MOST_FOLDERS:
                return found
            name = file.relative_to(base).parts[0].removeprefix("models--").replace("--", "/")
            found.setdefault(name, file.parent)
    return found
