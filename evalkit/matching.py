"""One-to-one matching: as many pairs as can be, and, where pairs are shown, the best of those matchings.

Nothing else in the package knows an algorithm. A graph is given by its edges, ``left`` and ``right`` row numbers.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching


def maximum_matching(left: np.ndarray, right: np.ndarray, n_left: int, n_right: int) -> np.ndarray:
    """A maximum-cardinality matching of a bipartite graph.

    Pairs that compete with no other are taken at once; the rest is one sparse graph, matched by Hopcroft and Karp's
    algorithm (``scipy.sparse.csgraph.maximum_bipartite_matching``). The number of pairs is the largest possible, and does
    not depend on the order of the edges; which of several maximum matchings is returned may. See :func:`best_matching`.

    Parameters
    ----------
    left, right : integers of shape (edges,)
    n_left, n_right : numbers of rows on either side

    Returns
    -------
    array of shape (n_left,): the right row matched to each left row, or -1

    Notes
    -----
    J. E. Hopcroft and R. M. Karp, "An n^(5/2) algorithm for maximum matchings in bipartite graphs", 1973.

    >>> maximum_matching(np.array([0, 0, 1]), np.array([0, 1, 0]), 2, 2)
    array([1, 0])
    """
    match = np.full(n_left, -1)
    alone = _alone(left, right, n_left, n_right)
    match[left.compress(alone)] = right.compress(alone)
    if not alone.all():
        rows, row = compressed(left.compress(~alone), n_left)
        columns, column = compressed(right.compress(~alone), n_right)
        graph = csr_matrix((np.ones(len(row), bool), (row, column)), shape=(len(rows), len(columns)))
        found = maximum_bipartite_matching(graph, perm_type="column")
        match[rows[found >= 0]] = columns[found[found >= 0]]
    return match


def best_matching(
    left: np.ndarray, right: np.ndarray, weight: np.ndarray, left_rank: np.ndarray, right_rank: np.ndarray
) -> np.ndarray:
    """Of the maximum-cardinality matchings, the one with the largest sum of weights.

    With several rows of weights the first row decides, the second among the matchings that are equal in the first, and so on.
    Rows of the graph are put in the order of their ranks before anything is solved, so where matchings are equal in all of
    that, ranks decide among them. With ranks that come from the rows' own values, the result does not depend on the order of
    rows or edges.

    Each connected component is solved as an assignment problem that is padded with just as many dummies as the maximum
    matching leaves rows unmatched, so that no pair can be given up for weight. Between two rows of weights only the edges stay
    that some best assignment uses: those whose reduced cost is 0.

    Parameters
    ----------
    left, right : integers of shape (edges,)
    weight : floats of shape (edges,) or (rows, edges), at least 0; in all rows but the last whole numbers, so that equal sums
        are equal
    left_rank, right_rank : integers for each row of either side; equal ranks are interchangeable

    Returns
    -------
    array of shape (n_left,): the right row matched to each left row, or -1
    """
    n_left, n_right = len(left_rank), len(right_rank)
    weight = np.atleast_2d(weight)
    match = np.full(n_left, -1)
    alone = _alone(left, right, n_left, n_right)
    match[left[alone]] = right[alone]
    if alone.all():
        return match
    if alone.any():
        left, right, weight = left[~alone], right[~alone], weight[:, ~alone]
    graph = csr_matrix((np.ones(len(left), bool), (left, right + n_left)), shape=(n_left + n_right,) * 2)
    component = connected_components(graph, directed=False)[1]
    del graph
    size = _pairs_by_component(left, right, component, n_left, n_right)
    one = size[component[left]] == 1
    if one.any():  # a single pair: the best edge
        best = _best_edges(component[left[one]], weight[:, one], left_rank[left[one]], right_rank[right[one]])
        match[left[one][best]] = right[one][best]
        left, right, weight = left[~one], right[~one], weight[:, ~one]
    for edge in _split(component[left]):
        rows, row = _ranked(left[edge], left_rank)
        columns, column = _ranked(right[edge], right_rank)
        pairs = size[component[rows[0]]]
        chosen_row, chosen_column = _assignment(row, column, weight[:, edge], len(rows), len(columns), pairs)
        match[rows[chosen_row]] = columns[chosen_column]
    return match


def _best_edges(component: np.ndarray, weight: np.ndarray, left_rank: np.ndarray, right_rank: np.ndarray) -> np.ndarray:
    """The edge of each component with the largest weights, row by row, then the lowest ranks."""
    order = np.lexsort([right_rank, left_rank, *-weight[::-1], component])
    return order[np.r_[True, np.diff(component[order]) > 0]]


def _pairs_by_component(left: np.ndarray, right: np.ndarray, component: np.ndarray, n_left: int, n_right: int) -> np.ndarray:
    """The size of a maximum matching of each component; where every row reaches every other it is the smaller side."""
    n = component.max() + 1
    rows, columns = (
        np.bincount(component[offset + np.unique(side)], minlength=n) for side, offset in ((left, 0), (right, n_left))
    )
    size = np.minimum(rows, columns)
    partial = (np.bincount(component[left], minlength=n) < rows * columns)[component[left]]
    if partial.any():
        match = maximum_matching(left[partial], right[partial], n_left, n_right)
        matched = np.bincount(component[:n_left][match >= 0], minlength=n)
        size = np.where(np.bincount(component[left[partial]], minlength=n) > 0, matched, size)
    return size


def _split(component: np.ndarray) -> list[np.ndarray | slice]:
    """The edges of each component."""
    if not len(component):
        return []
    if (component == component[0]).all():
        return [slice(None)]
    order = np.argsort(component, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(component[order])) + 1)


def compressed(rows: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The different rows, ascending, and the position of each row among them; rows are below ``n``.

    As ``numpy.unique`` with its inverse, by flags instead of a sort unless ``n`` is far more than there are rows.
    """
    if n > 100 * len(rows):
        return np.unique(rows, return_inverse=True)
    used = np.zeros(n, bool)
    used[rows] = True
    different = np.flatnonzero(used)
    position = np.empty(n, np.int32)
    position[different] = np.arange(len(different))
    return different, position[rows]


