"""Intervals: the draws, the percentiles, the rules for undefined replicates, and the paired comparison."""

import numpy as np
import pandas as pd
import pytest
from helpers import rule
from scipy import stats

import evalkit
from evalkit import EvalkitError, intervals
from evalkit.intervals import DEGENERATE, NOT_ESTIMABLE, bootstrap, percentile_interval, weights
from evalkit.sample import write_sample

BOX, ELSEWHERE = [0, 0, 10, 10], [50, 50, 60, 60]
HEAD = "scope == 'valid' and level == 'overall' and average == 'micro' and iou == 0.5"


@pytest.fixture(scope="module")
def toytown(tmp_path_factory):
    benchmark = evalkit.read_benchmark(write_sample(tmp_path_factory.mktemp("sample") / "toytown", images=80))
    return benchmark, evalkit.count(benchmark)


def scored(benchmark, **options):
    counts = evalkit.count(benchmark)
    return evalkit.add_intervals(evalkit.scores(benchmark, counts), bootstrap(benchmark, counts, **options))


def counts_by_image(benchmark, counts, model, iou):
    """tp, fp, fn of each image, images in the order of their ids."""
    mine = counts[(counts["model"] == model) & (counts["iou"] == iou)]
    summed = mine.groupby("image_id", observed=False)[["tp", "fp", "fn"]].sum().sort_index(key=lambda ids: ids.astype(str))
    return summed.to_numpy(float)


# The draws


@rule("draws")
def test_rule_draws_are_those_of_one_call_of_the_generator_whatever_the_pieces():
    n, replicates, seed = 37, 250, 5
    drawn = np.random.default_rng(seed).integers(0, n, size=(replicates, n))
    expected = np.array([np.bincount(row, minlength=n) for row in drawn])
    for chunk in (1, 100, 1000, 10**6):
        assert np.array_equal(np.concatenate(list(weights(n, replicates=replicates, seed=seed, chunk=chunk))), expected)


def test_boo_06_the_order_of_rows_changes_nothing(cases, make_benchmark):
    rows = {"i1": [[*BOX, "a"]], "i2": [[*BOX, "a"], [*ELSEWHERE, "a"]], "i3": [[*BOX, "b"]]}
    said = {"i1": [[*BOX, "a"]], "i2": [[*BOX, "a"]], "i3": [[*ELSEWHERE, "b"]]}
    orders = [cases["BOO-06"]["minimal_input"][f"rows_order_{number}"] for number in (1, 2)]
    tables = [
        scored(make_benchmark({key: rows[key] for key in order}, {"m": {key: said[key] for key in order}}), seed=7)
        for order in orders
    ]
    pd.testing.assert_frame_equal(*tables)


@rule("draws")
def test_jobs_and_pieces_change_no_digit(toytown, monkeypatch):
    benchmark, counts = toytown
    scores = evalkit.scores(benchmark, counts)
    one = evalkit.add_intervals(scores, bootstrap(benchmark, counts, replicates=150))
    many = evalkit.add_intervals(scores, bootstrap(benchmark, counts, replicates=150, jobs=4))
    pd.testing.assert_frame_equal(one, many, check_exact=True)
    monkeypatch.setattr(intervals.weights, "__kwdefaults__", {"chunk": 333})
    pieces = evalkit.add_intervals(scores, bootstrap(benchmark, counts, replicates=150))
    pd.testing.assert_frame_equal(one, pieces, check_exact=True)


# Percentiles, against scipy and by hand


@rule("bootstrap")
@pytest.mark.parametrize(("images", "seed", "model"), [(80, 5, "cautious"), (41, 6, "eager"), (13, 7, "loose")])
def test_micro_f2_has_the_interval_of_scipy(tmp_path, images, seed, model):
    benchmark = evalkit.read_benchmark(write_sample(tmp_path / "toytown", images=images, seed=seed))
    counts = evalkit.count(benchmark)
    table = evalkit.add_intervals(evalkit.scores(benchmark, counts), bootstrap(benchmark, counts, seed=11))
    row = table[table["model"] == model].query(HEAD).iloc[0]

    def f2(tp, fp, fn, axis=-1):
        tp, fp, fn = (column.sum(axis=axis) for column in (tp, fp, fn))
        return 5 * tp / (5 * tp + fp + 4 * fn)

    columns = tuple(counts_by_image(benchmark, counts, model, 0.5).T)
    generator = np.random.default_rng(11)
    options = {"n_resamples": 2000, "paired": True, "vectorized": True, "method": "percentile", "rng": generator}
    low, high = stats.bootstrap(columns, f2, **options).confidence_interval
    assert row["f2_low"] == pytest.approx(low, abs=1e-12)
    assert row["f2_high"] == pytest.approx(high, abs=1e-12)


