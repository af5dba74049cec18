"""Matching: as many pairs as can be, proved; of those matchings the best one; and none of it depends on the order of rows."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import Plain, best_by_search, exact_iou, matching_by_paths, prove_maximum, qualifies, write_plain

import evalkit
from evalkit.boxes import candidate_pairs, iou
from evalkit.matching import best_matching, maximum_matching

corner = st.integers(0, 12)
box = st.builds(lambda x, y, w, h: [x, y, x + w, y + h], corner, corner, st.integers(1, 9), st.integers(1, 9))


def graphs(size):
    """Edges of a bipartite graph with up to ``size`` nodes on either side, each edge once, in any order."""
    node = st.integers(0, size - 1)
    return st.lists(st.tuples(node, node), unique=True, max_size=size * size)


def as_pairs(found):
    return {left: int(right) for left, right in enumerate(found) if right >= 0}


def columns(edges):
    return np.array(edges, dtype=int).reshape(-1, 2).T


def matches_of(plain, folder, **options):
    return evalkit.match(evalkit.read_benchmark(write_plain(plain, folder)), **options)


def one_image(golds, boxes):
    """A benchmark of one image and one class."""
    return Plain(gold={"a": [("litter", one) for one in golds]}, answers={"m": {"a": [("litter", one) for one in boxes]}})


def pairs_of(table):
    """The matched pairs of a table, as coordinates of both boxes."""
    names = [f"{side}_{edge}" for side in ("gold", "predicted") for edge in ("x_min", "y_min", "x_max", "y_max")]
    return [tuple(row) for row in table.loc[table["outcome"] == "tp", names].itertuples(index=False)]


# -- overlap


@given(box, box)
@settings(deadline=None)
def test_iou_is_the_exact_fraction(a, b):
    assert iou(np.array([a], float), np.array([b], float))[0] == pytest.approx(float(exact_iou(a, b)), rel=1e-15, abs=0)
    assert iou(np.array([a], float), np.array([b], float)) == iou(np.array([b], float), np.array([a], float))
    assert iou(np.array([a], float), np.array([a], float))[0] == 1.0


def test_iou_of_real_coordinates_is_close_to_the_exact_fraction():
    random.seed(3)
    for _ in range(300):
        x, y, w, h = (random.uniform(0.1, 5000) for _ in range(4))
        a = [x, y, x + w, y + h]
        b = [x + random.uniform(-w, w), y + random.uniform(-h, h), x + w * random.uniform(1, 2), y + h * random.uniform(1, 2)]
        assert iou(np.array([a]), np.array([b]))[0] == pytest.approx(float(exact_iou(a, b)), rel=1e-12, abs=0)


@given(st.lists(st.tuples(st.integers(0, 2), box), max_size=12), st.lists(st.tuples(st.integers(0, 2), box), max_size=12))
@settings(max_examples=60, deadline=None)
def test_candidate_pairs_are_all_that_qualify_however_they_are_cut(golds, boxes):
    keys = [np.array([key for key, _ in side], dtype=np.int64) for side in (golds, boxes)]
    corners = [np.array([one for _, one in side], dtype=float).reshape(-1, 4) for side in (golds, boxes)]
    expected = {
        (g, p)
        for (g, (key, a)), (p, (other, b)) in itertools.product(enumerate(golds), enumerate(boxes))
        if key == other and qualifies(a, b, 0.3)
    }
    for chunk in (1, 3, 1000):
        gold_row, row, overlap = candidate_pairs(keys[0], corners[0], keys[1], corners[1], minimum_iou=0.3, chunk=chunk)
        assert len(gold_row) == len(expected)
        assert set(zip(gold_row.tolist(), row.tolist(), strict=True)) == expected
        for g, p, value in zip(gold_row, row, overlap, strict=True):
            assert value == pytest.approx(float(exact_iou(golds[g][1], boxes[p][1])), rel=1e-15)


# -- as many pairs as can be


@given(graphs(6))
@settings(deadline=None)
def test_maximum_matching_is_proved_by_a_vertex_cover(edges):
    found = maximum_matching(*columns(edges), 6, 6)
    assert found.shape == (6,)
    prove_maximum(edges, as_pairs(found))
    assert len(as_pairs(found)) == best_by_search(dict.fromkeys(edges, 1))[0]


@pytest.mark.parametrize("nodes", [40, 200, 1000])
@pytest.mark.parametrize("degree", [0.7, 1.5, 3, 8])
def test_maximum_matching_of_large_random_graphs_is_proved_by_a_vertex_cover(nodes, degree):
    chance = random.Random(f"{nodes} {degree}")
    edges = sorted({(chance.randrange(nodes), chance.randrange(nodes)) for _ in range(int(nodes * degree))})
    chance.shuffle(edges)
    prove_maximum(edges, as_pairs(maximum_matching(*columns(edges), nodes, nodes)))
    weights = np.array([chance.random() for _ in edges])
    prove_maximum(edges, as_pairs(best_matching(*columns(edges), weights, np.arange(nodes), np.arange(nodes))))


def test_a_long_chain_where_every_second_edge_must_be_chosen():
    n = 500
    edges = [(at, at) for at in range(n)] + [(at, at + 1) for at in range(n - 1)]
    for order in (edges, edges[::-1]):
        prove_maximum(edges, as_pairs(maximum_matching(*columns(order), n, n)))
        assert len(as_pairs(maximum_matching(*columns(order), n, n))) == n


@pytest.mark.parametrize(("n_left", "n_right"), [(0, 0), (3, 0), (0, 3), (2, 2)])
def test_no_edge_no_pair(n_left, n_right):
    none = np.empty(0, int)
    assert maximum_matching(none, none, n_left, n_right).tolist() == [-1] * n_left
    assert best_matching(none, none, none.astype(float), np.arange(n_left), np.arange(n_right)).tolist() == [-1] * n_left


def test_the_vertex_cover_exposes_a_matching_that_is_not_maximum():
    edges = [(0, 0), (0, 1), (1, 0)]
    prove_maximum(edges, {0: 1, 1: 0})
    with pytest.raises(AssertionError):
        prove_maximum(edges, {0: 0})
    with pytest.raises(AssertionError, match="two pairs"):
        prove_maximum(edges, {0: 0, 1: 0})
    with pytest.raises(AssertionError, match="no edge"):
        prove_maximum(edges, {1: 1})


# -- the best of them


@st.composite
def weighted_graphs(draw):
    """Edges with weights in hundredths, so that equal sums are exact ties and others are far apart."""
    edges = draw(graphs(5))
    return {edge: Fraction(draw(st.integers(0, 100)), 100) for edge in edges}


@given(weighted_graphs())
@settings(deadline=None)
def test_best_matching_has_most_pairs_and_of_those_the_largest_sum(weights):
    edges = list(weights)
    found = as_pairs(best_matching(*columns(edges), np.array(list(weights.values()), float), np.arange(5), np.arange(5)))
    prove_maximum(edges, found)
    size, total = best_by_search(weights)
    assert len(found) == size
    assert sum(weights[pair] for pair in found.items()) == total


@given(weighted_graphs(), st.randoms())
@settings(deadline=None)
def test_best_matching_follows_ranks_and_not_the_order_of_rows_or_edges(weights, chance):
    edges = list(weights)
    first = best_matching(*columns(edges), np.array(list(weights.values()), float), np.arange(5), np.arange(5))
    shuffled = chance.sample(edges, len(edges))
    left, right = (chance.sample(range(5), 5) for _ in range(2))  # the new row of each old row
    moved = [(left[a], right[b]) for a, b in shuffled]
    weight = np.array([weights[edge] for edge in shuffled], float)
    ranks = [np.argsort(new) for new in (left, right)]  # rank of a new row: the old row it was
    second = as_pairs(best_matching(*columns(moved), weight, *ranks))
    assert {left[a]: right[b] for a, b in as_pairs(first).items()} == second


def test_greedy_would_lose_a_pair(tmp_path):
    """The first prediction overlaps both golds and the left one most; the second fits the left one only."""
    left, right = [0, 0, 10, 10], [4, 0, 14, 10]
    both, only_left = [1, 0, 11, 10], [-3, 0, 7, 10]
    assert exact_iou(both, left) == Fraction(9, 11) > exact_iou(only_left, left) == Fraction(7, 13)
    assert exact_iou(both, right) == Fraction(7, 13) > Fraction(1, 2) > exact_iou(only_left, right)
    plain = one_image([left, right], [both, only_left])
    assert set(pairs_of(matches_of(plain, tmp_path, iou=[0.5]))) == {(*left, *only_left), (*right, *both)}


def test_the_largest_sum_with_fewer_pairs_loses(tmp_path):
    """One pair of IoU 1 has the largest sum there is; two pairs of IoU 5/11 each have a smaller one, and are more pairs."""
    gold = [[3, 0, 11, 10], [0, 0, 8, 10]]
    boxes = [[3, 0, 11, 10], [6, 0, 14, 10]]
    weights = {(g, p): exact_iou(a, b) for g, a in enumerate(gold) for p, b in enumerate(boxes) if qualifies(a, b, 0.3)}
    assert weights == {(0, 0): 1, (0, 1): Fraction(5, 11), (1, 0): Fraction(5, 11)}
    assert weights[0, 1] + weights[1, 0] < weights[0, 0]
    table = matches_of(one_image(gold, boxes), tmp_path, iou=[0.3])
    assert set(pairs_of(table)) == {(*gold[0], *boxes[1]), (*gold[1], *boxes[0])}
    assert table["overlap"].tolist() == pytest.approx([5 / 11, 5 / 11])


def test_of_two_maximum_matchings_the_one_that_overlaps_more(tmp_path):
    golds, boxes = [[0, 0, 10, 10], [2, 0, 12, 10]], [[0, 0, 10, 10], [2, 0, 12, 10]]
    for order in itertools.product(itertools.permutations(golds), itertools.permutations(boxes)):
        table = matches_of(one_image(*order), tmp_path, iou=[0.5])
        assert pairs_of(table) == [(*one, *one) for one in golds]
        assert table["overlap"].tolist() == [1.0, 1.0]


def test_a_tie_goes_by_coordinates(tmp_path):
    """Two predictions lie as far left of the gold box as right of it: 8 of 12 columns are shared with either."""
    gold, left, right = [2, 0, 12, 10], [0, 0, 10, 10], [4, 0, 14, 10]
    assert exact_iou(gold, left) == exact_iou(gold, right) == Fraction(8, 12)
    found = {tuple(pairs_of(matches_of(one_image([gold], order), tmp_path))) for order in ([left, right], [right, left])}
    assert found == {((*gold, *left),) * 3}
    found = {tuple(pairs_of(matches_of(one_image(order, [gold]), tmp_path))) for order in ([left, right], [right, left])}
    assert found == {((*left, *gold),) * 3}


# -- through files: no order of rows


@st.composite
def benchmarks(draw):
    boxes = st.lists(st.tuples(st.sampled_from(["litter", "pothole"]), box), max_size=7)
    images = [f"i{number}" for number in range(draw(st.integers(1, 3)))]
    gold = {image: draw(boxes) for image in images}
    return Plain(gold=gold, answers={model: {image: draw(boxes) for image in images} for model in "ab"})


def reordered(plain, chance):
    images = chance.sample(list(plain.gold), len(plain.gold))

    def mixed(boxes):
        return chance.sample(boxes, len(boxes))

    gold = {image: mixed(plain.gold[image]) for image in images}
    answers = {
        model: {image: mixed(said[image]) for image in chance.sample(images, len(images))}
        for model, said in plain.answers.items()
    }
    return Plain(classes=plain.classes, gold=gold, answers=answers)


def as_text(table):
    """A table without the categories' order, which is that of the files, in the order of image ids."""
    table = table.assign(image_id=table["image_id"].astype(str), **{"class": table["class"].astype(str)})
    return table.sort_values(["model", "iou", "image_id"], kind="stable", ignore_index=True)


