"""Figures of agreement: each takes tables and returns the Axes it drew on, in the style of :mod:`evalkit.figures`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evalkit.figures import COLOURS, INK, MUTED, canvas, draw_box, name_where_free, plain
from evalkit.first_pass import POOLED, FirstPass
from evalkit.tables import BOX_COLUMNS, EvalkitError

MOST_IN_WORDS = 12  # annotators whose pairs are written out in a matrix


def forest(table: pd.DataFrame, *, by: str, panels: dict[str, str]) -> np.ndarray:
    """Estimates with their intervals: a row for each value of the column ``by``, a panel for each statistic, two side by side.

    ``table`` has rows of :func:`evalkit.agreement.agree`, ``panels`` the statistics and what they are called. A row without an
    interval has its marker alone, one without an estimate says so. The last row is drawn as a diamond if it is ``pooled``.

    Returns the array of Axes.
    """
    labels = list(dict.fromkeys(table[by]))
    lines = math.ceil(len(panels) / 2)
    _, grid = plt.subplots(lines, 2, figsize=(7.4, lines * (0.9 + 0.3 * len(labels))), sharey=True, squeeze=False)
    place = {label: at for at, label in enumerate(labels)}
    left = min(0.0, np.nanmin(table[["estimate", "low"]].to_numpy(float), initial=0.0)) - 0.04
    for axes, (statistic, name) in zip(grid.flat, panels.items(), strict=False):
        for row in table[table["statistic"] == statistic].itertuples():
            label = getattr(row, by)
            pooled = label == POOLED
            style = {"color": COLOURS[1] if pooled else COLOURS[0], "marker": "D" if pooled else "o", "markersize": 6}
            if np.isnan(row.estimate):
                axes.annotate(
                    "not defined", (0, place[label]), xytext=(4, 0), textcoords="offset points", va="center", color=MUTED
                )
                continue
            if not np.isnan(row.low):
                axes.plot([row.low, row.high], [place[label]] * 2, color=style["color"], linewidth=1.8)
            axes.plot(row.estimate, place[label], linestyle="none", **style)
        axes.axvline(0, color=MUTED, linewidth=0.8)
        axes.grid(visible=False, axis="y")
        axes.set(xlim=(left, 1.04), xlabel=name)
    grid[0, 0].set_yticks(range(len(labels)), [plain(str(label)) for label in labels])
    grid[0, 0].set_ylim(len(labels) - 0.5, -0.5)
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    return grid


def pair_matrix(pairs: pd.DataFrame, *, names: Sequence[str], label: str) -> Axes:
    """A matrix of annotators: the estimate of each two of them, with its interval below, shaded by its size.

    ``pairs`` has one row a pair (``annotator_a, annotator_b, estimate, low, high``). A dash stands where there is no estimate;
    with more than twelve annotators the shades stand alone.
    """
    at = {name: place for place, name in enumerate(names)}
    shade = np.full((len(names), len(names)), np.nan)
    side = min(max(3.0, 1.05 * len(names)), 8.0)
    figure, axes = plt.subplots(figsize=(side + 1.8, 0.72 * side + 1.0))
    for row in pairs.itertuples():
        for a, b in ((row.annotator_a, row.annotator_b), (row.annotator_b, row.annotator_a)):
            shade[at[a], at[b]] = row.estimate
            if len(names) <= MOST_IN_WORDS:
                text = "–" if np.isnan(row.estimate) else f"{row.estimate:.2f}"
                text += "" if np.isnan(row.low) else f"\n{row.low:.2f}–{row.high:.2f}"
                colour = "white" if row.estimate > 0.6 else INK
                axes.text(at[b], at[a], text, ha="center", va="center", fontsize=9, color=colour)
    image = axes.imshow(shade, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    figure.colorbar(image, ax=axes, label=label, shrink=0.85)
    size = {} if len(names) <= MOST_IN_WORDS else {"fontsize": 6}
    shown = [plain(str(name)) for name in names]
    axes.set_yticks(range(len(names)), shown, **size)
    axes.set_xticks(range(len(names)), shown, rotation=35, ha="right", rotation_mode="anchor", **size)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return axes


def side_by_side(first: FirstPass, image_ids: Sequence[str], *, columns: int = 3) -> np.ndarray:
    """What each annotator marked on the same pictures: a panel for each of them, and one for gold where there is gold.

    Annotators' boxes are dashed, those of gold solid. Each picture begins a new line. Returns the array of Axes.
    """
    images = first.images.set_index("image_id")
    unknown = [name for name in image_ids if name not in images.index]
    if unknown or not len(image_ids):
        raise EvalkitError(f"image_ids: there is no image {unknown[0]!r}" if unknown else "image_ids: name at least one image")
    panels: list[list[tuple[str, str | None, pd.DataFrame]]] = []
    extent = {}
    for name in image_ids:
        boxes = first.boxes[first.boxes["image_id"] == name]
        people = list(first.seen.loc[first.seen["image_id"] == name, "annotator"])
        line = [(name, who, boxes[boxes["annotator"] == who]) for who in people]
        if first.gold is not None:
            line.insert(0, (name, None, first.gold[first.gold["image_id"] == name]))
        extent[name] = pd.concat([one[BOX_COLUMNS] for *_, one in line])
        panels += [line[start : start + columns] for start in range(0, len(line), columns)]
    columns = max(map(len, panels))
    _, grid = plt.subplots(len(panels), columns, figsize=(3.1 * columns, 2.7 * len(panels)), squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for line, panel in zip(grid, panels, strict=True):
        for axes, (name, who, boxes) in zip(line, panel, strict=False):
            canvas(axes, images.loc[name], extent[name], first.image_folder)
            for box in boxes[BOX_COLUMNS].to_numpy().tolist():
                draw_box(axes, box, *((COLOURS[0], "solid") if who is None else (COLOURS[1], "dashed")), 1.8)
            name_where_free(axes, list(zip(boxes[BOX_COLUMNS].to_numpy().tolist(), map(str, boxes["class"]), strict=True)))
            axes.set_title(
                f"{plain(name)} · {plain(who or 'gold')}" + ("" if len(boxes) else " (nothing)"), fontsize=8, color=INK
            )
    return grid
