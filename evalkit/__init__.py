"""evalkit scores class sets and boxes of vision-language models exactly, and renders the evaluation as a book.

>>> import evalkit
>>> benchmark = evalkit.read_benchmark("toytown/benchmark.yml")  # doctest: +SKIP
>>> evalkit.scores(benchmark, evalkit.count(benchmark))  # doctest: +SKIP
"""

from importlib.metadata import version

from evalkit.boxes import iou
from evalkit.counts import count, match, overlaps
from evalkit.formats import read_benchmark
from evalkit.intervals import add_intervals, add_rate_intervals, bootstrap, compare
from evalkit.metrics import coverage, fbeta, precision, recall, scores, undefined_as_nan
from evalkit.point_metrics import point_intervals, point_scores
from evalkit.point_records import read_point_samples
from evalkit.point_runs import point_samples, read_point_runs
from evalkit.semantic import accepted_pairs, gains, related_pairs, relaxed_counts
from evalkit.slices import slice_scores
from evalkit.tables import Benchmark, CheckFailed, DataError, EvalkitError, data_notes

__version__ = version("evalkit")

__all__ = [
    "Benchmark",
    "CheckFailed",
    "DataError",
    "EvalkitError",
    "accepted_pairs",
    "add_intervals",
    "add_rate_intervals",
    "bootstrap",
    "compare",
    "count",
    "coverage",
    "data_notes",
    "fbeta",
    "gains",
    "iou",
    "match",
    "overlaps",
    "point_intervals",
    "point_samples",
    "point_scores",
    "precision",
    "read_benchmark",
    "read_point_runs",
    "read_point_samples",
    "recall",
    "related_pairs",
    "relaxed_counts",
    "scores",
    "slice_scores",
    "undefined_as_nan",
]
