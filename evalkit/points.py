"""The point protocol: what an answer hits, as four integers a sample (P, G, M, H), and the counts that follow from them.

P is the number of points in the answer, G the number of targets, M the number of targets that are covered, H the number of
points that hit an acceptable region. M makes recall, H the non-strict precision; they must not be interchanged: M counts
targets, of which ten points on one target cover one, and H counts points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from evalkit.point_benchmarks import NO_OBJECT, PointBenchmark
from evalkit.tables import DataError, Finding

TIE = 1e-6  # pixels by which two sums of distances may differ and yet be taken as equal
ABOUT = ["model", "benchmark", "sample_id", "subset", "state", "reason", "scored", "answer_correct"]
EVIDENCE = ["predicted_count", "gt_count", "matched_count", "raw_hit_count"]
STRICT = ["strict_tp", "strict_fp", "strict_fn"]
NON_STRICT = [f"non_strict_{name}" for name in ("precision_hits", "precision_predicted_points", "recall_tp", "recall_fn")]
STATES = ["points", "empty", "answered", "unparseable", "missing"]  # `answered` is a yes or a no


class Hits(NamedTuple):
    """M and H of one answer, and for each point in range whether it hit."""

    matched: int
    raw: int
    points: np.ndarray


def pixels(points: Sequence[Sequence[float]], *, scale: float | None, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The pixels of points, and which of the points lie in range.

    A pixel is ``min(width - 1, int(x / scale * width))``, so ``scale`` itself is the last pixel; y alike. A point out of range
    (below 0, above the scale) has no pixel: it is not moved to the edge.

    Parameters
    ----------
    points : pairs (x, y)
    scale : the value at the far edge; None for pixels
    size : width and height of the image

    Returns
    -------
    found : whole numbers of shape (points in range, 2), x first
    in_range : booleans of shape (points,)
    """
    values, size = np.asarray(points, float).reshape(-1, 2), np.asarray(size)
    far = size if scale is None else scale
    in_range = ((values >= 0) & (values <= far)).all(axis=1)
    values = values[in_range]
    found = values if scale is None else values / scale * size
    return np.minimum(size - 1, found.astype(np.int64)), in_range


def hits(found: np.ndarray, regions: Sequence[np.ndarray], *, targets: int, gold: np.ndarray | None = None) -> Hits:
    """M and H of points that are given as pixels in range.

    H is the number of points inside any region, each counted once. M is min(H, ``targets``); where ``gold`` has a point for
    each region, M is the number of points inside the region of the gold point that they are assigned to (:func:`assign`).

    Parameters
    ----------
    found : pixels, whole numbers of shape (points, 2), x first
    regions : booleans of shape (height, width) each
    targets : G
    gold : floats of shape (regions, 2)
    """
    x, y = found.T
    inside = np.array([region[y, x] for region in regions], bool).reshape(len(regions), len(found))
    hit = inside.any(axis=0)
    raw = int(hit.sum())
    if gold is None:
        return Hits(min(raw, targets), raw, hit)
    point, target = assign(found, gold, inside)
    return Hits(int(inside[target, point].sum()), raw, hit)


def assign(found: np.ndarray, gold: np.ndarray, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points and gold points, one to one, with the least sum of Euclidean distances; as many pairs as can be.

    Of several such assignments it is one with the most points inside the region of their partner (``inside``, booleans of shape
    (gold, points)), so that the number of these does not depend on the order of the points. H. W. Kuhn, "The Hungarian method
    for the assignment problem", 1955.
    """
    distance = np.hypot(*(found[:, None, axis] - gold[None, :, axis] for axis in (0, 1)))
    bonus = TIE / max(len(gold), 1)  # so small that all bonuses together cannot make up for a longer way
    return linear_sum_assignment(distance - bonus * inside.T)


def count_samples(evidence: pd.DataFrame, benchmark: PointBenchmark) -> pd.DataFrame:
    """The counts of samples from their evidence, by the rules of one benchmark.

    Strict counts of an ordinary sample: TP = min(M, P, G), FP = P − TP, FN = G − TP. Rules that go before it:

    - where an exact count is demanded and P differs from G: TP 0, FP P, FN G, and no hit for the non-strict precision;
    - no object is there: an explicit empty answer has TP 1, any other FP P and FN 1; neither has a hit;
    - an explicit empty answer where objects are there: TP 0, FP 1, FN G.

    The non-strict precision is the sum of hits / the sum of P; recall is the strict one.

    Parameters
    ----------
    evidence : DataFrame with ``sample_id``, ``subset``, ``state`` and the columns EVIDENCE

    Returns
    -------
    DataFrame with the columns STRICT and NON_STRICT

    Raises
    ------
    DataError
        For M above min(P, G) or H, H above P, a negative number, G of 0, or points in an answer without any.
    """
    _check(evidence, benchmark)
    p, g, m, h = (evidence[name].to_numpy(np.int64) for name in EVIDENCE)
    empty = (evidence["state"] == "empty").to_numpy()
    gated = (evidence["subset"] == benchmark.counting).to_numpy() & bool(benchmark.counting)
    nothing = (evidence["subset"] == NO_OBJECT).to_numpy() & (benchmark.target == "masks")
    miscounted = gated & (p != g)
    tp = np.where(miscounted, 0, np.minimum(np.minimum(m, p), g))
    tp = np.where(nothing, empty, tp)
    fp = np.where(nothing, p, p - tp) + (empty & ~nothing & ~gated)
    hit = np.where(miscounted | nothing, 0, h)
    values = [tp, fp, g - tp, hit, p, tp, g - tp]
    return pd.DataFrame(dict(zip([*STRICT, *NON_STRICT], values, strict=True)), index=evidence.index)


def counted(table: pd.DataFrame, benchmark: PointBenchmark) -> pd.DataFrame:
    """The table of samples with its counts, from ABOUT and EVIDENCE; 0 for what is not scored, and for yes or no.

    Raises DataError as :func:`evalkit.points.count_samples` does.
    """
    table = table.astype({name: str for name in ("sample_id", "subset", "reason")} | {"answer_correct": "boolean"})
    table["state"] = pd.Categorical(table["state"], categories=STATES)
    has_counts = table["scored"] & ~table["subset"].isin(benchmark.binary)
    counts = count_samples(table[has_counts], benchmark).reindex(table.index, fill_value=0)
    return pd.concat([table, counts], axis=1)


def _check(evidence: pd.DataFrame, benchmark: PointBenchmark) -> None:
    p, g, m, h = (evidence[name].to_numpy(np.int64) for name in EVIDENCE)
    pointless = (evidence["state"] != "points").to_numpy()
    faults = {
        "M > min(P, G): more targets are covered than there are points or targets": m > np.minimum(p, g),
        "H > P: more points hit than there are": h > p,
        "M > H: more targets are covered than points hit": m > h,
        "a count is negative": np.minimum(np.minimum(p, m), h) < 0,
        "G must be at least 1": g < 1,
        "P must be 0 where no point was read, and at least 1 elsewhere": pointless != (p == 0),
    }
    findings = []
    for text, wrong in faults.items():
        for row in np.flatnonzero(wrong):
            place, got = f"sample {evidence['sample_id'].iloc[row]}", f"P {p[row]}, G {g[row]}, M {m[row]}, H {h[row]}"
            findings.append(Finding(benchmark.name, place, "", "points.evidence", f"{text} ({got})"))
    if findings:
        raise DataError(findings)