@given(benchmarks(), st.randoms())
@settings(max_examples=16, deadline=None)
def test_matches_do_not_depend_on_the_order_of_golds_predictions_or_images(tmp_path_factory, plain, chance):
    folder = tmp_path_factory.mktemp("order")
    first = as_text(matches_of(plain, folder / "a"))
    second = as_text(matches_of(reordered(plain, chance), folder / "b"))
    pd.testing.assert_frame_equal(first, second, check_exact=True)


@given(benchmarks())
@settings(max_examples=16, deadline=None)
def test_matches_are_the_best_matching_and_the_rest_of_both_sides(tmp_path_factory, plain):
    table = as_text(matches_of(plain, tmp_path_factory.mktemp("best"), iou=[0.3, 0.5]))
    cells = dict(list(table.groupby(["model", "iou", "image_id", "class"], observed=True)))
    for model, level, image, name in itertools.product("ab", (0.3, 0.5), plain.gold, plain.classes):
        rows = cells.get((model, level, image, name), table.iloc[:0])
        golds = [one for label, one in plain.gold[image] if label == name]
        boxes = [one for label, one in plain.answers[model][image] if label == name]
        weights = {
            (g, p): exact_iou(a, b)
            for (g, a), (p, b) in itertools.product(enumerate(golds), enumerate(boxes))
            if qualifies(a, b, level)
        }
        size, total = best_by_search(weights)
        outcomes = rows["outcome"].value_counts()
        assert outcomes.reindex(["tp", "fp", "fn"]).tolist() == [size, len(boxes) - size, len(golds) - size]
        pairs = pairs_of(rows)
        assert len(pairs) == size
        assert sum(exact_iou(pair[:4], pair[4:]) for pair in pairs) == total
        assert all(qualifies(pair[:4], pair[4:], level) for pair in pairs)
        for side, said in (("gold", golds), ("predicted", boxes)):
            names = [f"{side}_{edge}" for edge in ("x_min", "y_min", "x_max", "y_max")]
            kept = rows.loc[rows["outcome"] != ("fp" if side == "gold" else "fn"), names]
            assert sorted(map(tuple, kept.to_numpy())) == sorted(map(tuple, said))


