"""How far annotators agree on first-pass annotations: tables per group and per pair of annotators, with intervals.

A replicate of the bootstrap is a weighted sum of the additive numbers of :mod:`evalkit.agreement_sums`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd

from evalkit.agreement_sums import Marks, Sums, estimates, mark, ranges, sums_of
from evalkit.counts import HEADLINE_IOU, IOU_THRESHOLDS, count
from evalkit.first_pass import JOINT, POOLED, FirstPass, as_models, with_pairs
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
from evalkit.metrics import divide, scores
from evalkit.tables import EvalkitError, categorical

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
ALONE = "marked only where one annotator looked"
NO_MATCH = "no boxes match"
UNEQUAL = "unequal numbers of annotators"


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
    marks : of :func:`evalkit.agreement_sums.mark` with this ``iou``, if it is there already

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
    """As :func:`evalkit.agreement.agree` for each two annotators who saw an image in common, on all such images.

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
        drawn = bootstrap(everyone, counts, replicates=replicates, seed=seed, jobs=jobs, iou=iou, wanted=["valid"], block=block)
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
    check_settings(replicates=REPLICATES if replicates is None else replicates, level=level, seed=seed, jobs=jobs)
    unit = first.images["image_id"].astype(str).to_numpy() if block is None else np.asarray(block).astype(str)
    if unit.shape != (len(first.images),):
        raise EvalkitError(f"block must hold the block of each of {len(first.images)} images, not shape {unit.shape}")
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
    row, statistic = ranges(np.zeros(len(width), int), np.array(width)), np.repeat(np.arange(len(width)), width)
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
    undefined, statistic, row = table["estimate"].isna(), table["statistic"], ["level", "label"]
    of_pairs = table[statistic == "positive_agreement"].set_index(row)["estimate"]
    unmarked = of_pairs.reindex(pd.MultiIndex.from_frame(table[row])).isna().to_numpy()  # by anyone who can be compared
    gwet = statistic.isin(["fleiss_kappa", "gwet_ac1"]) & (len(sums.raters) > 1)
    conditions = [
        undefined & few,
        undefined & (statistic == "cohen_kappa") & (not sums.two),
        undefined & unmarked & (table["prevalence"] > 0),
        undefined & unmarked,
        undefined & (statistic == "mean_iou"),
        undefined,
        gwet,
    ]
    return np.select(conditions, [FEW, NOT_TWO, ALONE, NOBODY, NO_MATCH, NO_VARIATION, UNEQUAL], "").astype(object)
