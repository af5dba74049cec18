"""How far annotators agree on first-pass annotations: tables per group and per pair of annotators, with intervals.

Every pair of annotators of an image is matched once. What follows are sums over images of additive numbers (how many of an
image's annotators marked a class, and the square of it; pairs of sets; matched boxes), so a replicate of the bootstrap is a
weighted sum, and the coefficients of :mod:`evalkit.coefficients` divide last.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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
from evalkit.counts import HEADLINE_IOU, IOU_THRESHOLDS, coordinate_rank, count, thresholds
from evalkit.first_pass import JOINT, POOLED, FirstPass, as_models, distinct_sets, with_pairs
from evalkit.intervals import (
    LEVEL,
    REPLICATES,
    SEED,
    add_intervals,
    bootstrap,
    check_settings,
    percentile_interval,
    weights,
)
from evalkit.matching import best_matching
from evalkit.metrics import divide, scores
from evalkit.tables import BOX_COLUMNS, categorical

CLASS_STATISTICS = [
    *("observed_agreement", "cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1", "positive_agreement"),
]
SET_STATISTICS = ["exact_match", "mean_jaccard", "masi_alpha"]
BOX_STATISTICS = ["pairwise_f1", "mean_iou"]
STATISTICS = {
    **dict.fromkeys([*CLASS_STATISTICS, *SET_STATISTICS], "classification"),
    **dict.fromkeys([*BOX_STATISTICS, "box_alpha"], "localisation"),
}
AGREEMENT_COLUMNS = [
    *("group", "task", "level", "label", "statistic", "estimate", "low", "high", "prevalence", "images", "annotators"),
    *("replicates", "undefined", "reason"),
]
PAIR_COLUMNS = ["annotator_a", "annotator_b", *AGREEMENT_COLUMNS[1:]]
FEW = "fewer than two annotators for any image"
NO_VARIATION = "no variation: everyone always says the same"
NOT_TWO = "Cohen's kappa needs the same two annotators on every image"
NOBODY = "no variation: nobody marked it"
NO_MATCH = "no boxes match"
UNEQUAL = "unequal numbers of annotators"


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
    return np.repeat(np.arange(len(image)), after), _ranges(np.arange(len(image)) + 1, after)


def _ranges(start: np.ndarray, size: np.ndarray) -> np.ndarray:
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
        sides.append((np.repeat(np.arange(len(row)), size), _ranges(start[row], size)))
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
    return Sums(csr_array((value, (column, of_unit)), shape=(width, len(units))), columns, raters, sets, two)


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
    marked, used = k.sum(axis=1), k.any(axis=1)
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
        return np.concatenate([np.where(used, values, 0.0) @ levels.T, values], axis=1)

    found = {name: coefficient(Parts(*map(spread, parts(totals)))) for name, parts in COEFFICIENTS.items()}
    both = (k2 - k)[:, several].sum(axis=1)  # twice the pairs of two who marked the class
    found["cohen_kappa"] = np.full_like(found["fleiss_kappa"], np.nan)
    if sums.two:
        one = part["first"]
        cells = [both / 2, one - both / 2, marked - one - both / 2, rated - marked + both / 2]
        table = np.stack(cells, axis=-1).reshape(*marked.shape, 2, 2)
        found["cohen_kappa"] = coefficient(Parts(*map(spread, cohen_parts(table))))
    found["positive_agreement"] = divide(spread(both), spread(both + apart.sum(axis=1)), zero_division=np.nan)
    n_used = np.concatenate([used @ levels.T, np.ones_like(marked)], axis=1)
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


# -- tables -----------------------------------------------------------------------------------------------------------


def agree(
    first: FirstPass,
    *,
    iou: float = HEADLINE_IOU,
    replicates: int | None = REPLICATES,
    level: float = LEVEL,
    seed: int = SEED,
    jobs: int = 1,
    block: np.ndarray | None = None,
    marks: Marks | None = None,
) -> pd.DataFrame:
    """How far annotators agree, for each group of images and for all of them, overall, per domain and per class.

    Parameters
    ----------
    iou : threshold of the box statistics
    replicates : of the image bootstrap; None for no intervals
    block : the block of each image of ``first.images``; then blocks are drawn instead of images
    marks : of :func:`mark` with this ``iou``, if it is there already

    Returns
    -------
    DataFrame with the columns ``AGREEMENT_COLUMNS``. Rows of sets and ``box_alpha`` are there where they are defined by kind:
    sets for overall and domains, ``box_alpha`` for overall. Group ``pooled`` has the images of all groups. ``reason`` says why
    there is no estimate or no interval, that an interval is a point, and for Fleiss' kappa and AC1 that images have unequal
    numbers of annotators.

    Raises EvalkitError for settings that :func:`evalkit.intervals.check_settings` refuses.
    """
    marks = mark(first, iou=iou) if marks is None else marks
    group = first.seen["group"].cat.codes.to_numpy()
    subsets = {(name,): group == code for code, name in enumerate(first.groups)}
    subsets[POOLED,] = np.ones(len(group), bool)
    return _tables(first, marks, subsets, ["group"], replicates, level, seed, jobs, block)


def agree_by_pair(
    first: FirstPass,
    *,
    iou: float = HEADLINE_IOU,
    replicates: int | None = REPLICATES,
    level: float = LEVEL,
    seed: int = SEED,
    jobs: int = 1,
    block: np.ndarray | None = None,
    marks: Marks | None = None,
) -> pd.DataFrame:
    """As :func:`agree` for each two annotators who saw an image in common, on all such images.

    Returns a DataFrame with the columns ``PAIR_COLUMNS``; ``annotator_a`` stands before ``annotator_b`` by name, and no
    statistic depends on that.
    """
    marks = mark(first, iou=iou) if marks is None else marks
    names = first.annotators
    key = marks.person[marks.a] * len(names) + marks.person[marks.b]
    subsets = {}
    for one in np.unique(key):
        rows = np.zeros(len(first.seen), bool)
        rows[marks.a[key == one]] = rows[marks.b[key == one]] = True
        subsets[names[one // len(names)], names[one % len(names)]] = rows
    return _tables(first, marks, subsets, PAIR_COLUMNS[:2], replicates, level, seed, jobs, block)


def score_annotators(
    first: FirstPass,
    *,
    iou: Sequence[float] = IOU_THRESHOLDS,
    replicates: int | None = REPLICATES,
    level: float = LEVEL,
    seed: int = SEED,
    jobs: int = 1,
    block: np.ndarray | None = None,
) -> pd.DataFrame:
    """Each annotator against gold on the images that they saw, and each two annotators on those that both saw.

    An annotator is scored as a model is. The counts of a pair, named ``A + B``, are those of the one and of the other added,
    so its ``n_gold`` holds every gold box twice.

    Returns a DataFrame with the columns of :data:`evalkit.metrics.SCORE_COLUMNS`, ``annotator`` for ``model``. Raises
    EvalkitError where there is no gold.
    """
    single = as_models(first)
    counts = count(single, iou=iou)
    valid, image, model = single.valid, counts["image_id"].cat.codes.to_numpy(), counts["model"].cat.codes.to_numpy()
    of = [counts[model == code] for code in range(len(valid))]
    image_of = [image[model == code] for code in range(len(valid))]
    pairs = [pair for pair in itertools.combinations(range(len(valid)), 2) if valid[list(pair)].all(axis=0).any()]
    names = [*first.annotators, *(JOINT.join(first.annotators[one] for one in pair) for pair in pairs)]
    parts = [counts.assign(model=counts["model"].cat.set_categories(names))]
    for code, pair in enumerate(pairs, len(valid)):
        both = valid[list(pair)].all(axis=0)
        for one in pair:
            rows = of[one][both[image_of[one]]]
            parts.append(rows.assign(model=categorical(np.full(len(rows), code), names)))
    everyone = with_pairs(single, pairs, names)
    counts = pd.concat(parts, ignore_index=True)
    table = scores(everyone, counts, iou=iou)
    table = table[table["scope"] == "valid"].reset_index(drop=True)
    if replicates is not None:
        drawn = bootstrap(everyone, counts, replicates=replicates, seed=seed, jobs=jobs, wanted=["valid"], block=block)
        table = add_intervals(table, drawn, level=level)
    return table.rename(columns={"model": "annotator"})


def disagreements(first: FirstPass, marks: Marks) -> pd.DataFrame:
    """The images on which annotators differ most, first: ``image_id, group, annotators, units, unlike, share``.

    ``units`` are those of ``box_alpha``, the matched pairs and the single boxes of all pairs of annotators; ``unlike`` are the
    single ones and the pairs of two classes. The order is by ``unlike`` per pair of annotators, then by ``share`` of the units.
    """
    image, units = marks.image[marks.a], np.asarray(marks.boxes.sum(axis=1)).ravel() - marks.free
    sums = {"pairs": np.ones(len(image)), "units": units, "unlike": units - marks.equal}
    sums = {name: np.bincount(image, weights=one, minlength=len(first.images)) for name, one in sums.items()}
    table = first.seen.groupby("image_id", observed=True).agg(group=("group", "first"), annotators=("annotator", "size"))
    table = table.assign(**{name: one[table.index.codes] for name, one in sums.items()}).reset_index()
    table["share"] = divide(table["unlike"], table["units"], zero_division=np.nan)
    table["per_pair"] = divide(table["unlike"], table["pairs"])
    table = table[table["annotators"] > 1].sort_values(["per_pair", "share"], ascending=False, kind="stable", ignore_index=True)
    return table.astype({"units": int, "unlike": int}).drop(columns=["pairs", "per_pair"])


def _tables(
    first: FirstPass,
    marks: Marks,
    subsets: dict[tuple[str, ...], np.ndarray],
    keys: list[str],
    replicates: int | None,
    level: float,
    seed: int,
    jobs: int,
    block: np.ndarray | None,
) -> pd.DataFrame:
    """The tables of all subsets of rows of seen, with their names in front; equal subsets are worked out once."""
    check_settings(replicates=REPLICATES if replicates is None else replicates, level=level, jobs=jobs)
    unit = first.images["image_id"].astype(str).to_numpy(object) if block is None else np.asarray(block, dtype=object)
    unit = np.unique(unit, return_inverse=True)[1]
    different = {rows.tobytes(): rows for rows in subsets.values()}
    with ThreadPoolExecutor(jobs) as pool:
        done = pool.map(lambda rows: _table(marks, rows, unit, replicates, level, seed), different.values())
        tables = dict(zip(different, done, strict=True))
    parts = []
    for names, rows in subsets.items():
        table = tables[rows.tobytes()].copy()
        for at, (key, name) in enumerate(zip(keys, names, strict=True)):
            table.insert(at, key, name)
        parts.append(table)
    columns = [*keys, *AGREEMENT_COLUMNS[1:]]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _table(marks: Marks, rows: np.ndarray, unit: np.ndarray, replicates: int | None, level: float, seed: int) -> pd.DataFrame:
    """The rows of one subset."""
    sums = sums_of(marks, rows, unit)
    point = {name: values[0] for name, values in estimates(sums, sums.matrix.sum(axis=1)[None], marks.pools).items()}
    prevalence = point.pop("prevalence")
    width = [len(point[name]) for name in STATISTICS]
    row, statistic = _ranges(np.zeros(len(width), int), np.array(width)), np.repeat(np.arange(len(width)), width)
    value = np.concatenate([point[name] for name in STATISTICS])
    few = not (sums.raters > 1).any()
    table = marks.rows.iloc[row].reset_index(drop=True)
    table["statistic"] = np.array(list(STATISTICS), dtype=object)[statistic]
    table["task"] = table["statistic"].map(STATISTICS)
    table["estimate"], table["prevalence"] = value, prevalence[row]
    table["images"], table["annotators"] = len(np.unique(marks.image[rows])), len(np.unique(marks.person[rows]))
    table["low"] = table["high"] = np.nan
    table["replicates"] = table["undefined"] = pd.array([pd.NA] * len(table), dtype="Int64")
    table["reason"] = _reasons(table, few=few, sums=sums)
    if replicates is not None and not few:
        found = percentile_interval(_replicates(sums, marks.pools, replicates, seed), value, level=level)
        known = ~np.isnan(value)
        table["low"], table["high"] = (np.where(known, end, np.nan) for end in (found.low, found.high))
        table["replicates"], table["undefined"] = replicates, found.undefined
        several = np.where(known & (found.reason != "") & (table["reason"] != ""), "; ", "")
        table["reason"] += several + np.where(known, found.reason, "").astype(object)
    return table.iloc[np.lexsort([statistic, row])]


def _replicates(sums: Sums, pools: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    """Every statistic in every replicate, shape (replicates, rows of a table)."""
    numbers = np.empty((replicates, sums.matrix.shape[0]))
    at = 0
    for weight in weights(sums.matrix.shape[1], replicates=replicates, seed=seed):
        numbers[at : at + len(weight)] = (sums.matrix @ np.ascontiguousarray(weight.T, dtype=float)).T
        at += len(weight)
    found = estimates(sums, numbers, pools)
    return np.concatenate([found[name] for name in STATISTICS], axis=1)


def _reasons(table: pd.DataFrame, *, few: bool, sums: Sums) -> np.ndarray:
    """Why there is no estimate; or, for what Gwet's rule is needed, that the numbers of annotators are unequal."""
    undefined, statistic = table["estimate"].isna(), table["statistic"]
    empty = ~(table["prevalence"] > 0) | statistic.isin(["positive_agreement", "pairwise_f1"])
    gwet = statistic.isin(["fleiss_kappa", "gwet_ac1"]) & (len(sums.raters) > 1)
    conditions = [
        undefined & few,
        undefined & (statistic == "cohen_kappa") & (not sums.two),
        undefined & empty,
        undefined & (statistic == "mean_iou"),
        undefined,
        gwet,
    ]
    return np.select(conditions, [FEW, NOT_TWO, NOBODY, NO_MATCH, NO_VARIATION, UNEQUAL], "").astype(object)