# -- many of one kind


def test_duplicates_match_once_each(tmp_path):
    one = [5, 5, 25, 25]
    table = matches_of(one_image([one] * 3, [one] * 5), tmp_path, iou=[0.5])
    assert table["outcome"].value_counts().to_dict() == {"tp": 3, "fp": 2, "fn": 0}
    assert len(pairs_of(table)) == 3
    assert set(pairs_of(table)) == {(*one, *one)}


def test_fifty_golds_and_five_thousand_copies(tmp_path):
    """A model that repeats itself: every gold box is found, all but one copy of each are false."""
    golds = [[20 * at, 0, 20 * at + 16, 16] for at in range(50)]
    boxes = [one for one in golds for _ in range(100)]
    random.Random(5).shuffle(boxes)
    plain = one_image(golds, boxes)
    table = matches_of(plain, tmp_path, iou=[0.5])
    assert table["outcome"].value_counts().to_dict() == {"tp": 50, "fp": 4950, "fn": 0}
    assert sorted(pairs_of(table)) == [(*one, *one) for one in golds]


def test_fifty_equal_golds_and_five_thousand_equal_copies(tmp_path):
    one = [5, 5, 25, 25]
    plain = one_image([one] * 50, [one] * 5000)
    benchmark = evalkit.read_benchmark(write_plain(plain, tmp_path))
    counts = evalkit.count(benchmark, iou=[0.5]).query("task == 'localisation'")
    assert counts[["tp", "fp", "fn"]].to_numpy().tolist() == [[50, 4950, 0]]
    assert evalkit.match(benchmark, iou=[0.5])["outcome"].value_counts().to_dict() == {"tp": 50, "fp": 4950, "fn": 0}


