"""Counts to ratios: one safe division, precision, recall, F-beta, and the averages over classes, domains and scopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from evalkit.counts import IOU_THRESHOLDS, OUTCOMES, RELATIONS, TASKS, thresholds
from evalkit.tables import STATES, Benchmark, EvalkitError, categorical

SCOPES = ["valid", "common"]
VIEW = "all"
VIEWS = (*SCOPES, VIEW)
EMPTY_SCOPE = "empty scope: no image with a valid response"
SCORE_KEY = ["model", "scope", "task", "iou", "relation", "level", "average", "label"]
SCORE_COLUMNS = [
    *(*SCORE_KEY, "tp", "fp", "fn", "precision", "recall", "f1", "f2", "f2_low", "f2_high"),
    *("replicates", "undefined", "reason", "n_images", "n_gold"),
]
COVERAGE_COLUMNS = [
    *("model", "scope", "models", "images", "valid", "invalid", "missing", "coverage", "negative_images"),
    *("negative_with_boxes", "negative_fpr", "negative_fpr_low", "negative_fpr_high", "fp_boxes_per_negative"),
]


def divide(numerator: np.ndarray, denominator: np.ndarray, *, zero_division: float = 0.0) -> np.ndarray:
    """Numerator / denominator, and ``zero_division`` (0.0, or NaN for undefined) where the denominator is 0.

    The only division of counts in the package. Shapes broadcast.
    """
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    out = np.full(numerator.shape, float(zero_division))
    return np.divide(numerator, denominator, out=out, where=denominator != 0)


def precision(tp: np.ndarray, fp: np.ndarray, *, zero_division: float = 0.0) -> np.ndarray:
    """TP / (TP + FP), from 0 to 1: the share of predictions that are right. Undefined without predictions.

    >>> precision(6, 2)
    array(0.75)
    """
    return divide(tp, np.add(tp, fp), zero_division=zero_division)


def recall(tp: np.ndarray, fn: np.ndarray, *, zero_division: float = 0.0) -> np.ndarray:
    """TP / (TP + FN), from 0 to 1: the share of gold that was found. Undefined without gold.

    >>> recall(6, 4)
    array(0.6)
    """
    return divide(tp, np.add(tp, fn), zero_division=zero_division)


def fbeta(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, *, beta: float = 2.0, zero_division: float = 0.0) -> np.ndarray:
    """(1 + b²)TP / ((1 + b²)TP + FP + b²FN), from 0 to 1; undefined where all counts are 0.

    The weighted harmonic mean of precision and recall, from counts; ``beta`` = 2 makes a miss cost four times a false alarm:
    F2 = 5TP / (5TP + FP + 4FN). C. J. van Rijsbergen, "Information Retrieval", 2nd ed., 1979.

    Raises EvalkitError unless ``beta`` is above 0.

    >>> fbeta(6, 2, 4)
    array(0.625)
    """
    if not beta > 0:
        raise EvalkitError(f"beta must be above 0, not {beta}")
    weighted = (1 + beta**2) * np.asarray(tp)
    return divide(weighted, weighted + fp + beta**2 * np.asarray(fn), zero_division=zero_division)


RATIOS: dict[str, Callable] = {
    "precision": lambda tp, fp, fn, **options: precision(tp, fp, **options),
    "recall": lambda tp, fp, fn, **options: recall(tp, fn, **options),
    "f1": lambda tp, fp, fn, **options: fbeta(tp, fp, fn, beta=1.0, **options),
    "f2": lambda tp, fp, fn, **options: fbeta(tp, fp, fn, beta=2.0, **options),
}
POPULATIONS: dict[str, Callable] = {  # the classes that a macro average is over, from totals of shape (..., classes, 3)
    "macro": lambda totals: totals.sum(axis=-1) > 0,
    "macro_gold": lambda totals: totals[..., 0] + totals[..., 2] > 0,
}


def scopes(benchmark: Benchmark, images: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """The images of each scope, as a mask of shape (models, images).

    ``valid`` holds each model's valid images, ``common`` those that are valid for every model. ``all`` is not a scope but a
    view: every image, with invalid and missing responses taken as empty. ``images``, a mask of shape (images,), leaves only
    those of a slice.
    """
    valid = benchmark.valid
    masks = {"valid": valid, "common": np.broadcast_to(valid.all(axis=0), valid.shape), VIEW: np.ones_like(valid)}
    return masks if images is None else {name: mask & images for name, mask in masks.items()}


def scores(
    benchmark: Benchmark,
    counts: pd.DataFrame,
    *,
    zero_division: float = 0.0,
    iou: Sequence[float] = IOU_THRESHOLDS,
    images: np.ndarray | None = None,
) -> pd.DataFrame:
    """Precision, recall, F1 and F2 of every model, scope, task and threshold: overall, per domain, per class.

    Micro pools the counts of classes before dividing; a domain's micro pools its classes. Macro is the mean of the class
    scores over the classes represented (any TP, FP or FN in the scope), ``macro_gold`` over those that have gold; names
    outside the class list are in neither, but in overall micro, and summed in the row ``outside``. So domains plus outside
    add up to overall.

    Parameters
    ----------
    counts : table of :func:`evalkit.counts.count`
    zero_division : the value of a ratio whose denominator is 0; 0.0, or NaN. ``reason`` says what was lacking.
    iou : the thresholds that get rows where ``counts`` is empty, since nothing is in gold and nothing was predicted
    images : a mask of shape (images,), the images to score; all by default

    Returns
    -------
    DataFrame with the columns ``SCORE_COLUMNS``. An empty scope has no ratio at all and says so in ``reason``.
    """
    labels, pools = score_rows(benchmark)
    blocks, totals, n_images = _class_totals(benchmark, counts, iou, images)
    pooled = pools.astype(float) @ totals
    tp, fp, fn = np.moveaxis(pooled, -1, 0)
    n_listed = len(benchmark.classes)
    macro = np.tile(labels["average"].isin(POPULATIONS), len(blocks))
    empty = np.repeat(n_images == 0, len(labels))
    shown = {"tp": tp, "fp": fp, "fn": fn, "n_gold": np.where(macro.reshape(tp.shape), (tp + fn)[:, :1], tp + fn)}
    columns = {name: blocks[name].array.repeat(len(labels)) for name in blocks}
    columns |= {name: np.tile(labels[name].to_numpy(object), len(blocks)) for name in labels}
    for name, values in shown.items():
        hidden = empty if name == "n_gold" else empty | macro
        columns[name] = pd.arrays.IntegerArray(values.ravel().astype(np.int64), hidden)
    for name, ratio in RATIOS.items():
        values = averages(totals[:, :n_listed], pooled, labels, ratio, zero_division=zero_division)
        columns[name] = np.where(empty, np.nan, values.ravel())
    reason = _lacking(tp, fp, fn, totals[:, :n_listed], labels).ravel()
    partly = macro & (reason == "") & np.isnan([columns[name] for name in RATIOS]).any(axis=0)
    columns["reason"] = np.select([empty, partly], [EMPTY_SCOPE, "undefined for a class"], reason)
    columns["n_images"] = np.repeat(n_images, len(labels))
    return pd.DataFrame({name: columns.get(name, np.nan) for name in SCORE_COLUMNS})


def _lacking(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, listed: np.ndarray, labels: pd.DataFrame) -> np.ndarray:
    """Why a ratio of a row is undefined, as text of shape (blocks, rows); empty where all are defined."""
    average = labels["average"].to_numpy(object)
    no_gold, no_predictions = tp + fn == 0, tp + fp == 0
    reason = np.select(
        [no_gold & no_predictions, no_gold, no_predictions], ["no gold, no predictions", "no gold", "no predictions"], ""
    ).astype(object)
    for name, represented in POPULATIONS.items():
        some = represented(listed).any(axis=1)
        reason[:, average == name] = np.where(some, "", "no class represented")[:, None]
    return reason


def undefined_as_nan(scores: pd.DataFrame) -> pd.DataFrame:
    """The same scores with NaN for each ratio whose denominator is 0, whatever number ``zero_division`` put there.

    Macro averages keep their number, in which an undefined class score counts as ``zero_division``; without any class
    represented they are NaN too.
    """
    no_predictions, no_gold = ((scores["tp"] + scores[name]).eq(0).fillna(False) for name in ("fp", "fn"))
    nothing = (no_predictions & no_gold) | (scores["reason"] == "no class represented")
    lacking = {"precision": no_predictions, "recall": no_gold, "f1": nothing, "f2": nothing}
    return scores.assign(**{name: scores[name].mask((mask | nothing).astype(bool)) for name, mask in lacking.items()})


def averages(
    listed: np.ndarray, pooled: np.ndarray, labels: pd.DataFrame, ratio: Callable, *, zero_division: float = 0.0
) -> np.ndarray:
    """One ratio for every row of :func:`score_rows`, for any number of blocks of counts.

    Parameters
    ----------
    listed : counts of the classes of the class list, of shape (blocks, classes, 3), the last axis tp, fp, fn
    pooled : counts that the rows pool, of shape (blocks, rows, 3)
    labels : from :func:`score_rows`
    ratio : one of ``RATIOS``

    Returns
    -------
    array of shape (blocks, rows). A macro average has the population of its own block; without one it is undefined.
    """
    average = labels["average"].to_numpy(object)
    values = ratio(*np.moveaxis(pooled, -1, 0), zero_division=zero_division)
    per_class = ratio(*np.moveaxis(listed, -1, 0), zero_division=zero_division)
    for name, represented in POPULATIONS.items():
        population = represented(listed)
        total = np.where(population, per_class, 0).sum(axis=1)
        mean = divide(total, population.sum(axis=1), zero_division=zero_division)
        values[:, average == name] = mean[:, None]
    return values


def score_rows(benchmark: Benchmark) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows of a block of scores, ``level, average, label``, and which classes each row pools, shape (rows, classes).

    Macro rows pool nothing: they are means over classes.
    """
    domain = np.array([*benchmark.classes["domain"], *[None] * len(benchmark.outside)], dtype=object)
    n_classes, n_listed = len(domain), len(benchmark.classes)
    each, listed = np.eye(n_classes, dtype=bool), np.arange(n_classes) < n_listed
    rows = [("overall", "micro", "overall", np.ones(n_classes, bool))]
    rows += [("overall", name, "overall", np.zeros(n_classes, bool)) for name in POPULATIONS]
    rows += [("domain", "micro", name, domain == name) for name in benchmark.domains]
    rows += [("class", "", name, each[code]) for code, name in enumerate(benchmark.classes["class_name"])]
    rows.append(("outside", "micro", "outside", ~listed))
    return pd.DataFrame([row[:3] for row in rows], columns=["level", "average", "label"]), np.array([row[3] for row in rows])