@rule("bootstrap")
@pytest.mark.parametrize("model", ["eager", "loose"])
def test_the_negative_image_rate_has_the_interval_of_scipy(toytown, model):
    """Of resampled images, and not only of the clean ones among them: their number varies too."""
    benchmark, counts = toytown
    coverage = evalkit.add_rate_intervals(evalkit.coverage(benchmark), bootstrap(benchmark, counts, seed=11))
    row = coverage[(coverage["model"] == model) & (coverage["scope"] == "valid")].iloc[0]
    gold, said = (
        set(table["image_id"].astype(str)) for table in (benchmark.gold, benchmark.predictions.query("model == @model"))
    )
    answers = benchmark.responses.query("model == @model and state == 'valid'")
    ids = sorted(answers["image_id"].astype(str))
    clean = np.array([key not in gold for key in ids], float)
    wrong = np.array([key not in gold and key in said for key in ids], float)
    options = {"n_resamples": 2000, "paired": True, "vectorized": True, "method": "percentile"}
    low, high = stats.bootstrap(
        (wrong, clean),
        lambda wrong, clean, axis=-1: wrong.sum(axis=axis) / clean.sum(axis=axis),
        rng=np.random.default_rng(11),
        **options,
    ).confidence_interval
    assert 0 <= low < high
    assert [row["negative_fpr_low"], row["negative_fpr_high"]] == pytest.approx([low, high], abs=1e-12)
    assert (row["negative_fpr_undefined"], row["negative_fpr_reason"]) == (0, "")


@rule("bootstrap")
@pytest.mark.parametrize(("scope", "replicate"), [("all", 17), ("common", 0), ("common", 99)])
def test_every_score_of_a_replicate_is_that_of_the_resampled_data(toytown, make_benchmark, scope, replicate):
    """The slow way: write the resampled images out as a benchmark of their own and score that."""
    benchmark, counts = toytown
    drawn = bootstrap(benchmark, counts, replicates=100, seed=3, statistics=("precision", "recall", "f1", "f2"), wanted=[scope])
    ids = benchmark.images["image_id"].astype(str)
    if scope == "common":
        ids = ids[benchmark.valid.all(axis=0)]
    ids = np.sort(ids.to_numpy())
    chosen = ids[np.random.default_rng(3).integers(0, len(ids), size=(100, len(ids)))[replicate]]

    def rows(table):
        groups = {key: part for key, part in table.groupby("image_id", observed=True)}
        columns = ["x_min", "y_min", "x_max", "y_max"]
        boxes = {
            key: [[*box, name] for *box, name in part[[*columns, "class"]].to_numpy().tolist()] for key, part in groups.items()
        }
        return {f"{number}": boxes.get(key, []) for number, key in enumerate(chosen)}

    predictions = {model: rows(benchmark.predictions[benchmark.predictions["model"] == model]) for model in benchmark.models}
    classes = dict(zip(benchmark.classes["class_name"], benchmark.classes["domain"], strict=True))
    again = make_benchmark(rows(benchmark.gold), predictions, classes=classes)
    table = evalkit.scores(again, evalkit.count(again), zero_division=np.nan)  # 0/0 is undefined in a replicate
    again_coverage = evalkit.coverage(again)
    for model in benchmark.models:
        rows_of = table[(table["model"] == model) & (table["scope"] == "all")]
        for statistic, found in drawn.scores.items():
            expected = rows_of[statistic].to_numpy(float)
            assert np.allclose(found[model, scope][replicate].ravel(), expected, rtol=0, atol=1e-12, equal_nan=True), model
        rate = again_coverage.loc[
            (again_coverage["model"] == model) & (again_coverage["scope"] == "valid"), "negative_fpr"
        ].item()
        assert drawn.negative_fpr[model, scope][replicate] == pytest.approx(rate, abs=1e-12)


