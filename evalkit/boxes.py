"""Area, IoU, and the candidate pairs of a whole data set in one pass.

Boxes are ``[x_min, y_min, x_max, y_max]`` in continuous pixels, half-open: the area is width times height, with no "+1".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from evalkit.matching import compressed

TOLERANCE = 1e-9  # a ratio that is the threshold in decimals is a match whatever the rounding
CHUNK = 1 << 15  # pairs held at a time before those below the threshold are dropped; few enough for a processor's cache


def area(boxes: np.ndarray) -> np.ndarray:
    """Area of boxes of shape (n, 4), in square pixels.

    >>> area(np.array([[0, 0, 10, 5.0]]))
    array([50.])
    """
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def iou(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union of the boxes of two arrays of shape (n, 4), row by row.

    IoU = \\|a ∩ b\\| / \\|a ∪ b\\|, from 0 to 1, in float64 and never rounded. A box without area has IoU 0 with everything,
    itself too.

    >>> iou(np.array([[0, 0, 10, 10.0]]), np.array([[0, 0, 10, 5.0]]))
    array([0.5])
    """
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        width = np.minimum(a[:, 2], b[:, 2]) - np.maximum(a[:, 0], b[:, 0])
        height = np.minimum(a[:, 3], b[:, 3]) - np.maximum(a[:, 1], b[:, 1])
        intersection = np.maximum(width, 0) * np.maximum(height, 0)
        union = area(a) + area(b) - intersection
        return np.where(intersection > 0, intersection / union, 0.0)


def reaches(overlap: np.ndarray, threshold: float) -> np.ndarray:
    """Whether an IoU is at least the threshold: ``overlap >= threshold - 1e-9``."""
    return overlap >= threshold - TOLERANCE


def candidate_pairs(
    gold_key: np.ndarray,
    gold_boxes: np.ndarray,
    predicted_key: np.ndarray,
    predicted_boxes: np.ndarray,
    *,
    minimum_iou: float,
    chunk: int = CHUNK,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of a gold and a predicted box with one key (image and class) and an IoU of at least ``minimum_iou``.

    A join on the key, then one IoU pass; at most ``chunk`` pairs (or those of one predicted box) are held at a time.

    Parameters
    ----------
    gold_key, predicted_key : integers from 0 on of shape (n,) and (m,), equal where boxes may match
    gold_boxes, predicted_boxes : floats of shape (n, 4) and (m, 4)

    Returns
    -------
    gold_row, predicted_row : row numbers of shape (pairs,), in the order of the predicted rows
    overlap : their IoU
    """
    parts: tuple[list, list, list] = ([], [], [])
    for found in pair_chunks(gold_key, gold_boxes, predicted_key, predicted_boxes, minimum_iou=minimum_iou, chunk=chunk):
        for part, column in zip(parts, found, strict=True):
            part.append(column)
    return tuple(map(joined, parts))


def pair_chunks(
    gold_key: np.ndarray,
    gold_boxes: np.ndarray,
    predicted_key: np.ndarray,
    predicted_boxes: np.ndarray,
    *,
    minimum_iou: float,
    chunk: int = CHUNK,
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The pairs of :func:`candidate_pairs` a chunk at a time, at least one, for what need not hold all of them."""
    every_key = np.concatenate([gold_key, predicted_key])
    keys, code = compressed(every_key, int(every_key.max(initial=0)) + 1)
    gold_code, predicted_code = code[: len(gold_key)], code[len(gold_key) :]
    gold_order, n_gold = np.argsort(gold_code), np.bincount(gold_code, minlength=len(keys))
    size = n_gold[predicted_code]
    busy = np.flatnonzero(size)  # most boxes have no partner at all
    start, size = (np.cumsum(n_gold) - n_gold)[predicted_code[busy]], size[busy]
    end = np.cumsum(size)
    total = int(end[-1]) if len(end) else 0
    if total <= chunk:
        cuts = np.array([0, len(size)])
    else:
        cuts = np.unique(np.r_[np.searchsorted(end, np.arange(0, total, chunk)), len(size)])
    for low, high in itertools.pairwise(cuts):
        count = size[low:high]
        predicted_row = np.repeat(busy[low:high], count)
        offset = np.repeat(start[low:high] - (np.cumsum(count) - count), count)
        gold_row = gold_order[np.arange(len(offset)) + offset]
        overlap = iou(gold_boxes.take(gold_row, axis=0), predicted_boxes.take(predicted_row, axis=0))
        keep = reaches(overlap, minimum_iou)
        yield gold_row.compress(keep).astype(np.int32), predicted_row.compress(keep).astype(np.int32), overlap.compress(keep)


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """The parts in one array; the list is emptied, so that a large result is not held twice."""
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
    parts.clear()
    return joined