def coverage(benchmark: Benchmark) -> pd.DataFrame:
    """How many responses are valid, invalid and missing, and how often clean images were given boxes.

    ``images`` is the number of gold images: valid, invalid and missing add up to it, and coverage = valid / images.
    ``negative_images`` are the scope's images without any gold box, ``negative_with_boxes`` those of them with at least one
    predicted box, ``negative_fpr`` the share, ``fp_boxes_per_negative`` the predicted boxes per negative image. Undefined
    (NaN) without negative images, and in the view ``all``, where a malformed answer would pass for a correct negative.

    Returns
    -------
    DataFrame with the columns ``COVERAGE_COLUMNS``; ``models`` names the models that define the scope.
    """
    n_images = len(benchmark.images)
    negative = benchmark.gold_boxes_per_image == 0
    state = benchmark.responses["state"].cat.codes.to_numpy().reshape(-1, n_images)
    boxes = benchmark.predicted_boxes_per_image
    parts = []
    for scope, mask in scopes(benchmark).items():
        clean = mask & negative
        n_clean, with_boxes = clean.sum(axis=1), (clean & (boxes > 0)).sum(axis=1)
        known = np.nan if scope == VIEW else 1.0
        parts.append(
            pd.DataFrame(
                {
                    "model": benchmark.models,
                    "scope": scope,
                    "models": benchmark.models if scope == "valid" else ", ".join(benchmark.models),
                    "images": n_images,
                    **{name: (state == code).sum(axis=1) for code, name in enumerate(STATES)},
                    "coverage": divide((state == 0).sum(axis=1), n_images, zero_division=np.nan),
                    "negative_images": n_clean,
                    "negative_with_boxes": with_boxes,
                    "negative_fpr": divide(with_boxes, n_clean, zero_division=np.nan) * known,
                    "fp_boxes_per_negative": divide((boxes * clean).sum(axis=1), n_clean, zero_division=np.nan) * known,
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    table["model"] = pd.Categorical(table["model"], categories=benchmark.models)
    return table.sort_values("model", kind="stable", ignore_index=True).reindex(columns=COVERAGE_COLUMNS)


def kinds_of(counts: pd.DataFrame, *, iou: Sequence[float] = IOU_THRESHOLDS) -> tuple[pd.DataFrame, np.ndarray]:
    """The kinds of counts, ``task, iou, relation``, and the number of the kind of each row.

    Where nothing is in gold and nothing was predicted there are no rows, and the kinds are those of the thresholds ``iou``.
    """
    columns = counts["task"].cat.codes.to_numpy(), counts["relation"].cat.codes.to_numpy(), counts["iou"].to_numpy()
    first = _run_starts(*columns)  # the rows of a kind mostly stand together
    task, relation, level = (column[first] for column in columns)
    iou_code, ious = pd.factorize(level, use_na_sentinel=False)
    code = (task.astype(np.int32) * len(RELATIONS) + relation) * len(ious) + iou_code
    present, kind = np.unique(code, return_inverse=True)
    kind = np.repeat(kind.astype(np.int32), np.diff(first, append=len(counts)))
    task, relation = np.divmod(present // max(len(ious), 1), len(RELATIONS))
    kinds = pd.DataFrame(
        {
            "task": categorical(task, TASKS),
            "iou": np.asarray(ious, float)[present % max(len(ious), 1)],
            "relation": categorical(relation, RELATIONS),
        }
    )
    if counts.empty:  # nothing in gold and nothing predicted still has its rows
        localisation = [("localisation", level, "exact") for level in thresholds(iou)]
        kinds = pd.DataFrame([("classification", np.nan, "exact"), *localisation], columns=["task", "iou", "relation"])
    return kinds, kind


def _run_starts(*columns: np.ndarray) -> np.ndarray:
    """The rows that differ in a column from the row before, and the first row; NaN is like NaN."""
    starts = np.ones(len(columns[0]), bool)
    bits = [column.view(f"i{column.itemsize}") for column in columns]
    starts[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in bits])
    return np.flatnonzero(starts)


def _class_totals(
    benchmark: Benchmark, counts: pd.DataFrame, iou: Sequence[float], images: np.ndarray | None
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Sums of tp, fp, fn for each class in each block (model, scope, task, iou, relation).

    Returns the blocks as a table, totals of shape (blocks, classes, 3), and the images of each block's scope.
    """
    n_classes = len(counts["class"].cat.categories)
    kinds, kind = kinds_of(counts, iou=iou)
    model, image, label = (counts[name].cat.codes.to_numpy() for name in ("model", "image_id", "class"))
    cell = model.astype(np.intp)
    for size, code in ((len(kinds), kind), (n_classes, label)):
        cell *= size
        cell += code
    size = len(benchmark.models) * len(kinds) * n_classes
    masks = scopes(benchmark, images)
    whole = _sums(cell, counts, size)
    totals, n_images = [], []
    for mask in masks.values():
        sums = whole if mask.all() else _sums(cell, counts, size, mask[model, image])
        totals.append(sums.reshape(len(benchmark.models), len(kinds), n_classes, 3))
        n_images.append(np.repeat(mask.sum(axis=1)[:, None], len(kinds), axis=1))
    totals, n_images = np.stack(totals, axis=1), np.stack(n_images, axis=1)
    of_model, of_scope, of_kind = np.indices((len(benchmark.models), len(masks), len(kinds))).reshape(3, -1)
    frame = pd.DataFrame(
        {
            "model": categorical(of_model, benchmark.models),
            "scope": categorical(of_scope, list(masks)),
            **{name: kinds[name].array.take(of_kind) for name in kinds},
        }
    )
    return frame, totals.reshape(-1, n_classes, 3), n_images.ravel()


def _sums(cell: np.ndarray, counts: pd.DataFrame, size: int, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
    return np.stack([np.bincount(cell[rows], counts[name].to_numpy()[rows], size) for name in OUTCOMES], axis=-1)
