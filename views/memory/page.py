"""Will it fit? The page from top to bottom: a model, what it takes, what fits, over time, all models, a real run."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import streamlit as st

from engine.plan import Plan, differs, largest_context, over_time, plan
from engine.plan.formats import BFLOAT16, CACHES, SHORT, WEIGHTS, readable
from engine.settings import Refusal
from views import lessons, place, provenance
from views.memory import figures, measured, source, tables
from views.memory.source import Chosen
from views.memory.text import plain
from views.words import say

_STYLE = Path(__file__).parent.parent.parent / "assets" / "frame" / "memory.css"
GIB = 1024**3
SIZES = (8, 16, 24, 48, 80, 141, 640)
"""Memories to choose from, in GiB; 80 is one large card, 640 eight of them."""
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
QUOTED = (30.0, 70.0)
"""What grouped-query attention is said to save, in percent."""
_BARE = {"displayModeBar": False, "scrollZoom": False}
_PREFILL_STEPS = 60
_MOST_ANSWER = 32_768


def show() -> None:
    """Draw it. Whatever is typed, each sheet below stays or says in a sentence why not."""
    st.html(_STYLE)
    with st.container(key="memory"):
        st.header(say("memory.title"), anchor=False)
        st.markdown(say("memory.analogy"))
        chosen = _model()
        made, device = _amounts(chosen) if chosen else (None, _device_default())
        if chosen and made:
            _verdict(chosen, made, device)
            _what_fits(made, device)
            _course(made)
        _all_models(chosen, made, device)
        _side_by_side()
        with st.container(key="sheet-end"):
            st.markdown(f"**{say('memory.remember')}**")
            st.caption(say("memory.limit"))


def _model() -> Chosen | None:
    with st.container(key="sheet-model"):
        left, right = st.columns([5, 6], gap="large")
        with left:
            chosen = source.choose()
        if chosen:
            with right:
                st.markdown(_sizes(chosen))
                st.caption(plain(say("memory.origin", origin=chosen.origin)))
                if chosen.architecture.assumed:
                    st.caption(plain(say("memory.assumed", fields=", ".join(chosen.architecture.assumed))))
        return chosen


def _sizes(chosen: Chosen) -> str:
    """What the figures follow from, in a few lines. Numbers and words of ours only."""
    made, first = chosen.architecture, chosen.architecture.first
    kinds = " · ".join(f"{count} {say(f'memory.kind_{kind}')}" for kind, count in made.kinds.items())
    lines = [say("memory.sizes_parameters", parameters=f"{made.parameters:,}")]
    if made.active_parameters < made.parameters:
        lines[0] += " " + say("memory.sizes_active", active=f"{made.active_parameters:,}")
    lines.append(say("memory.sizes_layers", layers=len(made.layers), kinds=kinds))
    heads = {"heads": first.heads, "kv_heads": first.kv_heads, "size": first.head_size, "latent": first.latent}
    lines.append(say(f"memory.sizes_{'latent' if first.latent else 'heads'}", **heads))
    if made.context:
        lines.append(say("memory.sizes_context", context=f"{made.context:,}"))
    return "  \n".join(lines)


def _amounts(chosen: Chosen) -> tuple[Plan | None, int]:
    """The numbers to plan with; the plan, and the device's memory in bytes."""
    made = chosen.architecture
    most = made.context or 1_000_000
    with st.container(key="sheet-amounts"):
        one, two, three, four, five, six = st.columns([5, 4, 5, 5, 7, 4])
        context = int(one.number_input(say("memory.context"), 1, None, min(4096, most), 1024, key="memory-context"))
        batch = int(two.number_input(say("memory.batch"), 1, 1_000_000, 1, key="memory-batch"))
        weights = three.selectbox(say("memory.dtype"), tuple(WEIGHTS), _usual(made.dtype), key="memory-dtype")
        kv = four.selectbox(say("memory.kv_dtype"), tuple(CACHES), list(CACHES).index("bfloat16"), key="memory-kv")
        device = _device(five)
        kept_back = int(six.number_input(say("memory.reserve"), 0, 50, 10, 5, key="memory-reserve",
                                         help=say("memory.reserve_help")))  # fmt: skip
    try:
        return plan(made, context, batch, WEIGHTS[weights], CACHES[kv], device * kept_back // 100), device
    except Refusal as refusal:
        st.error(plain(say(f"errors.{refusal.code}", **refusal.values)))
        return None, device


def _usual(dtype: str) -> int:
    name = SHORT.get(dtype, dtype)
    return list(WEIGHTS).index(name if name in WEIGHTS else BFLOAT16.name)


def _device(where: st.delta_generator.DeltaGenerator) -> int:
    here = _memory_here()
    labels = {size * GIB: readable(size * GIB) for size in SIZES}
    if here:
        labels[here] = say("memory.this_machine", size=readable(here))
    options = sorted(labels)
    index = options.index(here or 16 * GIB)
    return int(where.selectbox(say("memory.device"), options, index, labels.__getitem__, key="memory-device"))


def _memory_here() -> int:
    """Bytes of memory of the machine this runs on; 0 where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def _device_default() -> int:
    return _memory_here() or 16 * GIB


def _verdict(chosen: Chosen, made: Plan, device: int) -> None:
    with st.container(key="sheet-verdict"):
        fits = made.total_bytes <= device
        words = {"model": chosen.name, "total": readable(made.total_bytes), "device": readable(device)}
        st.subheader(plain(say("memory.fits" if fits else "memory.fits_not", **words)), anchor=False)
        longest = largest_context(made.architecture, made.batch, made.weights, made.kv, device, made.overhead_bytes)
        st.markdown(
            say("memory.longest" if longest else "memory.longest_none", longest=f"{longest:,}", batch=made.batch)
        )
        st.plotly_chart(figures.bar(made, device), key="memory-bar", config=_BARE, alt=say("memory.bar_alt", **words))
        left, right = st.columns([5, 6], gap="large")
        exact = st.column_config.NumberColumn(format="localized")
        columns = {say("memory.column_bytes"): exact, say("memory.column_upper"): exact}
        left.dataframe(tables.parts(made, place.lang()), hide_index=True, key="memory-parts", column_config=columns)
        with left:
            provenance.badge("computed")
        right.markdown(_formulas(made, device))
        if made.kv_bytes_upper != made.kv_bytes:
            reasons = "; ".join(say(f"memory.differs_{reason}") for reason in differs(made))
            right.caption(say("memory.upper", size=readable(made.kv_bytes_upper), reasons=reasons))
        right.caption(say("memory.activation_note", size=readable(made.activation_bytes_upper)))


def _formulas(made: Plan, device: int) -> str:
    """Each figure's formula in a paragraph. Numbers and words of ours only."""
    paragraphs = [
        f"**{say(f'memory.{part}')}:** " + "  \n+ ".join(tables.formulas(made, part, place.lang()))
        for part in ("weights", "kv", "activation")
    ]
    share = round(100 * made.overhead_bytes / device)
    overhead = say("memory.formula_overhead", device=f"{device:,}", share=share)
    return "\n\n".join([*paragraphs, f"**{say('memory.overhead')}:** {overhead} = {made.overhead_bytes:,}"])


def _what_fits(made: Plan, device: int) -> None:
    with st.container(key="sheet-heat"):
        st.subheader(say("memory.heat_title"), anchor=False)
        st.markdown(say("memory.heat_lead", device=readable(device)))
        table = totals(made)
        st.plotly_chart(figures.heat(table, device), key="memory-heat", config=_BARE, alt=say("memory.heat_title"))


def totals(made: Plan) -> pd.DataFrame:
    """Total bytes by context (rows) and batch (columns), up to what the model was made for."""
    most = made.architecture.context or 131_072
    lengths = sorted({length for power in range(9, 24) if (length := 2**power) <= most} | {most})[-9:]
    cells = {
        batch: [
            plan(made.architecture, length, batch, made.weights, made.kv, made.overhead_bytes).total_bytes
            for length in lengths
        ]
        for batch in BATCHES
    }
    return pd.DataFrame(cells, index=lengths, dtype=object)


def _course(made: Plan) -> None:
    with st.container(key="sheet-time"):
        st.subheader(say("memory.time_title"), anchor=False)
        st.markdown(say("memory.time_lead"))
        room = (made.architecture.context or made.context + _MOST_ANSWER) - made.context
        if room < 1:
            st.caption(say("memory.time_full"))
            return
        most = min(room, _MOST_ANSWER)
        answer = st.slider(say("memory.answer"), 1, max(2, most), min(512, most), key="memory-answer")
        rows = over_time(made, min(answer, most), _PREFILL_STEPS)
        st.plotly_chart(
            figures.time(rows, _PREFILL_STEPS), key="memory-time", config=_BARE, alt=say("memory.time_title")
        )
        provenance.badge("computed")


def _all_models(chosen: Chosen | None, made: Plan | None, device: int) -> None:
    context, weights, kv = (made.context, made.weights, made.kv) if made else (4096, BFLOAT16, BFLOAT16)
    with st.container(key="sheet-models"):
        st.subheader(say("memory.models_title"), anchor=False)
        st.markdown(say("memory.saving_lead", low=f"{QUOTED[0]:.0f}", high=f"{QUOTED[1]:.0f}"))
        saved = tables.savings()
        name = chosen.name if chosen else ""
        st.plotly_chart(
            figures.dots(saved, name, *QUOTED), key="memory-dots", config=_BARE, alt=say("memory.saved_axis")
        )
        st.markdown(
            say("memory.models_lead", context=f"{context:,}", dtype=weights.name, kv=kv.name, device=readable(device))
        )
        room = device - (made.overhead_bytes if made else 0)
        table = tables.models(context, weights, kv, room, place.lang())
        st.dataframe(table, hide_index=True, key="memory-models", height=420, column_config=_models_columns())
        provenance.badge("computed")


def _models_columns() -> dict[str, object]:
    columns: dict[str, object] = {
        name: st.column_config.NumberColumn(say(f"memory.column_{name}"), format="localized")
        for name in ("parameters", "active", "layers", "heads", "kv_heads", "per_token", "length", "longest")
    }
    columns |= {
        name: st.column_config.NumberColumn(say(f"memory.column_{name}"), format="%.2f")
        for name in ("kv_gib", "weights_gib")
    }
    columns["saving"] = st.column_config.ProgressColumn(
        say("memory.column_saving"), min_value=0, max_value=100, format="%.1f %%"
    )
    columns |= {name: say(f"memory.column_{name}") for name in ("attention", "kinds", "source")}
    return columns | {"name": st.column_config.TextColumn(say("memory.column_name"), pinned=True, width=150)}


def _side_by_side() -> None:
    with st.container(key="sheet-run"):
        st.subheader(say("memory.run_title"), anchor=False)
        asked = place.here().run
        file = measured.trace_of(asked) if asked else None
        if asked and file is None:
            st.caption(say("memory.run_unknown"))
        file = file or measured.trace_of(lessons.recording(place.lang()))
        started = file.trace.started if file else None
        if file is None or started is None:
            st.caption(say("memory.run_none"))
            return
        st.markdown(plain(say("memory.run_lead", title=file.header.title, model=started.facts.model,
                              dtype=started.facts.dtype, device=started.facts.device_name)))  # fmt: skip
        try:
            table = measured.compared(started, file.trace, place.lang())
        except Refusal as refusal:
            st.caption(plain(say(f"errors.{refusal.code}", **refusal.values)))
            return
        exact = st.column_config.NumberColumn(format="localized")
        names = {say("memory.column_predicted"): exact, say("memory.column_measured"): exact}
        st.dataframe(table, hide_index=True, key="memory-compared", column_config=names)
        if file.header.recorded:
            provenance.badge("recorded", machine=file.header.machine, created=file.header.created)
        else:
            provenance.badge("measured")
