"""Scores of slices: the same counts, summed over the images that have an attribute. Nothing is matched again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evalkit.counts import IOU_THRESHOLDS
from evalkit.intervals import LEVEL, add_intervals, bootstrap
from evalkit.metrics import SCORE_COLUMNS, scores
from evalkit.tables import Benchmark

SLICE_COLUMNS = ["attribute", "value", *SCORE_COLUMNS]


def slice_masks(benchmark: Benchmark) -> Iterator[tuple[str, str, np.ndarray]]:
    """Attribute, value and the mask of the images of each slice, in the order in which the benchmark first names them."""
    said = benchmark.slices
    for attribute in said["attribute"].unique():
        rows = said[said["attribute"] == attribute]
        for value in rows["value"].unique():
            mask = np.zeros(len(benchmark.images), bool)
            mask[rows.loc[rows["value"] == value, "image_id"].cat.codes] = True
            yield attribute, value, mask


def slice_scores(
    benchmark: Benchmark,
    counts: pd.DataFrame,
    *,
    zero_division: float = 0.0,
    iou: Sequence[float] = IOU_THRESHOLDS,
    level: float = LEVEL,
    resampling: dict[str, Any] | None = None,
) -> pd.DataFrame:
    """Every score for every slice of the images: ``attribute, value`` and the columns of :func:`evalkit.metrics.scores`.

    Counts of slices that divide the images between them add up to those of all images; ratios do not. Each slice has its own
    macro population and its own bootstrap.

    Parameters
    ----------
    resampling : options of :func:`evalkit.intervals.bootstrap`; without them there are no intervals
    """
    parts = []
    for attribute, value, mask in slice_masks(benchmark):
        table = scores(benchmark, counts, zero_division=zero_division, iou=iou, images=mask)
        if resampling is not None:
            table = add_intervals(table, bootstrap(benchmark, counts, iou=iou, images=mask, **resampling), level=level)
        table.insert(0, "attribute", attribute)
        table.insert(1, "value", value)
        parts.append(table)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=SLICE_COLUMNS)