@rule("percentile")
def test_boo_07_percentiles_are_interpolated_linearly(cases):
    case = cases["BOO-07"]
    found = percentile_interval(np.arange(2000.0), np.array(1000.0), level=case["minimal_input"]["level"])
    assert found.low == pytest.approx(case["expected"]["low"], abs=1e-12)  # 0.025 * 1999
    assert found.high == pytest.approx(case["expected"]["high"], abs=1e-12)


def test_boo_01_images_are_resampled_and_not_boxes(cases, make_benchmark):
    """One image with nine boxes found, one with a box missed: recall is 1.0, 0.9 or 0.0 in a replicate."""
    nine = [[20 * k, 0, 20 * k + 10, 10, "a"] for k in range(cases["BOO-01"]["minimal_input"]["images"]["i1"]["tp"])]
    benchmark = make_benchmark({"i1": nine, "i2": [[*BOX, "a"]]}, {"m": {"i1": nine, "i2": []}})
    row = scored(benchmark, statistics=("f2", "recall")).query(HEAD).iloc[0]
    assert [row["recall_low"], row["recall_high"]] == cases["BOO-01"]["expected"]["ci"]


# Undefined and degenerate


@rule("undefined-replicates")
def test_boo_03_a_rare_class_is_not_estimable(cases, make_benchmark):
    gold = {f"i{k:02d}": [[*BOX, "c" if k == 9 else "a"]] for k in range(cases["BOO-03"]["minimal_input"]["images"])}
    row = scored(make_benchmark(gold, {"m": gold})).query(HEAD.replace("overall", "class").replace("'micro'", "''"))
    row = row[row["label"] == "c"].iloc[0]
    assert np.isnan([row["f2_low"], row["f2_high"]]).all()
    assert row["reason"] == NOT_ESTIMABLE
    share = cases["BOO-03"]["expected"]["expected_undefined_share"]  # 0.9 ** 10
    assert abs(row["undefined"] / row["replicates"] - share) < 4 * np.sqrt(share * (1 - share) / row["replicates"])
    assert row["f2"] == 1.0


@rule("degenerate")
def test_boo_04_no_variation_is_a_point_and_says_so(cases, make_benchmark):
    gold = {f"i{k}": [[*BOX, "a"]] for k in range(cases["BOO-04"]["minimal_input"]["images"])}
    row = scored(make_benchmark(gold, {"m": gold})).query(HEAD).iloc[0]
    assert [row["f2_low"], row["f2_high"]] == cases["BOO-04"]["expected"]["ci"]
    assert row["reason"] == DEGENERATE


@rule("undefined-replicates")
def test_rule_undefined_replicates_up_to_5_percent_are_left_out():
    values = np.r_[np.full(5, np.nan), np.arange(95.0)]
    found = percentile_interval(values, np.array(47.0))
    assert (found.low, found.high) == pytest.approx((0.025 * 94, 0.975 * 94), abs=1e-12)
    assert found.undefined == 5
    found = percentile_interval(np.r_[np.full(6, np.nan), np.arange(94.0)], np.array(47.0))
    assert np.isnan(found.low)
    assert found.reason == NOT_ESTIMABLE


@rule("undefined-replicates")
def test_zero_division_does_not_reach_the_replicates(toytown):
    benchmark, counts = toytown
    drawn = bootstrap(benchmark, counts, replicates=100)
    tables = [evalkit.add_intervals(evalkit.scores(benchmark, counts, zero_division=value), drawn) for value in (0.0, np.nan)]
    defined = tables[0]["reason"] != NOT_ESTIMABLE
    for name in ("f2_low", "f2_high", "undefined"):
        left, right = (table.loc[defined & ~table["reason"].str.startswith("no "), name].to_numpy(float) for table in tables)
        assert np.array_equal(left, right, equal_nan=True)


