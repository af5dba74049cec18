"""Image bootstrap: how sure a score is, and how sure the difference of two models.

Counts per image are additive, so nothing is matched again: a replicate is a weighted sum of the counts of the scope's images,
the weights being how often each image was drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import coo_array, csr_array

from evalkit.metrics import RATIOS, averages, kinds_of, scopes, score_rows
from evalkit.tables import Benchmark, EvalkitError

REPLICATES, LEVEL, SEED = 2000, 0.95, 20260817
LEAST_REPLICATES = 100
MOST_UNDEFINED = 0.05  # share of undefined replicates above which an interval is not estimable
DEGENERATE, NOT_ESTIMABLE = "degenerate: no variation", "not estimable: too many undefined replicates"
CHUNK = 4_000_000  # weights held at a time


class Interval(NamedTuple):
    """Percentile intervals of a statistic; arrays of one shape, or scalars."""

    low: np.ndarray
    high: np.ndarray
    undefined: np.ndarray  # replicates in which the statistic is undefined
    reason: np.ndarray  # why there is no interval, or why it is a point


def weights(n: int, *, replicates: int, seed: int, chunk: int = CHUNK) -> Iterator[np.ndarray]:
    """How often each of ``n`` images is drawn in each replicate, in pieces of shape (some replicates, n).

    The draws are those of ``numpy.random.default_rng(seed).integers(0, n, size=(replicates, n))``, whatever the pieces.
    """
    generator = np.random.default_rng(seed)
    step = max(1, chunk // max(n, 1))
    for start in range(0, replicates, step):
        size = min(step, replicates - start)
        drawn = generator.integers(0, n, size=(size, n)) + np.arange(size)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)


def percentile_interval(values: np.ndarray, point: np.ndarray, *, level: float = LEVEL) -> Interval:
    """Percentile intervals over the first axis of ``values``, the replicates; linear interpolation, numpy's default.

    Undefined replicates (NaN) are left out and counted; above 5 % of them there is no interval. Without any variation the
    interval is the ``point`` itself.
    """
    undefined = np.isnan(values).sum(axis=0)
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(values, tails, axis=0)
    for column in zip(*np.nonzero((undefined > 0) & (undefined < len(values))), strict=True):
        defined = values[(slice(None), *column)]
        low[column], high[column] = np.quantile(defined[~np.isnan(defined)], tails)
    flat = (undefined == 0) & (values.min(axis=0) == values.max(axis=0))
    low, high = np.where(flat, point, low), np.where(flat, point, high)
    many = undefined > MOST_UNDEFINED * len(values)
    low, high = np.where(many, np.nan, low), np.where(many, np.nan, high)
    return Interval(low, high, undefined, np.select([many, flat], [NOT_ESTIMABLE, DEGENERATE], ""))
