"""Where the errors are: why each box is false or missed, which classes are taken for which, and on which images it goes wrong.

Everything here reads the table of :func:`evalkit.counts.match` and changes no score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from evalkit.boxes import joined, pair_chunks, reaches
from evalkit.counts import IOU_THRESHOLDS, OUTCOMES, thresholds
from evalkit.matching import best_matching, compressed
from evalkit.metrics import scopes
from evalkit.tables import BOX_COLUMNS, Benchmark, categorical

POOR_IOU = 0.1  # from here to the threshold a box is poorly placed; below, it is somewhere else
# In the order of precedence: of those that apply to a box, the first is its reason. The last two need no other box.
REASONS = {
    "duplicate": "it is on a gold box of its class that already has a partner",
    "wrong_class": "it is on a box of another class",
    "poor_iou": "it overlaps a box of its class, but not enough",
    "nothing": "a false box, and none of the above",
    "missed": "a missed box, and none of the above",
}
REASON_WORDS = dict(zip(REASONS, ("duplicate", "wrong class", "poor IoU", "nothing there", "missed"), strict=True))
DUPLICATE, WRONG_CLASS, POOR, NOTHING, MISSED = range(len(REASONS))
REASONS_OF = {"fp": ["duplicate", "wrong_class", "poor_iou", "nothing"], "fn": ["wrong_class", "poor_iou", "missed"]}
FP, FN = OUTCOMES.index("fp"), OUTCOMES.index("fn")
ERROR_COLUMNS = ["model", "scope", "iou", "domain", "class", "outcome", "reason", "count"]
CONFUSION_COLUMNS = ["model", "scope", "iou", "gold", "predicted", "count"]
IMAGE_COLUMNS = ["model", "iou", "image_id", "tp", "fp", "fn"]


def explain(matches: pd.DataFrame) -> pd.DataFrame:
    """The matches with a ``reason`` for each false and each missed box, and the class of the box that it was taken for.

    A false box is compared with all gold boxes of its image, a missed box with the false boxes of its image, since a box that
    found its partner was no attempt at another one. Of the reasons that apply the first in :data:`REASONS` counts:

    - ``duplicate``: IoU at least the threshold with a gold box of its class. The matching is as large as can be, so that gold
      box has a partner; no missed box has this reason.
    - ``wrong_class``: IoU at least the threshold with a box of another class.
    - ``poor_iou``: 0.1 <= IoU < threshold with a box of its class.
    - ``nothing`` (false boxes) and ``missed`` (missed boxes): none of these.

    ``confused_with`` comes from one more matching per image, of the missed with the false boxes and regardless of class: one to
    one, as many pairs as can be, then the largest sum of IoU, then by coordinates and class.

    The bounds 0.1 and threshold are those of D. Hoiem, Y. Chodpathumwan and Q. Dai, "Diagnosing Error in Object Detectors",
    2012, and of D. Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection Errors", 2020.

    Parameters
    ----------
    matches : table of :func:`evalkit.counts.match`, in any order of rows, with every row of an image, model and threshold

    Returns
    -------
    DataFrame with the two columns after ``outcome``; both are NaN for a matched pair, ``confused_with`` also for a box without
    a partner.
    """
    outcome, label, image = (matches[name].cat.codes.to_numpy() for name in ("outcome", "class", "image_id"))
    boxes = {side: np.column_stack([matches[f"{side}_{name}"] for name in BOX_COLUMNS]) for side in ("gold", "predicted")}
    reason = np.array([-1, NOTHING, MISSED], np.int8)[outcome]
    partner = np.full(len(matches), -1)
    for (_, level), rows in matches.groupby(["model", "iou"], observed=True).indices.items():
        gold, false = (rows[side].astype(np.int32) for side in (outcome[rows] != FP, outcome[rows] == FP))
        sides = image[gold], boxes["gold"][gold], image[false], boxes["predicted"][false]
        confused: tuple[list, list, list] = ([], [], [])
        for gold_row, false_row, overlap in pair_chunks(*sides, minimum_iou=min(level, POOR_IOU)):
            gold_row, false_row = gold[gold_row], false[false_row]
            found = _reason_of_pair(label[gold_row] == label[false_row], overlap, level)
            np.minimum.at(reason, false_row, found)
            np.minimum.at(reason, gold_row, found)  # that of a matched box stays -1
            leftovers = (outcome[gold_row] == FN) & reaches(overlap, level)
            for part, column in zip(confused, (gold_row, false_row, overlap), strict=True):
                part.append(column[leftovers])
        gold_row, false_row = _partners(*map(joined, confused), boxes, label)
        partner[gold_row], partner[false_row] = label[false_row], label[gold_row]
    at = matches.columns.get_loc("outcome") + 1
    explained = matches.copy(deep=False)
    explained.insert(at, "reason", categorical(reason, list(REASONS)))
    explained.insert(at + 1, "confused_with", pd.Categorical.from_codes(partner, dtype=matches["class"].dtype))
    return explained


def error_counts(benchmark: Benchmark, explained: pd.DataFrame, *, iou: Sequence[float] = IOU_THRESHOLDS) -> pd.DataFrame:
    """How many false and missed boxes have which reason, for every model, scope, threshold and class.

    Summed over reasons they are the fp and fn of :func:`evalkit.metrics.scores`. In the view ``all`` the gold of unread and
    missing answers is ``missed``.

    Parameters
    ----------
    explained : table of :func:`explain`
    iou : the thresholds that get rows in the view ``all`` where ``explained`` is empty

    Returns
    -------
    DataFrame with the columns :data:`ERROR_COLUMNS`, one row for each count above 0; ``domain`` is empty for a class
    without one.
    """
    rows = _with_unanswered(benchmark, explained, iou)
    counts = _tally(benchmark, rows[rows["outcome"] != "tp"], ["class", "outcome", "reason"])
    domain = dict(zip(benchmark.classes["class_name"], benchmark.classes["domain"], strict=True))
    return counts.assign(domain=[domain.get(name, "") for name in counts["class"]])[ERROR_COLUMNS]


def confusion(benchmark: Benchmark, explained: pd.DataFrame, *, iou: Sequence[float] = IOU_THRESHOLDS) -> pd.DataFrame:
    """Which gold class was predicted as which, for every model, scope and threshold, in boxes.

    Matched pairs stand on the diagonal. Pairs of a missed and a false box that reach the threshold (see :func:`explain`) stand
    beside it; what is left has nothing (NaN) on the other side. So the rows of a gold class add up to its number of gold boxes,
    tp + fn, and those of a predicted class to its number of predicted boxes, tp + fp.

    Returns
    -------
    DataFrame with the columns :data:`CONFUSION_COLUMNS`, one row for each count above 0.
    """
    rows = _with_unanswered(benchmark, explained, iou)
    rows = rows[(rows["outcome"] != "fp") | rows["confused_with"].isna()]  # a pair of leftovers is counted at its gold box
    sides = {
        "gold": rows["class"].where(rows["outcome"] != "fp"),
        "predicted": rows["class"].where(rows["outcome"] != "fn", rows["confused_with"]),
    }
    return _tally(benchmark, rows.assign(**sides), ["gold", "predicted"])[CONFUSION_COLUMNS]


def worst_images(benchmark: Benchmark, counts: pd.DataFrame) -> pd.DataFrame:
    """The images on which a model has false or missed boxes, the worst first, for every model and threshold.

    Only valid answers are looked at. Images are in the order of fp + fn, then of fn, then of their ids.

    Parameters
    ----------
    counts : table of :func:`evalkit.counts.count`

    Returns
    -------
    DataFrame with the columns :data:`IMAGE_COLUMNS`.
    """
    rows = counts[(counts["task"] == "localisation") & (counts["relation"] == "exact")]
    model, image = (rows[name].cat.codes.to_numpy() for name in ("model", "image_id"))
    valid = benchmark.valid[model, image]
    level, levels = pd.factorize(rows["iou"], sort=True)
    shape = len(benchmark.models), len(levels), len(benchmark.images)
    cells, cell = _cells([codes[valid] for codes in (model, level, image)], shape)
    sums = {name: np.bincount(cell, rows[name].to_numpy()[valid], len(cells)).astype(int) for name in OUTCOMES}
    model, level, image = np.unravel_index(cells, shape)
    place = np.empty(len(benchmark.images), np.int64)
    place[rows["image_id"].cat.categories.argsort()] = np.arange(len(place))
    wrong = sums["fp"] + sums["fn"]
    order = np.lexsort([place[image], -sums["fn"], -wrong, level, model])
    order = order[wrong[order] > 0]
    columns = {
        "model": categorical(model, benchmark.models),
        "iou": np.asarray(levels)[level],
        "image_id": pd.Categorical.from_codes(image, dtype=rows["image_id"].dtype),
        **sums,
    }
    return pd.DataFrame(columns).iloc[order].reset_index(drop=True)[IMAGE_COLUMNS]


def _reason_of_pair(same_class: np.ndarray, overlap: np.ndarray, level: float) -> np.ndarray:
    """The reason that a gold and a false box give to each other, or a number above all reasons."""
    near, poor = reaches(overlap, level), same_class & reaches(overlap, POOR_IOU)
    found = np.select([same_class & near, near, poor], [DUPLICATE, WRONG_CLASS, POOR], len(REASONS))
    return found.astype(np.int8)


def _partners(
    gold_row: np.ndarray, false_row: np.ndarray, overlap: np.ndarray, boxes: dict[str, np.ndarray], label: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the pairs of a maximum matching of missed and false boxes, of those that overlap most."""
    golds, left = compressed(gold_row, len(label))
    falses, right = compressed(false_row, len(label))
    ranks = _rank(boxes["gold"][golds], label[golds]), _rank(boxes["predicted"][falses], label[falses])
    match = best_matching(left, right, overlap, *ranks)
    return golds[match >= 0], falses[match[match >= 0]]