def test_the_false_positive_rate_has_an_interval_and_the_view_has_none(toytown):
    benchmark, counts = toytown
    coverage = evalkit.add_rate_intervals(evalkit.coverage(benchmark), bootstrap(benchmark, counts))
    known = coverage[coverage["scope"] != "all"]
    assert (known["negative_fpr_low"] <= known["negative_fpr"]).all()
    assert (known["negative_fpr"] <= known["negative_fpr_high"]).all()
    assert coverage.loc[coverage["scope"] == "all", ["negative_fpr_low", "negative_fpr_high"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replicates": 99}, "replicates must be at least 100, not 99"),
        ({"jobs": 0}, "jobs must be at least 1, not 0"),
        ({"statistics": ("f3",)}, "statistic must be one of precision, recall, f1, f2, not 'f3'"),
    ],
)
def test_settings_that_are_refused(toytown, options, words):
    with pytest.raises(EvalkitError, match=words):
        bootstrap(*toytown, **options)


def test_a_level_outside_0_to_1_is_refused(toytown):
    benchmark, counts = toytown
    with pytest.raises(EvalkitError, match="level must lie between 0 and 1, not 95"):
        evalkit.add_intervals(evalkit.scores(benchmark, counts), bootstrap(benchmark, counts, replicates=100), level=95)


# Two models


@rule("paired")
def test_boo_09_a_paired_difference_that_separate_intervals_do_not_show(cases, make_benchmark):
    """A finds the first 60 of 100, B the first 70: F2 is monotone in the share found, so recall is compared."""
    given = cases["BOO-09"]["minimal_input"]
    ids = [f"i{k:03d}" for k in range(given["images"])]
    found = {name: {key: [[*BOX, "a"]] if k < n else [] for k, key in enumerate(ids)} for name, n in (("B", 70), ("A", 60))}
    benchmark = make_benchmark({key: [[*BOX, "a"]] for key in ids}, found)
    counts = evalkit.count(benchmark)
    drawn = bootstrap(benchmark, counts, statistics=("f2", "recall"))
    scores = evalkit.scores(benchmark, counts)
    row = evalkit.compare(scores, drawn).query(HEAD.replace("valid", "common") + " and statistic == 'recall'").iloc[0]
    assert (row["model_a"], row["model_b"]) == ("B", "A")
    assert row["difference"] == pytest.approx(cases["BOO-09"]["expected"]["diff"])
    assert (row["low"] > 0) == cases["BOO-09"]["expected"]["ci_excludes_0"]
    assert row["share_above_zero"] == 1.0
    assert row["p_value"] == 2 * (1 + 0) / (2000 + 1)
    table = evalkit.add_intervals(scores, drawn).query(HEAD).set_index("model")
    assert table.loc["A", "recall_high"] > table.loc["B", "recall_low"]  # the separate intervals overlap


@rule("paired")
def test_the_same_answers_differ_by_nothing(make_benchmark):
    gold = {f"i{k}": [[*BOX, "a"]] for k in range(12)}
    half = {key: boxes if k % 2 else [] for k, (key, boxes) in enumerate(gold.items())}
    benchmark = make_benchmark(gold, {"one": half, "two": half})
    counts = evalkit.count(benchmark)
    row = evalkit.compare(evalkit.scores(benchmark, counts), bootstrap(benchmark, counts)).query(
        HEAD.replace("valid", "common")
    )
    assert row[["difference", "low", "high", "share_above_zero"]].to_numpy().tolist() == [[0, 0, 0, 0]]
    assert row["p_value"].tolist() == [1.0]  # min(1, 2 (1 + 2000) / 2001)


@rule("undefined-replicates")
def test_a_comparison_counts_defined_replicates_only(make_benchmark):
    """One of four images in which the class occurs: 0.75 ** 4 = 32 % undefined; of twelve, a third, 0.67 ** 12 = 1 %."""
    ids = [f"i{k:02d}" for k in range(12)]
    gold = {key: [[*BOX, "c" if k % 3 == 0 else "a"]] for k, key in enumerate(ids)}
    half = {key: boxes if k in (0, 1, 6) else [] for k, (key, boxes) in enumerate(gold.items())}
    benchmark = make_benchmark(gold, {"one": gold, "two": half})
    counts = evalkit.count(benchmark)
    table = evalkit.compare(evalkit.scores(benchmark, counts), bootstrap(benchmark, counts, seed=9))
    row = table[(table["label"] == "c") & (table["iou"] == 0.5) & (table["scope"] == "common")].iloc[0]
    drawn = np.random.default_rng(9).integers(0, 12, size=(2000, 12))
    times = np.stack([(drawn == k).sum(axis=1) for k in (0, 3, 6, 9)])  # images with the class; 0 and 6 are found by both
    found, all_of = times[[0, 2]].sum(axis=0), times.sum(axis=0)
    known = all_of > 0
    difference = 1 - 5 * found[known] / (5 * found[known] + 4 * (all_of - found)[known])
    undefined = int((~known).sum())
    assert 0 < undefined < 100
    assert row["undefined"] == undefined
    assert [row["low"], row["high"]] == pytest.approx(np.quantile(difference, [0.025, 0.975]), abs=1e-12)
    assert row["share_above_zero"] == pytest.approx((difference > 0).mean(), abs=1e-12)
    sides = min((difference <= 0).sum(), (difference >= 0).sum())
    assert row["p_value"] == pytest.approx(min(1, 2 * (1 + sides) / (known.sum() + 1)), abs=1e-12)
    assert row["replicates"] == 2000