def _alone(left: np.ndarray, right: np.ndarray, n_left: int, n_right: int) -> np.ndarray:
    """Edges that share no row with another edge."""
    return (np.bincount(left, minlength=n_left)[left] == 1) & (np.bincount(right, minlength=n_right)[right] == 1)


def _ranked(rows: np.ndarray, rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different rows in the order of their ranks, and the position of each row among them."""
    different, inverse = compressed(rows, len(rank))
    order = np.argsort(rank[different], kind="stable")
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order))
    return different[order], position[inverse]


def _assignment(
    row: np.ndarray, column: np.ndarray, weight: np.ndarray, n_rows: int, n_columns: int, pairs: int
) -> tuple[np.ndarray, np.ndarray]:
    """The assignment of largest weight with exactly ``pairs`` edges, the largest number there is.

    The smaller side becomes the rows of a dense cost matrix; ``n_rows - pairs`` dummy columns take the rows that stay free, and
    where there are several rows of weights, dummy rows take the columns that stay free.
    """
    if n_rows > n_columns:
        chosen_column, chosen_row = _assignment(column, row, weight, n_columns, n_rows, pairs)
        return chosen_row, chosen_column
    dummies = n_columns - pairs if len(weight) > 1 else 0
    cost = np.zeros((n_rows + dummies, n_columns + n_rows - pairs))
    cost[:n_rows, :n_columns] = np.inf
    for stage in range(len(weight)):
        cost[row, column] = -weight[stage]
        chosen_row, chosen_column = linear_sum_assignment(cost)
        if stage + 1 < len(weight):
            tight = _tight(cost, chosen_column)
            cost = np.where(tight, 0.0, np.inf)
            kept = tight[row, column]
            if kept.sum() == pairs:  # no choice is left
                break
            row, column, weight = row[kept], column[kept], weight[:, kept]
    real = (chosen_row < n_rows) & (chosen_column < n_columns)
    return chosen_row[real], chosen_column[real]


def _tight(cost: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Which entries of a square matrix of whole costs some assignment of least cost has; ``chosen`` is one such assignment.

    They are those whose reduced cost is 0. The prices of the columns are shortest paths, found by Bellman and Ford's rounds.
    """
    price = np.zeros(len(cost))
    while True:
        slack = cost - (cost[np.arange(len(cost)), chosen] - price[chosen])[:, None]
        lower = np.minimum(price, slack.min(axis=0))
        if (lower == price).all():
            return slack == price
        price = lower
