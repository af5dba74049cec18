"""What annotators marked as additive numbers, and every statistic of agreement from their sums.

Every pair of annotators of an image is matched once. What follows are sums over images of additive numbers: how many of an
image's annotators marked a class, and the square of it; pairs of sets of classes; matched boxes. The coefficients of
:mod:`evalkit.coefficients` divide last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import coo_array, csr_array

from evalkit.boxes import candidate_pairs
from evalkit.coefficients import (
    COEFFICIENTS,
    Parts,
    Totals,
    coefficient,
    cohen_parts,
    expected_set_distance,
    nominal_alpha_parts,
    set_similarity,
)
from evalkit.counts import HEADLINE_IOU, coordinate_rank, thresholds
from evalkit.first_pass import FirstPass, distinct_sets
from evalkit.matching import best_matching
from evalkit.metrics import divide
from evalkit.tables import BOX_COLUMNS


class Marks(NamedTuple):
    """A first pass as arrays; ``pairs`` are all pairs of annotators of one image, as rows of ``seen``, a before b by name.

    ``pools`` says which classes each row of a table pools, shape (rows, classes): overall, domains, then single classes.
    """

    image: np.ndarray  # of each row of seen
    person: np.ndarray
    present: csr_array  # (seen, classes): 1 where marked
    sets: list[tuple[np.ndarray, np.ndarray]]  # overall and per domain: the set of each row of seen, and the sets' members
    a: np.ndarray  # (pairs,) row of seen
    b: np.ndarray
    unlike: dict[str, np.ndarray]  # (pairs, levels): 1 - equal, 1 - Jaccard, 1 - MASI similarity
    boxes: csr_array  # (pairs, classes): boxes of both
    matched: csr_array  # (pairs, classes): matched within the class
    overlap: csr_array  # (pairs, classes): sum of their IoU
    free: np.ndarray  # (pairs,): matched whatever the class
    equal: np.ndarray  # (pairs,): of these, the pairs of equal class
    rows: pd.DataFrame
    pools: np.ndarray


def mark(first: FirstPass, *, iou: float = HEADLINE_IOU) -> Marks:
    """Compare every pair of annotators on every image, once: their class sets, and their boxes matched at ``iou``.

    Boxes are matched twice: within the class (as many pairs as can be, among those the largest sum of IoU), and whatever the
    class (as many pairs as can be, among those the most of equal class).
    """
    (iou,) = thresholds([iou])
    rows, pools = agreement_rows(first)
    levels = pools[: 1 + len(first.domains)]
    image, person = (first.seen[name].cat.codes.to_numpy(np.int64) for name in ("image_id", "annotator"))
    owner, label = first.boxes["seen"].to_numpy(), first.boxes["class"].cat.codes.to_numpy(np.int64)
    shape = len(image), len(first.classes)
    counts = csr_array((np.ones(len(owner)), (owner, label)), shape=shape)  # boxes of each row and class
    present = counts.astype(bool).astype(float)
    sets = []
    for pool in levels:
        inside = pool[label]
        sets.append(distinct_sets(owner[inside], label[inside], *shape))
    a, b = _pairs(image)

    pooled = csr_array(levels.T.astype(float))
    size = (present @ pooled).toarray()
    shared = (present[a].multiply(present[b]).tocsr() @ pooled).toarray()
    jaccard, similarity = set_similarity(shared, size[a], size[b])
    equal = (shared == size[a]) & (shared == size[b])
    unlike = {"exact_match": 1.0 - equal, "mean_jaccard": 1 - jaccard, "masi_alpha": 1 - similarity}
    return Marks(
        image, person, present, sets, a, b, unlike, counts[a] + counts[b], *_match(first, a, b, owner, label, iou), rows, pools
    )


def agreement_rows(first: FirstPass) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows ``level, label`` of a table of agreement, and the classes that each pools, shape (rows, classes)."""
    domain = first.classes["domain"].to_numpy(object)
    rows = [("overall", "overall", np.ones(len(domain), bool))]
    rows += [("domain", name, domain == name) for name in first.domains]
    rows += [
        ("class", name, one) for name, one in zip(first.classes["class_name"], np.eye(len(domain), dtype=bool), strict=True)
    ]
    return pd.DataFrame([row[:2] for row in rows], columns=["level", "label"]), np.array([row[2] for row in rows])


