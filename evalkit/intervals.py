"""Image bootstrap: how sure a score is, and how sure the difference of two models.

Counts per image are additive, so nothing is matched again: a replicate is a weighted sum of the counts of the scope's images,
the weights being how often each image was drawn. B. Efron, "Bootstrap methods: another look at the jackknife", 1979.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from evalkit.counts import IOU_THRESHOLDS, OUTCOMES
from evalkit.metrics import RATIOS, SCORE_KEY, VIEWS, averages, divide, kinds_of, scopes, score_rows, undefined_as_nan
from evalkit.tables import Benchmark, EvalkitError

REPLICATES, LEVEL, SEED = 2000, 0.95, 20260817
LEAST_REPLICATES, MOST_REPLICATES = 100, 1_000_000
NOISE = 1e-12  # how far equal values may be apart by rounding
MOST_UNDEFINED = 0.05  # share of undefined replicates above which an interval is not estimable
DEGENERATE, NOT_ESTIMABLE = "degenerate: no variation", "not estimable: undefined in more than 5 % of the replicates"
CHUNK = 500_000  # weights held at a time; more of them no longer fit the cache of a core
COMPARISON_COLUMNS = [
    *("model_a", "model_b", "scope", "task", "iou", "relation", "level", "average", "label", "statistic", "value_a", "value_b"),
    *("difference", "low", "high", "share_above_zero", "p_value", "p_holm", "replicates", "undefined"),
]


class Interval(NamedTuple):
    """Percentile intervals of a statistic, arrays of one shape."""

    low: np.ndarray
    high: np.ndarray
    undefined: np.ndarray  # replicates in which the statistic is undefined
    reason: np.ndarray  # why there is no interval, or why it is a point


class Replicates(NamedTuple):
    """Scores of every replicate: ``scores[statistic][model, scope]`` of shape (replicates, kinds, rows of a block).

    ``kinds`` and ``rows`` say what stands where; a table of scores is joined with them on its key columns.
    """

    scores: dict[str, dict[tuple[str, str], np.ndarray]]
    negative_fpr: dict[tuple[str, str], np.ndarray]
    kinds: pd.DataFrame
    rows: pd.DataFrame
    number: int


def check_settings(*, replicates: int, level: float, seed: int = SEED, jobs: int = 1) -> None:
    """Raise EvalkitError unless there are 100 to 1,000,000 replicates, a level between 0 and 1, a seed from 0 on and a job."""
    if jobs < 1:
        raise EvalkitError(f"jobs must be at least 1, not {jobs}")
    if replicates < LEAST_REPLICATES:
        raise EvalkitError(f"replicates must be at least {LEAST_REPLICATES}, not {replicates}")
    if replicates > MOST_REPLICATES:
        raise EvalkitError(f"replicates must be at most {MOST_REPLICATES:,}, not {replicates:,}")
    if seed < 0:
        raise EvalkitError(f"seed must be a whole number from 0 on, not {seed}")
    if not 0 < level < 1:
        raise EvalkitError(f"level must lie between 0 and 1, not {level}")


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
    tails = [(1 - level) / 2, (1 + level) / 2]
    shape, values, point = values.shape[1:], values.reshape(len(values), -1), np.ravel(point)
    undefined = np.isnan(values).sum(axis=0)
    many = undefined > MOST_UNDEFINED * len(values)
    low, high = np.quantile(values, tails, axis=0)
    for column in np.flatnonzero((undefined > 0) & ~many):
        low[column], high[column] = np.quantile(values[~np.isnan(values[:, column]), column], tails)
    lowest, highest = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)  # of the defined ones
    flat = highest - lowest <= NOISE
    low, high = (np.where(many, np.nan, np.where(flat, point, end)) for end in (low, high))
    reason = np.select([many, flat], [NOT_ESTIMABLE, DEGENERATE], "")
    return Interval(*(part.reshape(shape) for part in (low, high, undefined, reason)))


def bootstrap(
    benchmark: Benchmark,
    counts: pd.DataFrame,
    *,
    statistics: Sequence[str] = ("f2",),
    replicates: int = REPLICATES,
    seed: int = SEED,
    jobs: int = 1,
    wanted: Sequence[str] = VIEWS,
    iou: Sequence[float] = IOU_THRESHOLDS,
    images: np.ndarray | None = None,
    block: np.ndarray | None = None,
) -> Replicates:
    """Score every model on resampled images, for every scope, task, threshold, domain and class.

    Images are drawn with replacement from the images of the scope, in the order of their ids; scopes with the same images
    share the draws, and so do models, tasks and classes. Inside a replicate 0/0 is undefined, and a macro average has the
    classes that are represented in it. ``wanted`` are the scopes to do, ``images`` a mask of shape
    (images,) that leaves those of a slice; ``jobs`` changes the time only. With ``block``, the block of each image, blocks are
    drawn instead, in the order of their names. ``iou`` are the thresholds of the scores, needed where ``counts`` is empty.

    Raises EvalkitError for settings that :func:`check_settings` refuses, and a statistic that is not in ``RATIOS``.
    """
    check_settings(replicates=replicates, level=LEVEL, seed=seed, jobs=jobs)
    if unknown := [name for name in statistics if name not in RATIOS]:
        raise EvalkitError(f"statistic must be one of {', '.join(RATIOS)}, not {unknown[0]!r}")
    kinds, kind = kinds_of(counts, iou=iou)
    rows, pools = score_rows(benchmark)
    n_classes, n_listed = pools.shape[1], len(benchmark.classes)
    matrices = _count_matrices(benchmark, counts, kind, len(kinds) * n_classes)
    clean = benchmark.gold_boxes_per_image == 0
    with_boxes = clean & (benchmark.predicted_boxes_per_image > 0)
    order = np.argsort(benchmark.images["image_id"].astype(str).to_numpy(), kind="stable")
    pools = pools.astype(float)

    def run(images: np.ndarray, wanted: list[int]) -> list[tuple[dict[str, np.ndarray], np.ndarray]]:
        """Replicates on one set of images, for some models."""
        chosen = order[images[order]]
        sides = csr_array(np.column_stack([clean[chosen], *(with_boxes[model, chosen] for model in wanted)]).astype(float))
        matrix = hstack([*(matrices[model][chosen] for model in wanted), sides], format="csr").T.tocsr()
        if block is not None:
            units = np.unique(np.asarray(block, dtype=object)[chosen].astype(str), return_inverse=True)[1]
            matrix = (matrix @ csr_array((np.ones(len(chosen)), (np.arange(len(chosen)), units)))).tocsr()
        parts: list[list] = [[] for _ in wanted]
        for weight in weights(matrix.shape[1], replicates=replicates, seed=seed):
            totals = (matrix @ np.ascontiguousarray(weight.T, dtype=float)).T
            per_model = np.split(totals, len(kinds) * n_classes * len(OUTCOMES) * np.arange(1, len(wanted) + 1), axis=1)
            for at, part in enumerate(parts):
                counted = per_model[at].reshape(-1, n_classes, len(OUTCOMES))
                pooled, listed = pools @ counted, counted[:, :n_listed]
                scored = {
                    name: averages(listed, pooled, rows, RATIOS[name], zero_division=np.nan).reshape(-1, len(kinds), len(rows))
                    for name in statistics
                }
                rate = divide(per_model[-1][:, 1 + at], per_model[-1][:, 0], zero_division=np.nan)
                part.append((scored, rate))
        return [
            (
                {name: np.concatenate([one[0][name] for one in part]) for name in statistics},
                np.concatenate([one[1] for one in part]),
            )
            for part in parts
        ]

    sets = _image_sets(scopes(benchmark, images), wanted)
    scores: dict[str, dict[tuple[str, str], np.ndarray]] = {name: {} for name in statistics}
    rates: dict[tuple[str, str], np.ndarray] = {}
    with ThreadPoolExecutor(jobs) as pool:
        done = pool.map(lambda one: run(one[0], sorted({model for model, _ in one[1]})), sets)
        for (_, users), results in zip(sets, done, strict=True):
            place = {model: at for at, model in enumerate(sorted({model for model, _ in users}))}
            for model, scope in users:
                key = benchmark.models[model], scope
                rates[key] = results[place[model]][1]
                for name in statistics:
                    scores[name][key] = results[place[model]][0][name]
    return Replicates(scores, rates, kinds, rows, replicates)


def add_intervals(scores: pd.DataFrame, replicates: Replicates, *, level: float = LEVEL) -> pd.DataFrame:
    """The table of scores with the intervals of the replicates' statistics; its rows may be some of all, in any order.

    ``f2_low``, ``f2_high``, ``replicates`` and ``undefined`` are filled; another statistic gets four columns of its own, for
    its ends, ``undefined`` and ``reason``. Where F2 has no interval, or it is a point, ``reason`` says so, unless the score
    itself is undefined.

    Raises EvalkitError for scores of another benchmark than the replicates.
    """
    check_settings(replicates=replicates.number, level=level)
    places = _places(scores, replicates)
    own = [name for name in replicates.scores if name != "f2"]
    ends = [f"{statistic}_{end}" for statistic in replicates.scores for end in ("low", "high")]
    columns = {name: np.full(len(scores), np.nan) for name in (*ends, "replicates", "undefined")}
    columns |= {f"{name}_undefined": np.full(len(scores), np.nan) for name in own}
    reasons = {name: np.full(len(scores), "", object) for name in replicates.scores}
    for key, at in scores.groupby(["model", "scope"], observed=True, sort=False).indices.items():
        for statistic, by_model in replicates.scores.items():
            if key in by_model:
                values = by_model[key].reshape(replicates.number, -1)[:, places[at]]
                found = percentile_interval(values, scores[statistic].to_numpy(float)[at], level=level)
                columns[f"{statistic}_low"][at], columns[f"{statistic}_high"][at] = found.low, found.high
                columns["undefined" if statistic == "f2" else f"{statistic}_undefined"][at] = found.undefined
                columns["replicates"][at] = replicates.number
                reasons[statistic][at] = found.reason
    said = scores["reason"].to_numpy(object)
    words = {"reason": np.where(said == "", reasons.get("f2", ""), said), **{f"{name}_reason": reasons[name] for name in own}}
    table = scores.assign(**columns, **{name: pd.Series(text, index=scores.index, dtype=str) for name, text in words.items()})
    return table.astype(dict.fromkeys(["replicates", "undefined", *(f"{name}_undefined" for name in own)], "Int64"))


def _places(scores: pd.DataFrame, replicates: Replicates) -> np.ndarray:
    """Where each score stands among those of a model and scope in the replicates."""
    key = [name for name in SCORE_KEY if name not in ("model", "scope")]
    grid = replicates.kinds.merge(replicates.rows, how="cross")
    text = {name: str for name in key if name != "iou"}
    known, asked = (pd.MultiIndex.from_frame(table[key].fillna({"iou": 0}).astype(text)) for table in (grid, scores))
    places = known.get_indexer(asked)
    if (places < 0).any():
        row = dict(zip(key, asked[int(np.argmax(places < 0))], strict=True))
        raise EvalkitError(f"the replicates have no score {row}; they are of other counts")
    return places


def add_rate_intervals(coverage: pd.DataFrame, replicates: Replicates, *, level: float = LEVEL) -> pd.DataFrame:
    """The table of coverage with the interval of the negative-image rate, its number of undefined replicates and reason."""
    ends = {
        name: np.full(len(coverage), np.nan) for name in ("negative_fpr_low", "negative_fpr_high", "negative_fpr_undefined")
    }
    reason = np.full(len(coverage), "", object)
    for row, (model, scope, rate) in enumerate(coverage[["model", "scope", "negative_fpr"]].itertuples(index=False)):
        if (model, scope) in replicates.negative_fpr and not np.isnan(rate):
            found = percentile_interval(replicates.negative_fpr[model, scope], np.array(rate), level=level)
            for name, value in zip(ends, found, strict=False):
                ends[name][row] = value
            reason[row] = str(found.reason)
    table = coverage.assign(**ends, negative_fpr_reason=pd.Series(reason, index=coverage.index, dtype=str))
    return table.astype({"negative_fpr_undefined": "Int64"})


def compare(scores: pd.DataFrame, replicates: Replicates, *, level: float = LEVEL) -> pd.DataFrame:
    """Every pair of models on the common scope: the difference of their scores, its interval, and how sure its sign is.

    The same resampled images serve both models of a pair, so what is hard for both does not blur the difference.
    p = min(1, 2 (1 + min(#≤0, #≥0)) / (R + 1)) over the R defined replicates; Holm's correction is over the pairs of models of
    one score.

    Returns
    -------
    DataFrame with the columns ``COMPARISON_COLUMNS`` and ``reason``. A row whose interval is not estimable has no interval and
    no p-value; ``reason`` says so, or that nothing varies. A score that is undefined for a model has no value.

    Raises EvalkitError for scores of another benchmark than the replicates, and for models with different rows.
    """
    common = undefined_as_nan(scores[scores["scope"] == "common"])
    common = common.assign(place=_places(common, replicates)).sort_values(["model", "place"], kind="stable")
    models = [name for name in common["model"].cat.categories if (common["model"] == name).any()]
    parts = []
    for statistic, (a, b) in itertools.product(replicates.scores, itertools.combinations(models, 2)):
        one, other = (common[common["model"] == name] for name in (a, b))
        by_model = replicates.scores[statistic]
        if (a, "common") not in by_model:
            continue
        if not np.array_equal(one["place"], other["place"]):
            raise EvalkitError(f"the models {a!r} and {b!r} have different rows of scores")
        values = by_model[a, "common"] - by_model[b, "common"]
        values = values.reshape(replicates.number, -1)[:, one["place"].to_numpy()]
        value_a, value_b = one[statistic].to_numpy(float), other[statistic].to_numpy(float)
        found = percentile_interval(values, value_a - value_b, level=level)
        defined = replicates.number - found.undefined
        sides = np.minimum((values <= 0).sum(axis=0), (values >= 0).sum(axis=0))
        known = found.reason != NOT_ESTIMABLE
        parts.append(
            one[[name for name in SCORE_KEY if name != "model"]].assign(
                model_a=a,
                model_b=b,
                statistic=statistic,
                value_a=value_a,
                value_b=value_b,
                difference=value_a - value_b,
                low=found.low,
                high=found.high,
                share_above_zero=divide((values > 0).sum(axis=0), defined, zero_division=np.nan),
                p_value=np.where(known, np.minimum(1, 2 * (1 + sides) / (defined + 1)), np.nan),
                replicates=replicates.number,
                undefined=found.undefined,
                reason=found.reason,
            )
        )
    if not parts:
        return pd.DataFrame(columns=[*COMPARISON_COLUMNS, "reason"])
    table = pd.concat(parts, ignore_index=True)
    family = [name for name in (*SCORE_KEY[1:], "statistic")]
    table["p_holm"] = table.groupby(family, observed=True, dropna=False)["p_value"].transform(holm)
    return table.reindex(columns=[*COMPARISON_COLUMNS, "reason"])


def holm(p: pd.Series) -> pd.Series:
    """Holm's step-down adjustment of p-values; NaN stays and does not count. S. Holm, 1979.

    >>> holm(pd.Series([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    known = p.dropna().sort_values(kind="stable")
    factors = np.arange(len(known), 0, -1)
    return (known * factors).cummax().clip(upper=1).reindex(p.index)


def least_p(models: int, replicates: int) -> float:
    """The smallest p-value that Holm's correction can leave among all pairs of so many models.

    >>> least_p(3, 599)  # 3 pairs, and p is at least 2 / 600
    0.01
    """
    return min(1.0, 2 * (models * (models - 1) // 2) / (replicates + 1))


def _image_sets(masks_of: dict[str, np.ndarray], wanted: Sequence[str]) -> list[tuple[np.ndarray, list[tuple[int, str]]]]:
    """The different sets of images of all models and scopes, and who is scored on each; empty ones are left out."""
    sets: dict[bytes, tuple[np.ndarray, list[tuple[int, str]]]] = {}
    for scope, masks in ((name, masks_of[name]) for name in wanted):
        for model, mask in enumerate(masks):
            if mask.any():
                sets.setdefault(mask.tobytes(), (mask, []))[1].append((model, scope))
    return list(sets.values())


def _count_matrices(benchmark: Benchmark, counts: pd.DataFrame, kind: np.ndarray, n_columns: int) -> list[csr_array]:
    """For each model a sparse matrix, images by (kind, class, outcome)."""
    n_classes = len(counts["class"].cat.categories)
    image, label, model = (counts[name].cat.codes.to_numpy(np.int64) for name in ("image_id", "class", "model"))
    column = (kind * n_classes + label) * len(OUTCOMES)
    shape = (len(benchmark.images), n_columns * len(OUTCOMES))
    found = []
    for code in range(len(benchmark.models)):
        mine = model == code
        values = np.concatenate([counts[name].to_numpy(float)[mine] for name in OUTCOMES])
        at = np.concatenate([column[mine] + offset for offset in range(len(OUTCOMES))])
        nonzero = values != 0
        found.append(csr_array((values[nonzero], (np.tile(image[mine], len(OUTCOMES))[nonzero], at[nonzero])), shape=shape))
    return found
