"""evalkit scores class sets and boxes of vision-language models exactly, and renders the evaluation as a book.

>>> import evalkit
>>> benchmark = evalkit.read_benchmark("toytown/benchmark.yml")  # doctest: +SKIP
>>> evalkit.scores(benchmark, evalkit.count(benchmark))  # doctest: +SKIP
"""

from importlib.metadata import version

from evalkit.answers import axis_swap
from evalkit.boxes import iou
from evalkit.counts import count, match, overlaps
from evalkit.errors import confusion, error_counts, explain, worst_images
from evalkit.formats import benchmark_from, read_answers, read_benchmark
from evalkit.intervals import add_intervals, add_rate_intervals, bootstrap, compare
from evalkit.metrics import coverage, fbeta, precision, recall, scores, undefined_as_nan
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
    "axis_swap",
    "benchmark_from",
    "bootstrap",
    "compare",
    "confusion",
    "count",
    "coverage",
    "data_notes",
    "error_counts",
    "explain",
    "fbeta",
    "gains",
    "iou",
    "match",
    "overlaps",
    "precision",
    "read_answers",
    "read_benchmark",
    "recall",
    "related_pairs",
    "relaxed_counts",
    "scores",
    "slice_scores",
    "undefined_as_nan",
    "worst_images",
]
