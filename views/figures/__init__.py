"""Charts as values: `frame → figure`, for a page, the API and an export alike. `CHARTS` has them all.

A chart's frame is a table of what was measured or computed, its columns told in the file; its figure is a pure function
of frame, words and theme. Fits and statistics are in the frame, so that CSV and Parquet have them too. Pictures of a
mechanism (attention maps, pools, tiles) are no charts and stay in `assets/`.
"""

from __future__ import annotations

from views.figures import (
    batches,
    batching,
    chunked,
    costs,
    disaggregation,
    layers,
    lengths,
    parts,
    race,
    remedies,
    roofline,
    speculative,
    together,
    waiting,
)
from views.figures.chart import Chart

CHARTS: dict[str, Chart] = {
    chart.name: chart
    for part in (
        waiting, layers, lengths, roofline, batches, parts, race, remedies, batching, chunked, costs, disaggregation,
        speculative, together,
    )
    for chart in part.CHARTS
}  # fmt: skip