def _rank(boxes: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Rank of each box by its coordinates, then its class."""
    rank = np.empty(len(label), np.int64)
    rank[np.lexsort([label, *boxes.T[::-1]])] = np.arange(len(label))
    return rank


def _with_unanswered(benchmark: Benchmark, explained: pd.DataFrame, iou: Sequence[float]) -> pd.DataFrame:
    """The explained matches and, as missed, the gold boxes of images without a valid answer: what every scope is cut from."""
    levels = explained["iou"].unique() if len(explained) else thresholds(iou)
    gold = benchmark.gold
    model, row = np.nonzero(~benchmark.valid[:, gold["image_id"].cat.codes])
    model, row = np.tile(model, len(levels)), np.tile(row, len(levels))
    missed = {
        "model": categorical(model, benchmark.models),
        "iou": np.repeat(levels, len(row) // len(levels)),
        "image_id": gold["image_id"].array[row],
        "class": gold["class"].array[row],
        "outcome": categorical(np.full(len(row), FN), OUTCOMES),
        "reason": categorical(np.full(len(row), MISSED), list(REASONS)),
        "confused_with": pd.Categorical.from_codes(np.full(len(row), -1), dtype=gold["class"].dtype),
    }
    return pd.concat([explained[list(missed)], pd.DataFrame(missed)], ignore_index=True)


def _tally(benchmark: Benchmark, rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The number of rows of each model, threshold and values of the columns ``names``, in each scope."""
    model, image = (rows[name].cat.codes.to_numpy() for name in ("model", "image_id"))
    level, levels = pd.factorize(rows["iou"], sort=True)
    dtypes = [rows[name].dtype for name in names]
    shape = len(benchmark.models), len(levels), *(len(dtype.categories) + 1 for dtype in dtypes)
    codes = [rows[name].cat.codes.to_numpy() for name in names]
    codes = [np.where(code < 0, size - 1, code) for code, size in zip(codes, shape[2:], strict=True)]  # none comes last
    cells, cell = _cells([model, level, *codes], shape)
    parts = []
    for scope, mask in scopes(benchmark).items():
        count = np.bincount(cell[mask[model, image]], minlength=len(cells))
        of_model, of_level, *of_names = np.unravel_index(cells[count > 0], shape)
        columns = {"model": categorical(of_model, benchmark.models), "scope": scope, "iou": np.asarray(levels)[of_level]}
        for name, code, dtype in zip(names, of_names, dtypes, strict=True):
            columns[name] = pd.Categorical.from_codes(np.where(code == len(dtype.categories), -1, code), dtype=dtype)
        parts.append(pd.DataFrame({**columns, "count": count[count > 0]}))
    table = pd.concat(parts, ignore_index=True)
    return table.sort_values("model", kind="stable", ignore_index=True)


def _cells(codes: Sequence[np.ndarray], shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The different combinations of codes, as flat numbers in this shape, and the position of each row among them."""
    if not len(codes[0]):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return compressed(np.ravel_multi_index(codes, shape), int(np.prod(shape)))