@given(benchmarks())
@settings(max_examples=25, deadline=None)
def test_counts_and_matches_agree_at_every_threshold(tmp_path_factory, plain):
    benchmark = evalkit.read_benchmark(write_plain(plain, tmp_path_factory.mktemp("agree")))
    counts = evalkit.count(benchmark).query("task == 'localisation'")
    table = evalkit.match(benchmark)
    keys = ["model", "iou", "image_id", "class"]
    from_matches = table.groupby([*keys, "outcome"], observed=True).size().unstack("outcome")
    from_matches = from_matches.reindex(columns=["tp", "fp", "fn"]).fillna(0).astype(int)
    said = counts.set_index(keys)[["tp", "fp", "fn"]]
    said = said[said.sum(axis=1) > 0]
    assert {key: tuple(row) for key, *row in from_matches.itertuples()} == {key: tuple(row) for key, *row in said.itertuples()}
    for key, tp, *_ in said.itertuples():
        golds = [one for label, one in plain.gold[key[2]] if label == key[3]]
        boxes = [one for label, one in plain.answers[key[0]][key[2]] if label == key[3]]
        edges = [(g, p) for g, a in enumerate(golds) for p, b in enumerate(boxes) if qualifies(a, b, key[1])]
        assert tp == len(matching_by_paths(edges))
