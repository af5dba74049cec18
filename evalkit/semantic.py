"""Semantic relaxation: a secondary count that accepts a related class for a gold class.

Class sets and boxes are matched again, as many pairs as can be, under the relation instead of under equal names. It stands
beside the exact scores and never replaces them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from evalkit.boxes import candidate_pairs, reaches
from evalkit.counts import IOU_THRESHOLDS, RELATIONS, TASKS, as_boxes, coordinate_rank, thresholds
from evalkit.matching import best_matching
from evalkit.metrics import SCORE_KEY, undefined_as_nan
from evalkit.tables import Benchmark, EvalkitError, Relation, categorical

WHOLE = 2.0**30  # relation values and IoUs are summed as whole numbers of this fineness, so that equal sums are equal
GAIN_COLUMNS = [
    *("model", "scope", "task", "iou", "level", "average", "label"),
    *("tp_exact", "tp_semantic", "f2_exact", "f2_semantic", "gain"),
]


class _Side(NamedTuple):
    """Boxes of gold or of one model; for class sets, each class of an image once, as a box that all others overlap."""

    image: np.ndarray
    label: np.ndarray
    boxes: np.ndarray
    rank: np.ndarray


def accepted_pairs(benchmark: Benchmark, *, iou: Sequence[float] = IOU_THRESHOLDS) -> pd.DataFrame:
    """The pairs of gold and prediction under the benchmark's relation, for class sets and for boxes at each threshold.

    A pair may stand if the relation accepts its predicted class for its gold class. Of the matchings with the most pairs it is
    the one with the most exact pairs, then the largest sum of relation values, then (boxes) of IoU, then the gold classes and
    last the predicted classes that come first in the class list. A name outside the class list is accepted for nothing.

    Returns
    -------
    DataFrame ``model, task, iou, image_id, gold_class, predicted_class, value, overlap``, a row for each pair; ``value`` is
    the cell of the relation; ``iou`` and ``overlap`` are NaN for class sets.

    Raises EvalkitError for a benchmark without a relation.
    """
    relation = benchmark.relation
    if relation is None:
        raise EvalkitError("the benchmark has no semantic relation; `semantic:` in benchmark.yml names one")
    steps = {"classification": [1.0], "localisation": thresholds(iou)}
    gold_of = {task: _side(benchmark.gold, task) for task in TASKS}
    parts = []
    for (code, model), task in itertools.product(enumerate(benchmark.models), TASKS):
        gold, said = gold_of[task], _side(benchmark.predictions[benchmark.predictions["model"] == model], task)
        gold_row, said_row, overlap = _candidates(gold, said, relation, minimum_iou=steps[task][0])
        for step in steps[task]:
            near = reaches(overlap, step)
            pair = _best_pairs(gold, said, gold_row[near], said_row[near], overlap[near], relation)
            one, other, shared = (column[near][pair] for column in (gold_row, said_row, overlap))
            is_boxes = task == "localisation"
            level, shared = (step, shared) if is_boxes else (np.nan, np.full(len(shared), np.nan))
            parts.append((code, is_boxes, level, gold.image[one], gold.label[one], said.label[other], shared))
    return _pairs_table(benchmark, relation, parts)


def relaxed_counts(counts: pd.DataFrame, accepted: pd.DataFrame) -> pd.DataFrame:
    """TP, FP and FN under the relation, in a table like that of :func:`evalkit.counts.count`, with ``relation`` semantic.

    A TP is booked to the gold class, an FP to the predicted class, an FN to the gold class. So tp + fn of a class is its
    number in gold as ever, but tp + fp is the number predicted only over all classes together.

    Parameters
    ----------
    counts : the exact counts of the same models and thresholds
    accepted : table of :func:`accepted_pairs`
    """
    levels = np.unique(counts["iou"].fillna(0))
    cell = _cells(counts, "class", levels)
    order = np.argsort(cell)
    found, used = (
        np.bincount(order[np.searchsorted(cell, _cells(accepted, side, levels), sorter=order)], minlength=len(counts))
        for side in ("gold_class", "predicted_class")
    )
    relation = categorical(np.full(len(counts), RELATIONS.index("semantic")), RELATIONS)
    columns = {"tp": found, "fp": counts["tp"] + counts["fp"] - used, "fn": counts["tp"] + counts["fn"] - found}
    return counts.assign(relation=relation, **columns).astype(dict.fromkeys(columns, np.int32))


def gains(scores: pd.DataFrame) -> pd.DataFrame:
    """How much each F2 rises under the relation: ``GAIN_COLUMNS``, a row for each pair of an exact and a semantic score.

    ``scores`` is the table of :func:`evalkit.metrics.scores` of exact and semantic counts together, or some rows of it. A score
    that is undefined has no gain.
    """
    key = [name for name in SCORE_KEY if name != "relation"]
    exact, relaxed = (
        undefined_as_nan(scores[scores["relation"] == name])[[*key, "tp", "f2"]].rename(
            columns={"tp": f"tp_{name}", "f2": f"f2_{name}"}
        )
        for name in RELATIONS
    )
    table = exact.merge(relaxed, on=key, how="left", validate="one_to_one")
    return table.assign(gain=table["f2_semantic"] - table["f2_exact"])[GAIN_COLUMNS]


def related_pairs(accepted: pd.DataFrame) -> pd.DataFrame:
    """How often which class was accepted for which other one: ``model, task, iou, gold_class, predicted_class, value, pairs``.

    Most often first. Their number may exceed the gain in TP, since a pair of related classes may take the place of an exact one
    where that makes room for one more.
    """
    keys = ["model", "task", "iou", "gold_class", "predicted_class", "value"]
    other = accepted[accepted["gold_class"].cat.codes != accepted["predicted_class"].cat.codes]
    table = other.groupby(keys, observed=True, dropna=False).size().rename("pairs").reset_index()
    return table.sort_values(
        ["model", "task", "iou", "pairs"], ascending=[True, True, True, False], kind="stable", ignore_index=True
    )


def _side(boxes: pd.DataFrame, task: str) -> _Side:
    image, label = (boxes[name].cat.codes.to_numpy(np.int64) for name in ("image_id", "class"))
    if task == "localisation":
        return _Side(image, label, as_boxes(boxes), coordinate_rank(boxes))
    cells = np.unique(np.column_stack([image, label]), axis=0)
    return _Side(*cells.T, np.tile([0.0, 0.0, 1.0, 1.0], (len(cells), 1)), np.arange(len(cells)))


def _candidates(gold: _Side, said: _Side, relation: Relation, *, minimum_iou: float) -> tuple[np.ndarray, ...]:
    """Rows of either side that may be paired, and their IoU. Only classes that are linked through the relation are compared."""
    accepted = relation.accepted
    n_groups, group = connected_components(csr_array(accepted), directed=False)
    listed = np.flatnonzero(said.label < len(group))
    gold_key, said_key = gold.image * n_groups + group[gold.label], said.image[listed] * n_groups + group[said.label[listed]]
    pairs = candidate_pairs(gold_key, gold.boxes, said_key, said.boxes[listed], minimum_iou=minimum_iou)
    gold_row, said_row, overlap = pairs[0], listed[pairs[1]], pairs[2]
    allowed = accepted[gold.label[gold_row], said.label[said_row]]
    return gold_row[allowed], said_row[allowed], overlap[allowed]


def _best_pairs(
    gold: _Side, said: _Side, gold_row: np.ndarray, said_row: np.ndarray, overlap: np.ndarray, relation: Relation
) -> np.ndarray:
    """Which candidates are pairs of the best of the maximum matchings, as booleans."""
    one, other = gold.label[gold_row], said.label[said_row]
    worth = relation.values.to_numpy()[one, other]
    last = len(relation.values)
    weight = np.stack([one == other, np.rint(worth * WHOLE), np.rint(overlap * WHOLE), last - one, last - other])
    return best_matching(gold_row, said_row, weight, gold.rank, said.rank)[gold_row] == said_row


def _pairs_table(benchmark: Benchmark, relation: Relation, parts: list[tuple]) -> pd.DataFrame:
    """Stack (model code, is localisation, threshold, images, gold classes, predicted classes, IoUs) into one table."""
    model, task, level, *rows = zip(*parts, strict=True) if parts else ((),) * 7
    sizes = [len(images) for images in rows[0]]
    image, one, other = (np.concatenate([np.empty(0, np.int64), *column]) for column in rows[:3])
    return pd.DataFrame(
        {
            "model": categorical(np.repeat(np.array(model, np.int64), sizes), benchmark.models),
            "task": categorical(np.repeat(np.array(task, np.int64), sizes), TASKS),
            "iou": np.repeat(np.array(level, float), sizes),
            "image_id": pd.Categorical.from_codes(image, dtype=benchmark.gold["image_id"].dtype),
            "gold_class": pd.Categorical.from_codes(one, dtype=benchmark.gold["class"].dtype),
            "predicted_class": pd.Categorical.from_codes(other, dtype=benchmark.gold["class"].dtype),
            "value": relation.values.to_numpy()[one, other],
            "overlap": np.concatenate([np.empty(0), *rows[3]]),
        }
    )


def _cells(table: pd.DataFrame, label: str, levels: np.ndarray) -> np.ndarray:
    """One integer for model, threshold, image and class; class sets count as the threshold 0."""
    level = np.searchsorted(levels, table["iou"].fillna(0))
    cell = table["model"].cat.codes.to_numpy(np.int64) * len(levels) + level
    for name in ("image_id", label):
        cell = cell * len(table[name].cat.categories) + table[name].cat.codes.to_numpy()
    return cell