def test_rows_are_found_by_their_keys(toytown):
    """Some rows in another order have the intervals that they have in the whole table."""
    benchmark, counts = toytown
    drawn = bootstrap(benchmark, counts, replicates=100, statistics=("f2", "recall"))
    scores = evalkit.scores(benchmark, counts)
    some = scores.sample(frac=0.3, random_state=4)
    whole = evalkit.add_intervals(scores, drawn)
    pd.testing.assert_frame_equal(evalkit.add_intervals(some, drawn), whole.loc[some.index])
    mixed = scores.sample(frac=1, random_state=5)
    pd.testing.assert_frame_equal(evalkit.compare(mixed, drawn), evalkit.compare(scores, drawn))


def test_scores_of_other_counts_are_refused(toytown, make_benchmark):
    drawn = bootstrap(*toytown, replicates=100)
    other = make_benchmark({"1": [[*BOX, "a"]]}, {"m": {"1": [[*BOX, "a"]]}})
    scores = evalkit.scores(other, evalkit.count(other))
    with pytest.raises(EvalkitError, match=r"the replicates have no score \{.*'label': 'a'\}; they are of other counts"):
        evalkit.add_intervals(scores, drawn)
    benchmark, counts = toytown
    scores = evalkit.scores(benchmark, counts)
    lacking = scores.drop(scores.index[(scores["model"] == "eager") & (scores["scope"] == "common")][0])
    with pytest.raises(EvalkitError, match=r"the models '.*' and '.*' have different rows of scores"):
        evalkit.compare(lacking, drawn)


@rule("undefined-replicates")
def test_every_statistic_has_its_own_number_of_undefined_replicates(make_benchmark):
    """Precision of a class that one of ten images predicts is undefined in a third of the replicates; recall never is."""
    gold = {f"i{k}": [[*BOX, "a"]] for k in range(10)}
    benchmark = make_benchmark(gold, {"m": {key: boxes if key == "i3" else [] for key, boxes in gold.items()}})
    row = scored(benchmark, statistics=("f2", "precision", "recall")).query(HEAD).iloc[0]
    drawn = np.random.default_rng(intervals.SEED).integers(0, 10, size=(2000, 10))
    assert row["precision_undefined"] == (drawn != 3).all(axis=1).sum()
    assert row["precision_reason"] == NOT_ESTIMABLE
    assert (row["recall_undefined"], row["undefined"]) == (0, 0)
    assert (row["recall_reason"], row["reason"]) == ("", "")


@rule("holm")
def test_holm_by_hand():
    """Sorted 0.01, 0.03, 0.04 times 3, 2, 1, never falling; an undefined p-value is not counted."""
    found = intervals.holm(pd.Series([0.01, 0.04, np.nan, 0.03]))
    assert found.tolist()[:2] == pytest.approx([3 * 0.01, 2 * 0.03])
    assert np.isnan(found[2])
    assert found[3] == pytest.approx(2 * 0.03)


@rule("holm")
def test_holm_is_over_the_pairs_of_models_of_one_score(toytown):
    benchmark, counts = toytown
    table = evalkit.compare(evalkit.scores(benchmark, counts), bootstrap(benchmark, counts, replicates=200))
    pairs = len(benchmark.models) * (len(benchmark.models) - 1) // 2
    head = table.query(HEAD.replace("valid", "common"))
    assert len(head) == pairs
    assert head["p_holm"].min() == pytest.approx(pairs * head["p_value"].min())
    assert (head["p_holm"] >= head["p_value"]).all()
