"""TP, FP and FN per image and class: the hinge between files and scores.

Counts are additive: every score, domain, scope and interval is a sum over the rows of the counts table. Only valid responses
hold boxes, so the gold of any other image is counted as missed; a scope then chooses the images (see
:func:`evalkit.metrics.scores`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from evalkit.boxes import candidate_pairs, reaches
from evalkit.matching import best_matching, compressed, maximum_matching
from evalkit.tables import BOX_COLUMNS, Benchmark, EvalkitError, categorical

IOU_THRESHOLDS = (0.30, 0.40, 0.50)
HEADLINE_IOU = 0.50
TASKS = ["classification", "localisation"]
RELATIONS = ["exact", "semantic"]
OUTCOMES = ["tp", "fp", "fn"]


def thresholds(iou: Sequence[float]) -> list[float]:
    """Check IoU thresholds and return them in ascending order, each once.

    Raises EvalkitError if there is none, or one is not above 0 and at most 1.
    """
    if isinstance(iou, str) or not isinstance(iou, Iterable):
        raise EvalkitError(f"iou must be a list of thresholds, not {iou!r}")
    for value in iou:
        if not 0 < value <= 1:
            raise EvalkitError(f"iou must be above 0 and at most 1, not {value}")
    if not len(iou):
        raise EvalkitError("iou needs at least one threshold")
    return sorted({float(value) for value in iou})


def overlaps(benchmark: Benchmark, *, iou: Sequence[float] = IOU_THRESHOLDS) -> pd.DataFrame:
    """All pairs of a gold and a predicted box of one image and class whose IoU is at least the smallest threshold.

    Returns
    -------
    DataFrame ``model, gold_row, predicted_row, overlap`` in the order of models; rows number ``benchmark.gold`` and
    ``benchmark.predictions``.
    """
    lowest = thresholds(iou)[0]
    gold, predictions = benchmark.gold, benchmark.predictions
    gold_row, predicted_row, overlap = candidate_pairs(
        _key(gold), as_boxes(gold), _key(predictions), as_boxes(predictions), minimum_iou=lowest
    )
    model = predictions["model"].cat.codes.to_numpy()[predicted_row]
    columns = {"gold_row": gold_row, "predicted_row": predicted_row, "overlap": overlap}
    table = pd.DataFrame({"model": categorical(model, benchmark.models), **columns}, copy=False)
    table.attrs["lowest"] = lowest
    return table


def count(benchmark: Benchmark, *, iou: Sequence[float] = IOU_THRESHOLDS, pairs: pd.DataFrame | None = None) -> pd.DataFrame:
    """TP, FP and FN of every model, for class sets and for boxes at each IoU threshold, per image and class.

    Classification compares the set of predicted classes with the set of gold classes. Localisation matches boxes of one image
    and class one-to-one, as many as can be; what is left is FP and FN.

    Parameters
    ----------
    iou : thresholds for localisation
    pairs : the table of :func:`overlaps` for these thresholds, if it is there already

    Returns
    -------
    DataFrame ``model, task, iou, relation, image_id, class, tp, fp, fn``, a row for each image and class that has any of
    them; ``iou`` is NaN for classification. For localisation tp + fn is the number of gold boxes and tp + fp that of
    predicted boxes, for every image and class.
    """
    levels = thresholds(iou)
    pairs = _pairs(benchmark, levels, pairs)
    gold_key, every_key = _key(benchmark.gold), _key(benchmark.predictions)
    n_classes = len(benchmark.gold["class"].cat.categories)
    n_cells = len(benchmark.images) * n_classes
    matched = {level: _matched_gold(benchmark, pairs, level) for level in levels}
    parts: list[tuple] = []
    for code, rows in _models(benchmark):
        predicted_key = every_key[rows]
        keys, cell = compressed(np.concatenate([gold_key, predicted_key]), n_cells)
        n_gold = np.bincount(cell[: len(gold_key)], minlength=len(keys))
        n_predicted = np.bincount(cell[len(gold_key) :], minlength=len(keys))
        image, label = np.divmod(keys, n_classes)
        in_gold, in_predicted = n_gold > 0, n_predicted > 0
        parts.append((code, np.nan, image, label, in_gold & in_predicted, in_predicted & ~in_gold, in_gold & ~in_predicted))
        for level in levels:
            tp = np.bincount(cell[: len(gold_key)].compress(matched[level][code]), minlength=len(keys))
            parts.append((code, level, image, label, tp, n_predicted - tp, n_gold - tp))
    return _counts_table(benchmark, parts)


def match(benchmark: Benchmark, *, iou: Sequence[float] = IOU_THRESHOLDS, pairs: pd.DataFrame | None = None) -> pd.DataFrame:
    """The matched pairs, the missed gold boxes and the false predicted boxes, at each IoU threshold.

    Of the maximum matchings it is the one with the largest sum of IoU; remaining ties go by the boxes' coordinates, never by
    the order of rows. Images whose response is not valid are left out.

    Returns
    -------
    DataFrame ``model, iou, image_id, class, outcome, overlap``, then the edges ``gold_x_min`` to ``gold_y_max`` and
    ``predicted_x_min`` to ``predicted_y_max``, and ``score``: one row for each ``tp`` (both boxes and their IoU), ``fp`` (no
    gold box) and ``fn`` (no predicted box); what a row lacks is NaN.
    """
    levels = thresholds(iou)
    pairs = _pairs(benchmark, levels, pairs)
    gold, predictions = benchmark.gold, benchmark.predictions
    gold_rank, predicted_rank = coordinate_rank(gold), coordinate_rank(predictions)
    valid = benchmark.valid
    gold_image = gold["image_id"].cat.codes.to_numpy()
    model_of_pair = pairs["model"].cat.codes.to_numpy()
    tables = []
    for code, rows in _models(benchmark):
        low, high = np.searchsorted(model_of_pair, [code, code + 1])
        gold_row, predicted_row, overlap = _columns(pairs, low, high)
        scored = np.flatnonzero(valid[code][gold_image])
        for level in levels:
            near = reaches(overlap, level)
            edges = gold_row[near], predicted_row[near] - rows.start, overlap[near]
            found = best_matching(*edges, gold_rank, predicted_rank[rows])
            matched = found[edges[0]] == edges[1]
            gold_matched, predicted_matched, shared = (column[matched] for column in edges)
            missed = scored[found[scored] < 0]
            false = np.setdiff1d(np.arange(rows.stop - rows.start), predicted_matched)
            none = np.full(len(missed) + len(false), -1)
            gold_side = np.r_[gold_matched, none[: len(false)], missed]
            predicted_side = np.r_[predicted_matched + rows.start, false + rows.start, none[: len(missed)]]
            outcome = np.repeat([0, 1, 2], [len(gold_matched), len(false), len(missed)])
            shared = np.r_[shared, np.full(len(none), np.nan)]
            tables.append(_match_table(benchmark, code, level, gold_side, predicted_side, outcome, shared))
    if not tables:
        empty = np.empty(0, int)
        return _match_table(benchmark, 0, np.nan, empty, empty, empty, empty.astype(float)).iloc[:0]
    return pd.concat(tables, ignore_index=True)


def _matched_gold(benchmark: Benchmark, pairs: pd.DataFrame, level: float) -> np.ndarray:
    """Whether each gold box is matched at a threshold, shape (models, gold boxes); one graph for all models."""
    shape = len(benchmark.models), len(benchmark.gold)
    near = reaches(pairs["overlap"].to_numpy(), level)
    left = pairs["model"].cat.codes.to_numpy().compress(near).astype(np.int32 if np.prod(shape) < 2**31 else np.int64)
    left *= shape[1]
    left += pairs["gold_row"].to_numpy().compress(near)
    right = pairs["predicted_row"].to_numpy().compress(near)
    match = maximum_matching(left, right, shape[0] * shape[1], len(benchmark.predictions))
    return (match >= 0).reshape(shape)


def _pairs(benchmark: Benchmark, levels: list[float], pairs: pd.DataFrame | None) -> pd.DataFrame:
    if pairs is not None and pairs.attrs.get("lowest", 0) > levels[0]:
        raise EvalkitError(f"pairs hold IoU from {pairs.attrs['lowest']} on, which is not enough for iou {levels[0]}")
    return overlaps(benchmark, iou=levels) if pairs is None else pairs


def _columns(pairs: pd.DataFrame, low: int, high: int) -> list[np.ndarray]:
    return [pairs[name].to_numpy()[low:high] for name in ("gold_row", "predicted_row", "overlap")]


def as_boxes(table: pd.DataFrame) -> np.ndarray:
    return np.column_stack([table[name] for name in BOX_COLUMNS])


def _key(boxes: pd.DataFrame) -> np.ndarray:
    """One integer for image and class."""
    classes = boxes["class"].cat
    return boxes["image_id"].cat.codes.to_numpy(np.int64) * len(classes.categories) + classes.codes.to_numpy(np.int64)


def _models(benchmark: Benchmark) -> Iterator[tuple[int, slice]]:
    """Code of each model and the rows of its predictions, which stand together."""
    codes = benchmark.predictions["model"].cat.codes.to_numpy()
    edges = np.searchsorted(codes, np.arange(len(benchmark.models) + 1))
    for code, (low, high) in enumerate(itertools.pairwise(edges)):
        yield code, slice(int(low), int(high))


def _counts_table(benchmark: Benchmark, parts: list[tuple]) -> pd.DataFrame:
    """Stack (model code, threshold, image code, class code, tp, fp, fn) into the counts table."""
    model, level, image, label, *outcomes = zip(*parts, strict=True) if parts else ((),) * 7
    sizes = [len(one) for one in image]
    level = np.repeat(np.array(level, float), sizes)
    image, label = (
        pd.Categorical.from_codes(_stacked(codes, benchmark.gold[name].cat.codes.dtype), dtype=benchmark.gold[name].dtype)
        for name, codes in (("image_id", image), ("class", label))
    )
    return pd.DataFrame(
        {
            "model": categorical(np.repeat(np.array(model, np.int16), sizes), benchmark.models),
            "task": categorical((~np.isnan(level)).astype(np.int8), TASKS),
            "iou": level,
            "relation": categorical(np.zeros(len(level), np.int8), RELATIONS),
            "image_id": image,
            "class": label,
            **{name: _stacked(column, np.int32) for name, column in zip(OUTCOMES, outcomes, strict=True)},
        },
        copy=False,
    )


def _stacked(parts: Sequence[np.ndarray], dtype: np.dtype | type) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *parts], dtype=dtype, casting="unsafe")


def _match_table(
    benchmark: Benchmark,
    model: int,
    level: float,
    gold_row: np.ndarray,
    predicted_row: np.ndarray,
    outcome: np.ndarray,
    overlap: np.ndarray,
) -> pd.DataFrame:
    """Rows of the matches table from row numbers of gold and predictions, -1 for none."""
    gold, predictions = benchmark.gold, benchmark.predictions
    columns = {}
    for name in ("image_id", "class"):
        code = np.full(len(gold_row), -1)
        for table, rows in ((gold, gold_row), (predictions, predicted_row)):
            code[rows >= 0] = table[name].cat.codes.to_numpy()[rows[rows >= 0]]
        columns[name] = pd.Categorical.from_codes(code, dtype=gold[name].dtype)
    boxes = {}
    sides = (("gold", gold, gold_row, BOX_COLUMNS), ("predicted", predictions, predicted_row, [*BOX_COLUMNS, "score"]))
    for side, table, rows, names in sides:
        for name in names:
            values = np.full(len(rows), np.nan)
            values[rows >= 0] = table[name].to_numpy()[rows[rows >= 0]]
            boxes[name if name == "score" else f"{side}_{name}"] = values
    rows = pd.DataFrame(
        {
            "model": categorical(np.full(len(outcome), model), benchmark.models),
            "iou": level,
            **columns,
            "outcome": categorical(outcome, OUTCOMES),
            "overlap": overlap,
            **boxes,
        }
    )
    coordinates = [*(f"gold_{name}" for name in BOX_COLUMNS), *(f"predicted_{name}" for name in BOX_COLUMNS), "score"]
    return rows.sort_values(["image_id", "class", "outcome", *coordinates], ignore_index=True)


def coordinate_rank(boxes: pd.DataFrame) -> np.ndarray:
    """Rank of each box by its coordinates, then its score; a total order that does not know the order of rows."""
    columns = [boxes[name].to_numpy() for name in (*BOX_COLUMNS, "score") if name in boxes]
    rank = np.empty(len(boxes), np.int64)
    rank[np.lexsort(columns[::-1])] = np.arange(len(boxes))
    return rank
