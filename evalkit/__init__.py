"""evalkit scores class sets and boxes of vision-language models exactly, and renders the evaluation as a book.

>>> import evalkit
>>> benchmark = evalkit.read_benchmark("toytown/benchmark.yml")  # doctest: +SKIP
>>> evalkit.scores(benchmark, evalkit.count(benchmark))  # doctest: +SKIP
"""

from importlib.metadata import version

from evalkit.agreement import agree, agree_by_pair, score_annotators
from evalkit.answers import axis_swap
from evalkit.boxes import iou
from evalkit.checks import data_check, fault_table
from evalkit.counts import count, match, overlaps
from evalkit.errors import confusion, error_counts, explain, worst_images
from evalkit.formats import benchmark_from, read_answers, read_benchmark, read_classes, read_first_pass
from evalkit.formats.export import convert
from evalkit.formats.streams import load_check, read_stream
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
    "agree",
    "agree_by_pair",
    "axis_swap",
    "benchmark_from",
    "bootstrap",
    "compare",
    "confusion",
    "convert",
    "count",
    "coverage",
    "data_check",
    "data_notes",
    "error_counts",
    "explain",
    "fault_table",
    "fbeta",
    "gains",
    "iou",
    "load_check",
    "match",
    "overlaps",
    "point_intervals",
    "point_samples",
    "point_scores",
    "precision",
    "read_answers",
    "read_benchmark",
    "read_classes",
    "read_first_pass",
    "read_point_runs",
    "read_point_samples",
    "read_stream",
    "recall",
    "related_pairs",
    "relaxed_counts",
    "score_annotators",
    "scores",
    "slice_scores",
    "undefined_as_nan",
    "worst_images",
]