def _pairs(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every two rows of ``seen`` of one image, whose rows stand together."""
    after = np.searchsorted(image, image, side="right") - np.arange(len(image)) - 1
    return np.repeat(np.arange(len(image)), after), ranges(np.arange(len(image)) + 1, after)


def ranges(start: np.ndarray, size: np.ndarray) -> np.ndarray:
    """``start[0], start[0] + 1, … (size[0] of them), start[1], …``"""
    return np.arange(size.sum()) + np.repeat(start - (np.cumsum(size) - size), size)


def _match(
    first: FirstPass, a: np.ndarray, b: np.ndarray, owner: np.ndarray, label: np.ndarray, iou: float
) -> tuple[csr_array, csr_array, np.ndarray, np.ndarray]:
    """``matched, overlap, free, equal`` of :class:`Marks`. A box is a node of its own in each pair that it takes part in."""
    boxes = first.boxes[BOX_COLUMNS].to_numpy()
    rank = coordinate_rank(first.boxes)
    start, end = (np.searchsorted(owner, np.arange(len(first.seen)), side=side) for side in ("left", "right"))
    sides = []
    for row in (a, b):
        size = (end - start)[row]
        sides.append((np.repeat(np.arange(len(row)), size), ranges(start[row], size)))
    (pair_a, box_a), (pair_b, box_b) = sides
    left, right, overlap = candidate_pairs(pair_a, boxes[box_a], pair_b, boxes[box_b], minimum_iou=iou)
    ranks = rank[box_a], rank[box_b]
    alike = label[box_a[left]] == label[box_b[right]]
    shape = len(a), len(first.classes)

    def chosen(left: np.ndarray, right: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return best_matching(left, right, weight, *ranks)[left] == right

    within = chosen(left[alike], right[alike], overlap[alike])
    row, shared = left[alike][within], overlap[alike][within]
    cell = pair_a[row], label[box_a[row]]
    free = chosen(left, right, alike.astype(float))
    return (
        csr_array((np.ones(len(row)), cell), shape=shape),
        csr_array((shared, cell), shape=shape),
        np.bincount(pair_a[left[free]], minlength=len(a)),
        np.bincount(pair_a[left[free & alike]], minlength=len(a)),
    )


# -- sums -------------------------------------------------------------------------------------------------------------


class Sums(NamedTuple):
    """What is added over the units (images, or blocks of them) of some rows of ``seen``: ``matrix`` has a row a number.

    ``columns`` says where each kind of number stands; ``raters`` are the different numbers of annotators of an image.
    """

    matrix: csr_array  # (numbers, units)
    columns: dict[str, slice]
    raters: np.ndarray
    sets: list[np.ndarray]  # overall and per domain: the members of each set, booleans of shape (sets, classes)
    marked: np.ndarray  # (classes,): marked by some annotator; what overall and domain rows pool, in every replicate
    two: bool  # the same two annotators on every image


def sums_of(marks: Marks, rows: np.ndarray, unit: np.ndarray) -> Sums:
    """The additive numbers of the chosen ``rows`` of seen (a mask); ``unit`` is the unit of each image."""
    image, n_classes = marks.image[rows], marks.present.shape[1]
    units, compact = np.unique(unit[image], return_inverse=True)
    unit = np.full(len(unit), -1)
    unit[image] = compact
    m = np.bincount(image, minlength=len(unit))
    raters, kind = np.unique(m[m > 0], return_inverse=True)
    kind_of = np.full(len(m), -1)
    kind_of[m > 0] = kind
    people = np.unique(marks.person[rows])
    two = len(people) == 2 and len(raters) == 1 and raters[0] == 2
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    columns: dict[str, slice] = {}

    def add(name: str, of: np.ndarray, column: np.ndarray | int, value: np.ndarray | float, width: int) -> None:
        start = max((one.stop for one in columns.values()), default=0)
        value, column = (np.broadcast_to(one, of.shape) for one in (value, column))
        kept = value != 0
        parts.append((start + column[kept], unit[of[kept]], value[kept]))
        columns[name] = slice(start, start + width)

    def add_table(name: str, of: np.ndarray, table: csr_array) -> None:
        cells = coo_array(table)
        add(name, of[cells.row], cells.col, cells.data, table.shape[1])

    seen_images = np.flatnonzero(m)
    add("images", seen_images, kind_of[seen_images], 1.0, len(raters))
    marked = coo_array(marks.present[rows])
    used_classes = np.bincount(marked.col, minlength=n_classes) > 0
    key, count = np.unique(image[marked.row] * n_classes + marked.col, return_counts=True)
    cell = kind_of[key // n_classes] * n_classes + key % n_classes
    for name, power in (("k", count), ("k2", count**2)):
        add(name, key // n_classes, cell, power.astype(float), len(raters) * n_classes)
    if two:
        add_table("first", image[marks.person[rows] == people[0]], marks.present[rows & (marks.person == people[0])])

    kept = rows[marks.a] & rows[marks.b]
    of = marks.image[marks.a[kept]]
    add("pairs", of, 0, 1.0, 1)
    for name, table in marks.unlike.items():
        values = table[kept] * (2 / (m[of] - 1))[:, None] if name == "masi_alpha" else table[kept]
        add_table(name, of, csr_array(values))
    sets = []
    several = rows & (m[marks.image] > 1)
    for level, (which, members) in enumerate(marks.sets):
        mine = which[several]
        used = np.unique(mine)
        used = used[members[used].any(axis=1)]  # the empty set is what remains
        filled = np.isin(mine, used)
        at = np.searchsorted(used, mine[filled])
        add(f"sets {level}", marks.image[several][filled], at, 1.0, len(used))
        sets.append(members[used])
    for name in ("boxes", "matched", "overlap"):
        add_table(name, of, getattr(marks, name)[kept])
    for name in ("free", "equal"):
        add(name, of, 0, getattr(marks, name)[kept].astype(float), 1)
    column, of_unit, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    width = max(one.stop for one in columns.values())
    return Sums(csr_array((value, (column, of_unit)), shape=(width, len(units))), columns, raters, sets, used_classes, two)


def estimates(sums: Sums, numbers: np.ndarray, pools: np.ndarray) -> dict[str, np.ndarray]:
    """Every statistic, and the prevalence, from summed numbers of shape (replicates, numbers).

    Returns arrays of shape (replicates, rows), for the rows of ``pools`` in their order: statistics of sets have overall and
    domains only, ``box_alpha`` has overall. What is not defined is NaN.
    """
    part = {name: numbers[:, place] for name, place in sums.columns.items()}
    return {**_class_estimates(sums, part, pools), **_set_estimates(sums, part), **_box_estimates(part, pools)}


def _class_estimates(sums: Sums, part: dict[str, np.ndarray], pools: np.ndarray) -> dict[str, np.ndarray]:
    levels, n_classes = pools[: len(sums.sets)].astype(float), pools.shape[1]
    m, several = sums.raters.astype(float), sums.raters > 1
    images, k, k2 = part["images"], *(part[name].reshape(-1, len(m), n_classes) for name in ("k", "k2"))
    marked = k.sum(axis=1)
    apart = (m[:, None] * k - k2)[:, several]  # pairs of one who marked the class and one who did not
    of_pairs = m[several, None]
    positive, rated = k[:, several].sum(axis=1), images.sum(axis=1)[:, None]
    share = (k / m[:, None]).sum(axis=1)
    pairable, ratings = images[:, several].sum(axis=1)[:, None], (images[:, several] @ m[several])[:, None]
    totals = Totals(
        agreement=pairable - (2 * apart / (of_pairs * (of_pairs - 1))).sum(axis=1),
        pairable=np.broadcast_to(pairable, marked.shape),
        disagreement=(2 * apart / (of_pairs - 1)).sum(axis=1),
        margins=np.stack([positive, ratings - positive], axis=-1),
        shares=np.stack([share, rated - share], axis=-1),
        rated=np.broadcast_to(rated, marked.shape),
    )

    def spread(values: np.ndarray) -> np.ndarray:
        """Sums over the marked classes of overall and of each domain, then the classes one by one."""
        return np.concatenate([np.where(sums.marked, values, 0.0) @ levels.T, values], axis=1)

    found = {name: coefficient(Parts(*map(spread, parts(totals)))) for name, parts in COEFFICIENTS.items()}
    both = (k2 - k)[:, several].sum(axis=1)  # twice the pairs of two who marked the class
    found["cohen_kappa"] = np.full_like(found["fleiss_kappa"], np.nan)
    if sums.two:
        one = part["first"]
        cells = [both / 2, one - both / 2, marked - one - both / 2, rated - marked + both / 2]
        table = np.stack(cells, axis=-1).reshape(*marked.shape, 2, 2)
        found["cohen_kappa"] = coefficient(Parts(*map(spread, cohen_parts(table))))
    found["positive_agreement"] = divide(spread(both), spread(both + apart.sum(axis=1)), zero_division=np.nan)
    n_used = np.concatenate([sums.marked @ levels.T, np.ones(n_classes)])
    found["prevalence"] = divide(spread(marked), n_used * (images @ m)[:, None], zero_division=np.nan)
    return found


def _set_estimates(sums: Sums, part: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    pairs = part["pairs"]
    found = {name: divide(pairs - part[name], pairs, zero_division=np.nan) for name in ("exact_match", "mean_jaccard")}
    several = sums.raters > 1
    n = part["images"][:, several] @ sums.raters[several]
    expected = [expected_set_distance(part[f"sets {level}"], members, n) for level, members in enumerate(sums.sets)]
    expected = np.stack(expected, axis=1)
    return {**found, "masi_alpha": coefficient(Parts(expected - part["masi_alpha"], expected, expected))}


def _box_estimates(part: dict[str, np.ndarray], pools: np.ndarray) -> dict[str, np.ndarray]:
    boxes, matched, overlap = (part[name] @ pools.T for name in ("boxes", "matched", "overlap"))
    free, equal = part["free"], part["equal"]
    every = part["boxes"].sum(axis=1, keepdims=True)
    margins = np.concatenate([part["boxes"], every - 2 * free], axis=1)  # the last value is "no box"
    alpha = coefficient(nominal_alpha_parts((2 * (every - free - equal))[:, 0], margins))  # units are every - free
    return {
        "pairwise_f1": divide(2 * matched, boxes, zero_division=np.nan),
        "mean_iou": divide(overlap, matched, zero_division=np.nan),
        "box_alpha": alpha[:, None],
    }
