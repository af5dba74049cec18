"""Agreement beyond chance on a nominal scale: from how many raters gave a unit each value to the coefficients.

Every coefficient is a ratio of two sums over units, ``numerator / denominator``; over several scales (the classes of a
domain, say) it is the ratio of the summed parts and never a mean of coefficients. A scale on which everyone always says the
same has no variation, and chance-corrected agreement on it is undefined: 0/0, neither 0 nor 1.

J. L. Fleiss, "Measuring nominal scale agreement among many raters", 1971; J. Cohen, "A coefficient of agreement for nominal
scales", 1960; K. Krippendorff, "Computing Krippendorff's alpha-reliability", 2011; K. L. Gwet, "Handbook of inter-rater
reliability", 4th ed., 2014 (any number of raters a unit, and AC1); R. J. Passonneau, "Measuring agreement on set-valued
items", 2006 (MASI).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit.metrics import divide
from evalkit.tables import EvalkitError

TILE = 512  # columns of the matrix of set distances held at a time


class Totals(NamedTuple):
    """Sums over units of any number of scales. ``...`` are the scales (and replicates), the last axis of two is the values.

    A unit with m ratings, k of them of some value, is *rated* if m >= 1 and *pairable* if m >= 2.
    """

    agreement: np.ndarray  # (...)    over pairable units: share of agreeing pairs, Σ k(k-1) / m(m-1)
    pairable: np.ndarray  # (...)    number of pairable units
    disagreement: np.ndarray  # (...)    over pairable units: (m² - Σ k²) / (m - 1)
    margins: np.ndarray  # (..., q) over pairable units: k
    shares: np.ndarray  # (..., q) over rated units: k / m
    rated: np.ndarray  # (...)    number of rated units


class Parts(NamedTuple):
    """A coefficient as numerator and denominator, and the variation without which it is undefined; each may be summed."""

    numerator: np.ndarray
    denominator: np.ndarray
    variation: np.ndarray


def rating_counts(ratings: Any, *, categories: Sequence[Any] | None = None) -> tuple[np.ndarray, list[Any]]:
    """How many raters gave each unit each value, shape (units, values), and the values.

    ``ratings`` has a row for each unit and a column for each rater; None, NaN and the empty text are no rating. The values are
    those that occur, sorted, or ``categories``. Raises EvalkitError for a rating that is not among the categories.

    >>> rating_counts([["a", "a"], ["a", "b"], ["b", None]])[0].tolist()
    [[2, 0], [1, 1], [0, 1]]
    """
    cells = np.array(ratings, dtype=object)
    given = ~(pd.isna(cells) | (cells == ""))
    values = sorted(set(cells[given])) if categories is None else list(categories)
    code = pd.Index(values, dtype=object).get_indexer(cells[given])
    if (code < 0).any():
        raise EvalkitError(f"ratings: {cells[given][code < 0][0]!r} is not one of the categories")
    unit = np.nonzero(given)[0]
    return np.bincount(unit * len(values) + code, minlength=len(cells) * len(values)).reshape(len(cells), -1), values


def totals(counts: np.ndarray) -> Totals:
    """The sums of one scale from counts of shape (units, values); units may have any number of ratings."""
    counts = np.asarray(counts, float)
    m = counts.sum(axis=1)
    of_pairs, of_rated = counts[m >= 2], counts[m >= 1]
    n = of_pairs.sum(axis=1)
    square = (of_pairs**2).sum(axis=1)
    return Totals(
        agreement=np.sum((square - n) / (n * (n - 1))),
        pairable=np.asarray(len(n)),
        disagreement=np.sum((n**2 - square) / (n - 1)),
        margins=of_pairs.sum(axis=0),
        shares=(of_rated / of_rated.sum(axis=1, keepdims=True)).sum(axis=0),
        rated=np.asarray(len(of_rated)),
    )


def observed_parts(sums: Totals) -> Parts:
    """The mean over pairable units of the share of agreeing pairs."""
    return Parts(sums.agreement, sums.pairable, sums.pairable)


def _observed(sums: Totals) -> np.ndarray:
    return divide(sums.agreement, sums.pairable, zero_division=np.nan)


def fleiss_parts(sums: Totals) -> Parts:
    """(po - pe) / (1 - pe), pe = Σ π², π the mean share of a value over all rated units."""
    share = divide(sums.shares, sums.rated[..., None], zero_division=np.nan)
    beyond = (share * (1 - share)).sum(axis=-1)  # 1 - pe, and exactly 0 without variation
    return Parts(_observed(sums) - 1 + beyond, beyond, beyond)


def ac1_parts(sums: Totals) -> Parts:
    """(po - pe) / (1 - pe), pe = Σ π(1 - π) / (q - 1) over q values. Unlike the others it depends on q."""
    share = divide(sums.shares, sums.rated[..., None], zero_division=np.nan)
    variation = (share * (1 - share)).sum(axis=-1)
    chance = variation / max(share.shape[-1] - 1, 1)
    return Parts(_observed(sums) - chance, 1 - chance, variation)


def alpha_parts(sums: Totals) -> Parts:
    """1 - Do/De on pairable units, from :func:`nominal_alpha_parts`."""
    return nominal_alpha_parts(sums.disagreement, sums.margins)


def nominal_alpha_parts(disagreement: np.ndarray, margins: np.ndarray) -> Parts:
    """1 - Do/De: Do = Σ (m² - Σ k²)/(m - 1) / n, De = (n² - Σ n_v²) / n(n - 1), where n_v are the margins and n their sum."""
    n = margins.sum(axis=-1)
    expected = divide(n**2 - (margins**2).sum(axis=-1), n - 1)
    return Parts(expected - disagreement, expected, expected)


def cohen_parts(table: np.ndarray) -> Parts:
    """(po - pe) / (1 - pe) of two raters' contingency table, shape (..., q, q); pe from each rater's own margins."""
    table = np.asarray(table, float)
    n = table.sum(axis=(-2, -1))
    by_chance = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1)
    beyond = n**2 - by_chance
    return Parts(n * np.trace(table, axis1=-2, axis2=-1) - by_chance, beyond, beyond)


COEFFICIENTS: dict[str, Callable[[Totals], Parts]] = {
    "observed_agreement": observed_parts,
    "fleiss_kappa": fleiss_parts,
    "krippendorff_alpha": alpha_parts,
    "gwet_ac1": ac1_parts,
}


def coefficient(parts: Parts) -> np.ndarray:
    """Numerator / denominator; NaN without any variation."""
    value = divide(parts.numerator, parts.denominator, zero_division=np.nan)
    return np.where(parts.variation > 0, value, np.nan)


def observed_agreement(counts: np.ndarray) -> float:
    """Mean over units with two ratings or more of the share of agreeing pairs; NaN without such a unit.

    >>> observed_agreement([[3, 0], [2, 1]])  # (1 + 1/3) / 2
    0.6666666666666666
    """
    return float(coefficient(observed_parts(totals(counts))))


def fleiss_kappa(counts: np.ndarray) -> float:
    """Fleiss' kappa from counts of shape (units, values), from -1 to 1; NaN without variation or without a pair.

    With unequal numbers of raters it follows Gwet: agreement over units with two ratings or more, chance from the margins
    over all rated units.

    >>> fleiss_kappa([[2, 0], [0, 2], [1, 1], [1, 1]])
    0.0
    """
    return float(coefficient(fleiss_parts(totals(counts))))


def gwet_ac1(counts: np.ndarray) -> float:
    """Gwet's AC1 from counts of shape (units, values); units as for :func:`fleiss_kappa`.

    Its chance agreement falls towards 0 where one value prevails. A column of zeros is a value of the scale and changes it.

    >>> round(gwet_ac1([[2, 0], [2, 0], [2, 0], [1, 1]]), 4)  # (3/4 - 7/32) / (1 - 7/32)
    0.68
    """
    return float(coefficient(ac1_parts(totals(counts))))


def krippendorff_alpha(counts: np.ndarray) -> float:
    """Krippendorff's alpha for nominal data from counts of shape (units, values); NaN without variation.

    Units with one rating are left out of both the observed and the expected part.

    >>> krippendorff_alpha([[2, 0], [1, 1], [0, 1]])  # Do = 1/2, De = 2·3·1 / 4·3
    0.0
    """
    return float(coefficient(alpha_parts(totals(counts))))


def cohen_kappa(table: np.ndarray) -> float:
    """Cohen's kappa of two raters' contingency table, shape (values, values); NaN where both always say the same.

    >>> round(cohen_kappa([[20, 5], [10, 15]]), 4)  # (0.7 - 0.5) / (1 - 0.5)
    0.4
    """
    return float(coefficient(cohen_parts(table)))


# -- sets -------------------------------------------------------------------------------------------------------------


def set_similarity(shared: np.ndarray, size: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Jaccard index J and MASI similarity J·M of sets with ``shared`` members in common, of ``size`` and ``other`` members.

    M is 1 for equal sets, 2/3 where one holds the other, 1/3 where they overlap, and 0 where they share nothing. Two empty
    sets are equal: both are 1.

    >>> [float(part) for part in set_similarity(np.array(1), np.array(1), np.array(2))]  # {a} and {a, b}
    [0.5, 0.3333333333333333]
    """
    jaccard = divide(shared, size + other - shared, zero_division=1.0)
    equal, inside = (shared == size) & (shared == other), (shared == size) | (shared == other)
    return jaccard, jaccard * np.select([equal, inside, shared > 0], [1.0, 2 / 3, 1 / 3], 0.0)


def expected_set_distance(numbers: np.ndarray, sets: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Σ n_s n_t (1 - J·M) / (n - 1) over pairs of sets: the expected part of alpha with the MASI distance.

    Parameters
    ----------
    numbers : how often each non-empty set occurs, shape (replicates, sets)
    sets : members of each of these sets, booleans of shape (sets, classes)
    n : number of all sets, shape (replicates,); what ``numbers`` lacks are empty sets
    """
    members = sets.astype(float)
    size = members.sum(axis=1)
    alike = (n - numbers.sum(axis=1)) ** 2  # empty with empty
    for start in range(0, len(sets), TILE):  # the matrix is symmetric: the part above each tile counts twice
        stop = min(start + TILE, len(sets))
        shared = members[:stop] @ members[start:stop].T
        similar = set_similarity(shared, size[:stop, None], size[start:stop])[1]
        similar[:start] *= 2
        alike = alike + ((numbers[:, :stop] @ similar) * numbers[:, start:stop]).sum(axis=1)
    return divide(n**2 - alike, n - 1)
