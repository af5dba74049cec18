"""From the table of samples, and nothing else, to the scores of point benchmarks and their intervals."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit.intervals import LEVEL, REPLICATES, SEED, check_settings, percentile_interval, weights
from evalkit.metrics import divide, fbeta, precision, recall
from evalkit.point_benchmarks import ALL, point_benchmark
from evalkit.points import NON_STRICT, STATES, STRICT

SUMS = [*STRICT, *NON_STRICT, "strict_sample_f1", "non_strict_sample_f1"]  # what is added over the point samples
RATIOS = [f"{kind}_{name}" for kind in ("strict", "non_strict") for name in ("precision", "recall", "f1")]
MACROS, OVERALLS = ["strict_macro_f1", "non_strict_macro_f1"], ["overall_strict", "overall_non_strict"]
INTERVALS = ["strict_f1", "non_strict_f1", *OVERALLS]
SCORE_COLUMNS = [
    *("model", "benchmark", "subset", "samples", "complete", *RATIOS, *MACROS, *STRICT, "hits", "predicted"),
    *(*OVERALLS, "low", "high", "replicates"),
]
INTERVAL_COLUMNS = ["model", "benchmark", "subset", "statistic", "value", "low", "high", "replicates", "undefined", "reason"]


class Block(NamedTuple):
    """The scored samples of one model and subset, in the order of their ids."""

    model: str
    benchmark: str
    subset: str
    complete: bool
    points: np.ndarray  # shape (point samples, SUMS)
    correct: np.ndarray  # of the yes/no samples, 1 where the answer is right


def harmonic_mean(one: np.ndarray, other: np.ndarray, *, zero_division: float = 0.0) -> np.ndarray:
    """2ab / (a + b), of two numbers from 0 on; 0 where both are 0, undefined where one of them is.

    >>> harmonic_mean(np.array([0.5, 0.0]), np.array([1.0, 0.0]))
    array([0.66666667, 0.        ])
    """
    undefined = np.isnan(one) | np.isnan(other)
    return np.where(undefined, zero_division, divide(2 * one * other, one + other))


def point_scores(samples: pd.DataFrame, intervals: pd.DataFrame | None = None) -> pd.DataFrame:
    """Scores of every model, benchmark and subset: micro averages, their macro diagnostics, and what they are made from.

    - strict: precision TP / (TP + FP), recall TP / (TP + FN), F1 2TP / (2TP + FP + FN), of summed counts
    - non-strict: precision Σ hits / Σ P, recall the strict one, F1 their harmonic mean
    - macro: the mean over the samples of each sample's own F1
    - overall: (point samples · F1 + right yes/no answers) / samples, which is F1 where there are no yes/no samples

    What is undefined is 0, but where a subset has no scored point sample its ratios are NaN.

    Parameters
    ----------
    samples : DataFrame as :func:`evalkit.point_runs.point_samples` makes it; rows that are not scored are left out
    intervals : DataFrame of :func:`point_intervals`, for the interval of each benchmark's primary score

    Returns
    -------
    DataFrame with the columns SCORE_COLUMNS. ``complete`` says whether every sample was scored and, where the size of the
    complete set is known, whether it is all there.
    """
    blocks = list(_blocks(samples))
    totals = np.array([block.points.sum(axis=0) for block in blocks]).reshape(len(blocks), len(SUMS))
    number = np.array([len(block.points) for block in blocks])
    binary = np.array([(len(block.correct), block.correct.sum()) for block in blocks]).reshape(-1, 2)
    found = _statistics(totals, number, *binary.T)
    total = dict(zip(SUMS, totals.T, strict=True))
    table = pd.DataFrame([block[:4] for block in blocks], columns=["model", "benchmark", "subset", "complete"])
    table["samples"] = (number + binary[:, 0]).astype(np.int64)
    for name in [*RATIOS, *MACROS, *OVERALLS]:
        some = table["samples"] > 0 if name in OVERALLS else number > 0
        table[name] = np.where(some, found[name], np.nan)
    for name in STRICT:
        table[name] = total[name].astype(np.int64)
    table["hits"] = total["non_strict_precision_hits"].astype(np.int64)
    table["predicted"] = total["non_strict_precision_predicted_points"].astype(np.int64)
    if intervals is None:
        table = table.assign(low=np.nan, high=np.nan, replicates=pd.array([pd.NA] * len(table), "Int64"))
    else:
        primary = intervals[intervals["statistic"] == intervals["benchmark"].map(lambda name: point_benchmark(name).primary)]
        keys = ["model", "benchmark", "subset"]
        table = table.merge(primary[[*keys, "low", "high", "replicates"]], on=keys, how="left", validate="one_to_one")
    return _in_order(table[SCORE_COLUMNS], samples)


def point_intervals(
    samples: pd.DataFrame, *, replicates: int = REPLICATES, level: float = LEVEL, seed: int = SEED, jobs: int = 1
) -> pd.DataFrame:
    """Percentile intervals of strict and non-strict F1 and of the overall scores, from a bootstrap over samples.

    Samples are drawn with replacement from the scored ones of a model and subset, in the order of their ids, and sets of one
    size share the draws. Point and yes/no samples are drawn apart: the latter from the generator of ``[seed, 1]``. Inside a
    replicate 0/0 is undefined.

    Returns a DataFrame with the columns INTERVAL_COLUMNS; ``jobs`` changes the time only.

    Raises EvalkitError as :func:`evalkit.intervals.check_settings` does.
    """
    check_settings(replicates=replicates, level=level, seed=seed, jobs=jobs)
    blocks = list(_blocks(samples))
    sums = np.zeros((len(blocks), replicates, len(SUMS)))
    right = np.zeros((len(blocks), replicates))
    works = [(n, seed, [(sums[at], block.points) for at, block in users]) for n, users in _by_size(blocks, "points")]
    works += [
        (n, [seed, 1], [(right[at][:, None], block.correct[:, None]) for at, block in users])
        for n, users in _by_size(blocks, "correct")
    ]

    def draw(work: tuple) -> None:
        n, key, users = work
        done = 0
        for weight in weights(n, replicates=replicates, seed=key):
            weight = weight.astype(float)
            for out, values in users:
                out[done : done + len(weight)] = weight @ values
            done += len(weight)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(draw, works))
    rows = []
    for at, block in enumerate(blocks):
        sizes = np.array(len(block.points)), np.array(len(block.correct))
        values = _statistics(sums[at], sizes[0], sizes[1], right[at], zero_division=np.nan)
        point = _statistics(block.points.sum(axis=0), sizes[0], sizes[1], block.correct.sum())
        for name in INTERVALS if len(block.points) else OVERALLS if len(block.correct) else []:
            found = percentile_interval(values[name], point[name], level=level)
            ends = [float(found.low), float(found.high), replicates, int(found.undefined), str(found.reason)]
            rows.append([*block[:3], name, float(point[name]), *ends])
    return _in_order(pd.DataFrame(rows, columns=INTERVAL_COLUMNS), samples)


def _in_order(table: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """The table with models and benchmarks as categoricals, in the order that they have among the samples."""
    known = {name: pd.Categorical(samples[name]).categories for name in ("model", "benchmark")}
    return table.assign(**{name: pd.Categorical(table[name], categories=order) for name, order in known.items()})


def _statistics(
    totals: np.ndarray, points: np.ndarray, binary: np.ndarray, correct: np.ndarray, *, zero_division: float = 0.0
) -> dict[str, np.ndarray]:
    """Every score from the sums of point samples, shape (..., SUMS), the numbers of samples, and the right yes/no answers."""
    sums = dict(zip(SUMS, np.moveaxis(totals, -1, 0), strict=True))
    tp, fp, fn = (sums[name] for name in STRICT)
    hit, predicted, recall_tp, recall_fn = (sums[name] for name in NON_STRICT)
    found = {
        "strict_precision": precision(tp, fp, zero_division=zero_division),
        "strict_recall": recall(tp, fn, zero_division=zero_division),
        "strict_f1": fbeta(tp, fp, fn, beta=1.0, zero_division=zero_division),
        "non_strict_precision": divide(hit, predicted, zero_division=zero_division),
        "non_strict_recall": recall(recall_tp, recall_fn, zero_division=zero_division),
    }
    found["non_strict_f1"] = harmonic_mean(
        found["non_strict_precision"], found["non_strict_recall"], zero_division=zero_division
    )
    for kind in ("strict", "non_strict"):
        found[f"{kind}_macro_f1"] = divide(sums[f"{kind}_sample_f1"], points)
        points_part = np.where(points > 0, points * found[f"{kind}_f1"], 0)
        found[f"overall_{kind}"] = np.where(binary > 0, divide(points_part + correct, points + binary), found[f"{kind}_f1"])
    return found


def _blocks(samples: pd.DataFrame) -> Iterator[Block]:
    """Each model and benchmark, whole and by subset."""
    samples = samples.sort_values("sample_id", kind="stable")
    for (model, name), rows in samples.groupby(["model", "benchmark"], observed=True):
        benchmark = point_benchmark(name)
        order = benchmark.subsets or sorted(rows["subset"].unique())
        subsets = [one for one in order if one and (rows["subset"] == one).any()]
        sizes = {ALL: len(rows), **rows["subset"].value_counts().to_dict()}
        whole = all(sizes.get(subset, 0) == size for subset, size in benchmark.sizes.items())
        for subset in [ALL, *subsets]:
            part = rows if subset == ALL else rows[rows["subset"] == subset]
            scored = part[part["scored"]]
            complete = whole and len(scored) == len(part)
            binary = scored["subset"].isin(benchmark.binary).to_numpy()
            correct = scored["answer_correct"].to_numpy(float, na_value=0)[binary]
            yield Block(str(model), str(name), subset, complete, _sums(scored[~binary]), correct)


def _sums(rows: pd.DataFrame) -> np.ndarray:
    """What is added of each point sample, and its own F1, strict and non-strict."""
    counts = rows[[*STRICT, *NON_STRICT]].to_numpy(float)
    tp, fp, fn, hit, predicted, recall_tp, recall_fn = counts.T
    own = harmonic_mean(divide(hit, predicted), recall(recall_tp, recall_fn))
    return np.column_stack([counts, fbeta(tp, fp, fn, beta=1.0), own])


def _by_size(blocks: list[Block], part: str) -> list[tuple[int, list[tuple[int, Block]]]]:
    """Numbers of samples above 0, and the blocks that have so many."""
    found: dict[int, list[tuple[int, Block]]] = {}
    for at, block in enumerate(blocks):
        found.setdefault(len(getattr(block, part)), []).append((at, block))
    return [(n, users) for n, users in found.items() if n]


def primary_score(scores: pd.DataFrame) -> pd.Series:
    """The score of each row that leads its benchmark."""
    return pd.Series([row[point_benchmark(row["benchmark"]).primary] for row in scores.to_dict("records")], scores.index)


def summaries(scores: pd.DataFrame, states: pd.DataFrame) -> list[dict[str, Any]]:
    """The scores of each model and benchmark by their names in the protocol, and how many samples are in which state."""
    names = {
        **{"strict_micro_f1": "strict_f1", "non_strict_micro_f1": "non_strict_f1"},
        **{"strict_overall_score": "overall_strict", "non_strict_overall_score": "overall_non_strict"},
    }
    ours = {column: name for name, column in names.items()}
    counts = states.set_index(["model", "benchmark"])[STATES].to_dict("index")
    return [
        {
            **{name: row[name] for name in ("benchmark", "model", "samples", "complete")},
            **{name: row[column] for name, column in names.items()},
            "primary": ours[point_benchmark(row["benchmark"]).primary],
            "states": counts[row["model"], row["benchmark"]],
        }
        for row in scores[scores["subset"] == ALL].to_dict("records")
    ]
