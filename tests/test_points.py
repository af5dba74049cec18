"""The point protocol: worked samples, its rules, an independent slow reference, and the shared cases of this area."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from helpers import rule
from hypothesis import given, settings
from hypothesis import strategies as st

import evalkit
from evalkit import DataError
from evalkit.point_benchmarks import ALL, NO_OBJECT, OBJECTS, POINT_BENCHMARKS, point_benchmark
from evalkit.point_metrics import harmonic_mean, point_intervals, point_scores
from evalkit.points import EVIDENCE, NON_STRICT, STRICT, assign, count_samples, counted, hits, pixels

SINGLE, COUNTING, PIXMO = (point_benchmark(name) for name in ("Where2Place", "PointBench", "Pixmo-Points"))


def one(benchmark, evidence, *, state=None, subset=""):
    """TP, FP, FN and H* of one sample."""
    p, *_ = evidence
    row = {"sample_id": "s", "subset": subset, "state": state or "points", **dict(zip(EVIDENCE, evidence, strict=True))}
    found = count_samples(pd.DataFrame([row]), benchmark).iloc[0]
    tp, fp, fn, hit, predicted, recall_tp, recall_fn = (int(found[name]) for name in (*STRICT, *NON_STRICT))
    assert predicted == p
    assert (recall_tp, recall_fn) == (tp, fn)
    return tp, fp, fn, hit


WORKED = {  # benchmark, subset, state, (P, G, M, H), (TP, FP, FN, H*)
    "single mask, 3 points, 2 inside": (SINGLE, "", "points", (3, 1, 1, 2), (1, 2, 0, 2)),
    "single mask, 1 point outside the range": (SINGLE, "", "points", (1, 1, 0, 0), (0, 1, 1, 0)),
    "explicit empty, positive": (COUNTING, "spatial", "empty", (0, 3, 0, 0), (0, 1, 3, 0)),
    "unparseable, positive": (COUNTING, "spatial", "unparseable", (0, 3, 0, 0), (0, 0, 3, 0)),
    "no object, explicit empty": (PIXMO, NO_OBJECT, "empty", (0, 1, 0, 0), (1, 0, 0, 0)),
    "no object, 2 points": (PIXMO, NO_OBJECT, "points", (2, 1, 0, 0), (0, 2, 1, 0)),
    "no object, unparseable": (PIXMO, NO_OBJECT, "unparseable", (0, 1, 0, 0), (0, 0, 1, 0)),
    "counting, expected 3, 2 points, both inside": (COUNTING, "counting", "points", (2, 3, 2, 2), (0, 2, 3, 0)),
    "counting, expected 3, 3 points, 2 inside": (COUNTING, "counting", "points", (3, 3, 2, 2), (2, 1, 1, 2)),
    "counting, expected 3, explicit empty": (COUNTING, "counting", "empty", (0, 3, 0, 0), (0, 0, 3, 0)),
    "union mask, expected 2, 4 points, 3 inside": (COUNTING, "spatial", "points", (4, 2, 2, 3), (2, 2, 0, 3)),
}


@pytest.mark.parametrize("name", WORKED)
def test_worked_samples(name):
    benchmark, subset, state, evidence, expected = WORKED[name]
    assert one(benchmark, evidence, state=state, subset=subset) == expected


def reference_counts(p, g, m, h, *, state, gated, no_object):
    """The rules again, one sample at a time, in the order in which they go before one another."""
    if gated and p != g:
        return 0, p, g, 0
    if no_object:
        return (1, 0, 0, 0) if state == "empty" else (0, p, 1, 0)
    if state == "empty":
        return 0, 1, g, 0
    tp = min(m, p, g)
    return tp, p - tp, g - tp, h


@settings(deadline=None)
@given(st.data())
def test_counts_of_any_evidence_agree_with_the_rules_one_by_one(data):
    rows, expected, subset_of = [], [], {"counting": COUNTING, "spatial": COUNTING, OBJECTS: PIXMO, NO_OBJECT: PIXMO}
    subset = data.draw(st.sampled_from([*subset_of, ""]))
    for number in range(data.draw(st.integers(1, 20))):
        state = data.draw(st.sampled_from(["points", "empty", "unparseable", "missing"]))
        p = data.draw(st.integers(1, 6)) if state == "points" else 0
        g = 1 if subset in ("", NO_OBJECT) else data.draw(st.integers(1, 6))
        h = 0 if subset == NO_OBJECT else data.draw(st.integers(0, p))
        m = data.draw(st.integers(0, min(h, g)))
        rows.append(
            {"sample_id": str(number), "subset": subset, "state": state, **dict(zip(EVIDENCE, (p, g, m, h), strict=True))}
        )
        expected.append(reference_counts(p, g, m, h, state=state, gated=subset == "counting", no_object=subset == NO_OBJECT))
    found = count_samples(pd.DataFrame(rows), subset_of.get(subset, SINGLE))
    assert found[[*STRICT, "non_strict_precision_hits"]].to_numpy().tolist() == [list(row) for row in expected]


@rule("points-evidence")
@pytest.mark.parametrize(
    ("evidence", "text"),
    [
        ((2, 3, 3, 2), r"M > min\(P, G\): .* \(P 2, G 3, M 3, H 2\)"),
        ((3, 1, 2, 3), r"M > min\(P, G\)"),
        ((3, 3, 3, 2), r"M > H: .* \(P 3, G 3, M 3, H 2\)"),
        ((2, 1, 1, 3), r"H > P: more points hit than there are \(P 2, G 1, M 1, H 3\)"),
        ((2, 1, -1, 0), "a count is negative"),
        ((2, 0, 0, 0), "G must be at least 1"),
        ((0, 1, 0, 0), "P must be 0 where no point was read, and at least 1 elsewhere"),
    ],
)
def test_rule_points_evidence_that_cannot_be_names_the_sample(evidence, text):
    with pytest.raises(DataError, match=rf"^Where2Place, sample s: {text}"):
        one(SINGLE, evidence)


# -- what a point hits ------------------------------------------------------------------------------------------------


def mask(width, height, *spans):
    """Full-height columns from..to, both included."""
    made = np.zeros((height, width), bool)
    for first, last in spans:
        made[:, first : last + 1] = True
    return made


def at(*points):
    return np.array(points, np.int64).reshape(-1, 2)


@rule("points-pixels")
def test_rule_points_pixels_are_floored_and_the_far_edge_is_the_last_pixel():
    found, in_range = pixels([(0, 0), (1000, 1000), (999.999, 0.5), (500, 333)], scale=1000, size=(640, 480))
    assert in_range.all()
    expected = [(min(639, int(x / 1000.0 * 640)), min(479, int(y / 1000.0 * 480))) for x, y in [(0, 0), (1000, 1000)]]
    assert found[:2].tolist() == [list(pair) for pair in expected] == [[0, 0], [639, 479]]
    assert found[2:].tolist() == [[639, 0], [320, 159]]


@rule("points-pixels")
@settings(deadline=None)
@given(st.floats(0, 1000), st.integers(1, 8000))
def test_rule_points_pixels_are_the_formula(value, size):
    found, _ = pixels([(value, 0)], scale=1000, size=(size, 1))
    assert found[0, 0] == min(size - 1, int(value / 1000.0 * size))


@rule("points-range")
def test_rule_points_range_keeps_points_out_of_it_from_the_edge():
    said = [(-0.001, 5), (5, 1000.001), (2000, 2000), (1000, 0)]
    found, in_range = pixels(said, scale=1000, size=(10, 10))
    assert in_range.tolist() == [False, False, False, True]
    assert found.tolist() == [[9, 0]]
    everywhere = np.ones((10, 10), bool)
    assert hits(found, [everywhere], targets=1).raw == 1


def test_pixels_of_other_scales():
    assert pixels([(63.5, 44.5)], scale=100, size=(200, 100))[0].tolist() == [[127, 44]]
    assert pixels([(0.5, 1)], scale=1, size=(200, 100))[0].tolist() == [[100, 99]]
    found, in_range = pixels([(199.9, 100), (200.1, 0), (3, 101)], scale=None, size=(200, 100))
    assert (found.tolist(), in_range.tolist()) == ([[199, 99]], [True, False, False])


@rule("points-m-and-h")
def test_rule_points_m_and_h_count_targets_and_points():
    """Three points, two inside one mask: the mask is one target that is covered, and two points have hit."""
    found = hits(at((2, 2), (3, 2), (9, 2)), [mask(10, 5, (0, 5))], targets=1)
    assert (found.matched, found.raw, found.points.tolist()) == (1, 2, [True, True, False])


@rule("points-union")
def test_rule_points_union_mask_covers_as_many_targets_as_points_hit_up_to_g():
    union = mask(20, 5, (0, 3), (10, 13))
    assert hits(at((1, 1), (2, 1), (11, 1), (19, 1)), [union], targets=2)[:2] == (2, 3)
    assert hits(at((1, 1), (2, 1)), [union], targets=3)[:2] == (2, 2)


GOLD = np.array([[10, 10], [30, 10]], float)


@rule("points-assignment")
def test_rule_points_assignment_goes_by_distance_before_masks():
    """(13, 10) goes to the first gold point, 3 + 12 < 17 + 8, though (18, 10) lies in the first mask and it in both."""
    masks = [mask(80, 20, (0, 20)), mask(80, 20, (12, 14), (25, 60))]
    assert 3 + 12 < 17 + 8
    for order in ([(13, 10), (18, 10)], [(18, 10), (13, 10)]):
        found = hits(at(*order), masks, targets=2, gold=GOLD)
        assert found[:2] == (1, 2)


@rule("points-assignment")
def test_rule_points_assignment_of_ties_has_the_most_hits_whatever_the_order():
    """Golds (0, 0) and (10, 0), points (5, 5) and (5, -5), all shifted by 20: every distance is the root of 50."""
    gold = np.array([[20, 20], [30, 20]], float)
    points = [(25, 25), (25, 15)]
    upper, lower = np.zeros((2, 60, 60), bool)
    lower[21:, :], upper[:20, :] = True, True
    for masks in ([lower, upper], [upper, lower]):
        assert [hits(at(*order), masks, targets=2, gold=gold)[:2] for order in (points, points[::-1])] == [(2, 2), (2, 2)]
    alone = [lower, np.zeros_like(lower)]
    assert [hits(at(*order), alone, targets=2, gold=gold)[:2] for order in (points, points[::-1])] == [(1, 1), (1, 1)]


@rule("points-hits")
def test_rule_points_hits_count_a_point_once_whatever_the_number_of_masks():
    both = mask(80, 20, (0, 79))
    assert hits(at((13, 10)), [both, both], targets=2, gold=GOLD)[:2] == (1, 1)


def slow_assignment(points, gold, inside):
    """Every way of pairing as many as can be: the least sum of distances, and of those the most hits."""
    size = min(len(points), len(gold))
    best = None
    for chosen in itertools.permutations(range(len(points)), size):
        for targets in itertools.combinations(range(len(gold)), size):
            way = sum(math.dist(points[p], gold[g]) for p, g in zip(chosen, targets, strict=True))
            hit = sum(bool(inside[g][p]) for p, g in zip(chosen, targets, strict=True))
            if best is None or way < best[0] - 1e-7 or (abs(way - best[0]) <= 1e-7 and hit > best[1]):
                best = way, hit
    return best


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4),
    st.data(),
)
def test_assignment_agrees_with_trying_every_pairing(points, gold, data):
    inside = [[data.draw(st.booleans()) for _ in points] for _ in gold]
    found, targets = assign(at(*points), np.array(gold, float), np.array(inside))
    way = sum(math.dist(points[p], gold[g]) for p, g in zip(found, targets, strict=True))
    hit = sum(inside[g][p] for p, g in zip(found, targets, strict=True))
    expected = slow_assignment(points, gold, inside)
    assert way == pytest.approx(expected[0], abs=1e-9)
    assert hit == expected[1]


# -- scores -----------------------------------------------------------------------------------------------------------


def samples_table(rows, *, benchmark="Where2Place", model="m"):
    """A table of samples from (id, subset, state, P, G, M, H), or (id, subset, state, right) for a yes or no."""
    made = []
    for sample_id, subset, state, *numbers in rows:
        evidence = numbers if len(numbers) == 4 else [0, 0, 0, 0]
        right = numbers[0] if len(numbers) == 1 else None
        head = {"model": model, "benchmark": benchmark, "sample_id": sample_id, "subset": subset, "state": state}
        scored = state != "missing"
        made.append(
            {**head, "reason": "", "scored": scored, "answer_correct": right, **dict(zip(EVIDENCE, evidence, strict=True))}
        )
    return counted(pd.DataFrame(made), point_benchmark(benchmark))


def whole(table, **options):
    scores = point_scores(table, **options)
    return scores[scores["subset"] == ALL].iloc[0]


@rule("points-strict")
def test_rule_points_strict_scores_are_micro():
    table = samples_table([("a", "", "points", 3, 1, 1, 2), ("b", "", "empty", 0, 1, 0, 0), ("c", "", "points", 1, 1, 1, 1)])
    row = whole(table)  # TP 1 + 0 + 1, FP 2 + 1 + 0, FN 0 + 1 + 0
    assert row[["strict_tp", "strict_fp", "strict_fn"]].tolist() == [2, 3, 1]
    assert row[["strict_precision", "strict_recall", "strict_f1"]].tolist() == [2 / 5, 2 / 3, 4 / (4 + 3 + 1)]


@rule("points-non-strict")
@rule("points-empty")
def test_rule_points_non_strict_precision_is_of_points_and_an_empty_answer_adds_none():
    table = samples_table([("a", "", "points", 3, 1, 1, 2), ("b", "", "empty", 0, 1, 0, 0), ("c", "", "points", 1, 1, 1, 1)])
    row = whole(table)
    p, r = 3 / 4, 2 / 3
    assert row[["hits", "predicted"]].tolist() == [3, 4]
    assert row[["non_strict_precision", "non_strict_recall"]].tolist() == [p, r]
    assert row["non_strict_f1"] == pytest.approx(2 * p * r / (p + r), abs=1e-15)


@rule("points-macro")
def test_rule_points_macro_is_the_mean_of_the_samples_own_scores():
    row = whole(samples_table([("a", "", "points", 3, 1, 1, 2), ("b", "", "empty", 0, 1, 0, 0)]))
    assert row["strict_macro_f1"] == pytest.approx((2 / (2 + 2) + 0) / 2)
    assert row["non_strict_macro_f1"] == pytest.approx((2 * (2 / 3) * 1 / (2 / 3 + 1) + 0) / 2)


@rule("points-undefined")
def test_rule_points_undefined_scores_are_zero():
    row = whole(samples_table([("a", "", "unparseable", 0, 1, 0, 0)]))
    assert row[["strict_precision", "strict_f1", "non_strict_precision", "non_strict_f1"]].tolist() == [0, 0, 0, 0]
    only_no_object = whole(samples_table([("a", NO_OBJECT, "empty", 0, 1, 0, 0)], benchmark="Pixmo-Points"))
    assert only_no_object[["strict_f1", "non_strict_recall", "non_strict_precision", "non_strict_f1"]].tolist() == [1, 1, 0, 0]
    assert harmonic_mean(np.array([0.0]), np.array([0.0]), zero_division=np.nan).tolist() == [0]


def test_the_stored_recall_counts_and_precision_counts_are_no_single_triple():
    row = samples_table([("a", "", "points", 3, 1, 1, 2)]).iloc[0]
    assert row[NON_STRICT].tolist() == [2, 3, 1, 0]


@rule("points-gate")
def test_rule_points_gate_is_exact_belongs_to_counting_and_comes_before_the_empty_rule():
    counting = [("a", "counting", "points", 2, 3, 2, 2), ("b", "counting", "empty", 0, 3, 0, 0)]
    table = samples_table([*counting, ("c", "spatial", "points", 4, 2, 2, 3)], benchmark="PointBench")
    assert table["strict_fp"].tolist() == [2, 0, 2]
    assert table["non_strict_precision_hits"].tolist() == [0, 0, 3]
    assert whole(table)["strict_tp"] == 0 + 0 + 2  # Overall is micro over all samples, not over counting alone


@rule("points-no-object")
def test_rule_points_no_object_has_one_sentinel_target():
    rows = [("a", NO_OBJECT, "empty", 0, 1, 0, 0), ("b", NO_OBJECT, "points", 2, 1, 0, 0), ("c", OBJECTS, "points", 1, 1, 1, 1)]
    scores = point_scores(samples_table(rows, benchmark="Pixmo-Points")).set_index("subset")
    assert scores.loc[NO_OBJECT, STRICT].tolist() == [1, 2, 1]
    assert scores.loc[ALL, STRICT].tolist() == [2, 2, 1]
    assert scores.loc[ALL, "hits"] == 1


def robospatial(context, right, wrong):
    rows = [(f"c{at}", "context", *one) for at, one in enumerate(context)]
    rows += [(f"y{at}", "compatibility" if at % 2 else "configuration", "answered", at < right) for at in range(right + wrong)]
    return samples_table(rows, benchmark="RoboSpatial")


@rule("points-robospatial")
def test_rule_points_robospatial_mixes_points_and_answers():
    """122 context samples with TP 61, FP 61, FN 61, so a strict F1 of 1/2 and a recall of 1/2; 90 hits of 120 points, so a
    non-strict precision of 3/4 and an F1 of 0.6.
    """
    tp, hit, points = 61, 90, 120
    context = [("points", 3, 1, 1, 3)] * 14 + [("points", 2, 1, 1, 2)] * 1 + [("points", 1, 1, 1, 1)] * 46
    assert sum(one[3] for one in context) == tp
    assert sum(one[4] for one in context) == hit
    assert sum(one[1] for one in context) == hit
    context += [("points", 1, 1, 0, 0)] * 30 + [("empty", 0, 1, 0, 0)] * 2 + [("unparseable", 0, 1, 0, 0)] * 29
    fp = (3 - 1) * 14 + (2 - 1) * 1 + 30 + 2
    assert (sum(one[1] for one in context), len(context), fp) == (points, 122, 61)
    row = whole(robospatial(context, 171, 57))
    assert (row["strict_f1"], row["non_strict_f1"]) == (0.5, pytest.approx(2 * 0.75 * 0.5 / 1.25, abs=1e-15))
    assert pytest.approx(0.6, abs=1e-15) == 2 * 0.75 * 0.5 / 1.25
    assert row["overall_strict"] == (122 * 0.5 + 171) / 350
    assert row["overall_non_strict"] == pytest.approx((122 * 0.6 + 171) / 350, abs=1e-15)
    assert row["complete"]


@rule("points-robospatial")
def test_rule_points_robospatial_counts_an_answer_that_is_neither_as_wrong():
    rows = [
        ("c", "context", "points", 1, 1, 1, 1),
        ("y", "compatibility", "unparseable", False),
        ("z", "configuration", "answered", True),
    ]
    assert whole(samples_table(rows, benchmark="RoboSpatial"))["overall_strict"] == pytest.approx((1 * 1 + 1) / 3)


def test_agg_06_the_mix_is_pooled(case):
    groups = case.given["groups"]
    context = [("unparseable", 0, 1, 0, 0)] * groups["context"]["n"]
    rows = [(f"c{at}", "context", *one) for at, one in enumerate(context)]
    for name in ("compatibility", "configuration"):
        rows += [(f"{name}{at}", name, "answered", at < groups[name]["correct"]) for at in range(groups[name]["n"])]
    scores = point_scores(samples_table(rows, benchmark="RoboSpatial")).set_index("subset")
    assert scores.loc[ALL, "overall_non_strict"] == pytest.approx(case.expected["mix"], abs=5e-8)
    assert scores.loc[ALL, "overall_non_strict"] == (84 + 82) / 350
    assert scores.loc[["context", "compatibility", "configuration"], "samples"].tolist() == [122, 105, 123]
    assert scores.loc[["compatibility", "configuration"], "overall_strict"].tolist() == [84 / 105, 82 / 123]
    assert np.isnan(scores.loc["compatibility", "strict_f1"])


@rule("points-complete")
def test_rule_points_complete_goes_by_the_known_size_and_by_missing_answers():
    full = [(str(at), "spatial", "points", 1, 1, 1, 1) for at in range(966)]
    assert whole(samples_table(full, benchmark="PointBench"))["complete"]
    assert not whole(samples_table(full[1:], benchmark="PointBench"))["complete"]
    missing = [*full[1:], ("0", "spatial", "missing", 0, 1, 0, 0)]
    row = whole(samples_table(missing, benchmark="PointBench"))
    assert (bool(row["complete"]), row["samples"]) == (False, 965)
    assert whole(samples_table([("a", "", "points", 1, 1, 1, 1)]))["complete"]  # the size of Where2Place is not known


# -- intervals --------------------------------------------------------------------------------------------------------


def slow_intervals(table, replicates, level, seed):
    """Draw the samples one replicate at a time and score them again: all of the strict, non-strict and overall scores."""
    table = table.sort_values("sample_id")
    binary = table["subset"].isin(["compatibility", "configuration"])
    points, answers = table[~binary], table.loc[binary, "answer_correct"].to_numpy(float)
    drawn = np.random.default_rng(seed).integers(0, len(points), size=(replicates, len(points)))
    generator = np.random.default_rng([seed, 1])
    asked = (
        generator.integers(0, len(answers), size=(replicates, len(answers))) if len(answers) else np.zeros((replicates, 0), int)
    )
    values = []
    for these, those in zip(drawn, asked, strict=True):
        sums = points.iloc[these][[*STRICT, *NON_STRICT]].sum()
        tp, fp, fn, hit, predicted, *_ = map(int, sums)
        strict = 2 * tp / (2 * tp + fp + fn)
        p, r = hit / predicted if predicted else math.nan, tp / (tp + fn)
        loose = 2 * p * r / (p + r) if p + r else p + r
        mixed = [(len(points) * f1 + answers[those].sum()) / (len(points) + len(answers)) for f1 in (strict, loose)]
        values.append([strict, loose, *mixed])
    tails = [(1 - level) / 2, (1 + level) / 2]
    return np.array([np.quantile(column[~np.isnan(column)], tails) for column in np.array(values).T])


@rule("points-intervals")
@pytest.mark.parametrize("mixed", [False, True])
def test_rule_points_intervals_are_those_of_drawing_samples_and_scoring_again(mixed):
    random = np.random.default_rng(3)
    context = []
    for p, g, m, h in random.integers(0, 4, size=(60, 4)):
        g, h = 1, min(h, p)
        context.append(("points" if p else "empty", p, g, min(m, p, g, h), h))
    rows = [(f"c{at}", "context" if mixed else "", *one) for at, one in enumerate(context)]
    rows += [(f"y{at}", "compatibility", "answered", at % 3 == 0) for at in range(40)] if mixed else []
    table = samples_table(rows, benchmark="RoboSpatial" if mixed else "Where2Place")
    found = point_intervals(table, replicates=400, level=0.9, seed=5)
    found = found[found["subset"] == ALL]
    assert found["statistic"].tolist() == ["strict_f1", "non_strict_f1", "overall_strict", "overall_non_strict"]
    assert found[["low", "high"]].to_numpy() == pytest.approx(slow_intervals(table, 400, 0.9, 5), abs=1e-12)
    row = whole(table, intervals=point_intervals(table, replicates=400, level=0.9, seed=5))
    primary = "overall_non_strict" if mixed else "non_strict_f1"
    assert row[["low", "high"]].tolist() == found.loc[found["statistic"] == primary, ["low", "high"]].iloc[0].tolist()


def test_intervals_depend_on_neither_order_nor_threads_nor_pieces(monkeypatch):
    rows = [(f"s{at}", "", "points", 2, 1, at % 2, at % 3) for at in range(50)]
    rows = [(*row[:5], min(row[5], row[6]), row[6]) for row in rows]
    table = samples_table(rows)
    expected = point_intervals(table, replicates=200)
    assert point_intervals(table.iloc[::-1], replicates=200, jobs=3).equals(expected)
    pieces = evalkit.intervals.weights
    monkeypatch.setattr("evalkit.point_metrics.weights", lambda n, **options: pieces(n, chunk=70, **options))
    again = point_intervals(table, replicates=200)
    assert again[["low", "high"]].to_numpy() == pytest.approx(expected[["low", "high"]].to_numpy(), abs=1e-12)


def test_an_interval_of_nothing_but_unreadable_answers_is_not_estimable():
    found = point_intervals(samples_table([(str(at), "", "unparseable", 0, 1, 0, 0) for at in range(9)]), replicates=100)
    reasons = found[found["subset"] == ALL].set_index("statistic")["reason"]
    assert reasons["non_strict_f1"].startswith("not estimable")
    assert reasons["strict_f1"].startswith("degenerate")


def test_counts_of_subsets_add_up_to_the_whole():
    rows = [(f"s{at}", ["location", "placement", "unseen"][at % 3], "points", 2, 1, at % 2, at % 2) for at in range(31)]
    scores = point_scores(samples_table(rows, benchmark="RefSpatial-Bench")).set_index("subset")
    columns = [*STRICT, "hits", "predicted", "samples"]
    assert scores.drop(ALL)[columns].sum().tolist() == scores.loc[ALL, columns].tolist()


def test_the_ten_benchmarks_are_those_of_the_protocol_and_an_eleventh_is_a_row(monkeypatch):
    assert list(POINT_BENCHMARKS) == [
        *("Pixmo-Points", "PointBench", "Part-Affordance-2K", "RoboRefit", "RoboSpatial", "VABench-Point", "PIOBench"),
        *("Where2Place", "RefSpatial-Bench", "RoboAfford"),
    ]
    mine = point_benchmark("Where2Place")._replace(name="Mine", subsets=("x", "y"), counting="x")
    monkeypatch.setitem(POINT_BENCHMARKS, "Mine", mine)
    table = samples_table([("a", "x", "points", 2, 1, 1, 2), ("b", "y", "points", 2, 1, 1, 2)], benchmark="Mine")
    scores = point_scores(table).set_index("subset")
    assert scores.loc[["x", "y"], "strict_tp"].tolist() == [0, 1]


@rule("points-complete")
@pytest.mark.parametrize(
    ("name", "parts", "complete"),
    [
        ("RoboSpatial", {"context": 122, "compatibility": 228}, True),
        ("RoboSpatial", {"context": 121, "compatibility": 229}, False),  # 350 in all
        ("RoboRefit", {"": 2000}, True),
        ("RoboRefit", {"": 1999}, False),
    ],
)
def test_rule_points_complete_holds_for_every_known_size(name, parts, complete):
    rows = []
    for subset, size in parts.items():
        one = ("answered", True) if subset == "compatibility" else ("points", 1, 1, 1, 1)
        rows += [(f"{subset}{at}", subset, *one) for at in range(size)]
    assert bool(whole(samples_table(rows, benchmark=name))["complete"]) == complete
