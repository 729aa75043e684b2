"""Charts as values: `frame → figure`, for a page, the API and an export alike. `CHARTS` has them all.

A chart's frame is a table of what was measured or computed, its columns told in the file; its figure is a pure function
of frame, words and theme. Fits and statistics are in the frame, so that CSV and Parquet have them too. Pictures of a
mechanism (attention maps, pools, tiles) are no charts and stay in `assets/`.
"""

from __future__ import annotations

from views.figures import batches, parts, race, roofline, waiting
from views.figures.chart import Chart

_ALL = (*waiting.CHARTS, *roofline.CHARTS, *batches.CHARTS, *parts.CHARTS, *race.CHARTS)
CHARTS: dict[str, Chart] = {chart.name: chart for chart in _ALL}
