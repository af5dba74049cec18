"""Every metric against slow references, and through what must not change it, or must change it in a known way."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import OUTCOMES, RATIOS, SCOPES, Plain, image_counts, plain_coverage, plain_scores, ratios, write_plain

import evalkit
from evalkit.metrics import COVERAGE_COLUMNS, SCORE_COLUMNS, divide, fbeta, precision, recall

# Where a metric stands: in the scores, a column in the rows of a level and an average; in the coverage, a column.
ROWS = [
    ("overall", "micro"),
    ("overall", "macro"),
    ("overall", "macro_gold"),
    ("domain", "micro"),
    ("class", ""),
    ("outside", "micro"),
]
REGISTRY = {
    **{f"{level} {average} {name}": ("scores", level, average, name) for level, average in ROWS for name in RATIOS},
    **{name: ("coverage", "", "", name) for name in ("coverage", "negative_fpr", "fp_boxes_per_negative")},
}
NUMBERS = {  # columns that are no metric: keys, texts, counts, and the intervals
    "scores": {
        *("model", "scope", "task", "iou", "relation", "level", "average", "label", "reason"),
        *(*OUTCOMES, "n_images", "n_gold"),
    },
    "coverage": {
        *("model", "scope", "models", "images", "valid", "invalid", "missing"),
        *("negative_images", "negative_with_boxes"),
    },
}
INTERVALS = {
    "scores": {"f2_low", "f2_high", "replicates", "undefined"},
    "coverage": {"negative_fpr_low", "negative_fpr_high"},
}
CLASSES = {"litter": "street", "pothole": "road", "crack": "road", "graffiti": ""}

name = st.sampled_from([*CLASSES, "unicorn", "ghost"])
corner, side = st.integers(0, 10), st.integers(1, 8)
box = st.builds(lambda x, y, w, h: [x, y, x + w, y + h], corner, corner, side, side)


@st.composite
def benchmarks(draw):
    """Few images with many overlapping boxes, negatives, invented names, invalid and missing responses."""
    images = [f"i{number}" for number in range(draw(st.integers(1, 4)))]
    golds = st.lists(st.tuples(st.sampled_from(list(CLASSES)), box), max_size=5)
    said = st.one_of(st.lists(st.tuples(name, box), max_size=6), st.sampled_from(["invalid", "missing"]))
    answers = {}
    for model in draw(st.sampled_from(["a", "ab"])):
        drawn = {image: draw(said) for image in images}
        answers[model] = {image: one for image, one in drawn.items() if one != "missing"}
    plain = Plain(classes=CLASSES, gold={image: draw(golds) for image in images}, answers=answers)
    if not any([*plain.gold.values(), *(one for said in answers.values() for one in said.values() if one != "invalid")]):
        plain.gold["i0"] = [("litter", [0, 0, 4, 4])]  # a benchmark without any box has a test of its own
    return plain


def read(plain, tmp_path_factory):
    return evalkit.read_benchmark(write_plain(plain, tmp_path_factory.mktemp("plain")))


def number(value):
    """A float, or None for what is undefined."""
    return None if value is None or value != value else float(value)


def same(found, expected):
    """Whether two mappings hold the same values: undefined where undefined, else equal but for the last bits."""
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        got = found[key]
        assert (got is None) == (value is None), (key, got, value)
        assert value is None or math.isclose(got, value, rel_tol=1e-14), (key, got, value)
    return True


def score_rows(benchmark, **options):
    """The scores, each row by its keys, as the references have them."""
    rows = {}
    for row in evalkit.scores(benchmark, evalkit.count(benchmark), **options).astype(object).to_dict("records"):
        row = {key: value if isinstance(value, str) else number(value) for key, value in row.items()}
        key = (row["model"], row["scope"], row["task"], row["iou"], row["level"], row["average"], row["label"])
        assert key not in rows, "a row stands twice"
        rows[key] = row
    return rows


def coverage_rows(benchmark):
    return {(row["model"], row["scope"]): row for row in evalkit.coverage(benchmark).astype(object).to_dict("records")}


def measured(metric, scores, coverage):
    """The values of a metric, by their keys."""
    table, level, average, column = REGISTRY[metric]
    if table == "coverage":
        return {key: number(row[column]) for key, row in coverage.items()}
    return {key: row[column] for key, row in scores.items() if key[4:6] == (level, average)}


def both(plain, tmp_path_factory):
    benchmark = read(plain, tmp_path_factory)
    return score_rows(benchmark), coverage_rows(benchmark)


# -- the registry


def test_the_registry_is_complete(tmp_path_factory):
    plain = Plain(CLASSES, {"i": [("litter", [0, 0, 2, 2])]}, {"m": {"i": [("ghost", [0, 0, 2, 2])]}})
    benchmark = read(plain, tmp_path_factory)
    scores = evalkit.scores(benchmark, evalkit.count(benchmark))
    tables = {"scores": scores, "coverage": evalkit.coverage(benchmark)}
    for table, columns in (("scores", SCORE_COLUMNS), ("coverage", COVERAGE_COLUMNS)):
        registered = {column for where, *_, column in REGISTRY.values() if where == table}
        assert list(tables[table].columns) == columns
        assert set(columns) == registered | NUMBERS[table] | INTERVALS[table]
        assert not registered & (NUMBERS[table] | INTERVALS[table])
    assert set(zip(scores["level"], scores["average"], strict=True)) == set(ROWS)
    assert len(REGISTRY) == len(ROWS) * len(RATIOS) + 3


@pytest.mark.parametrize("metric", REGISTRY)
def test_every_metric_has_a_value_that_is_not_trivial(tmp_path_factory, metric):
    """Each metric comes out strictly between 0 and 1 somewhere, so that the comparisons below compare something."""
    hit, wide = [0, 0, 10, 10], [20, 20, 30, 30]
    gold = {"a": [("litter", hit), ("pothole", hit), ("crack", wide), ("pothole", wide)], "b": [], "c": [], "d": []}
    said = {"a": [("litter", hit), ("litter", wide), ("pothole", hit), ("ghost", hit)], "b": [("litter", hit)], "c": []}
    said["d"] = "invalid"
    scores, coverage = both(Plain(CLASSES, gold, {"m": said}), tmp_path_factory)
    values = [value for value in measured(metric, scores, coverage).values() if value is not None]
    if metric.startswith("outside"):
        assert values
        assert set(values) == {0.0}  # names outside the list have no gold: a TP is impossible
    else:
        assert any(0 < value < 1 for value in values)


# -- against the references


@given(benchmarks())
@settings(max_examples=20, deadline=None)
def test_scores_are_those_of_the_reference(tmp_path_factory, plain):
    scores = score_rows(read(plain, tmp_path_factory))
    expected = plain_scores(plain)
    assert {key for key, row in scores.items() if row["n_images"]} == expected.keys()
    for key, numbers in expected.items():
        row = scores[key]
        for column, value in numbers.items():
            assert math.isclose(row[column], value, rel_tol=1e-14), (key, column)
        if key[5].startswith("macro"):
            assert [row[column] for column in OUTCOMES] == [None] * 3
    for key, row in scores.items():
        if not row["n_images"]:
            assert [row[column] for column in (*OUTCOMES, *RATIOS, "n_gold")] == [None] * 8
            assert row["reason"] == "empty scope: no image with a valid response", key


@given(benchmarks())
@settings(max_examples=25, deadline=None)
def test_coverage_is_that_of_the_reference(tmp_path_factory, plain):
    coverage = coverage_rows(read(plain, tmp_path_factory))
    expected = plain_coverage(plain)
    assert coverage.keys() == expected.keys()
    for key, numbers in expected.items():
        assert same({column: number(coverage[key][column]) for column in numbers}, numbers), key
        assert coverage[key]["models"].split(", ") == ([key[0]] if key[1] == "valid" else list(plain.answers))


@given(benchmarks())
@settings(max_examples=20, deadline=None)
def test_counts_are_those_of_the_reference_for_every_image_and_class(tmp_path_factory, plain):
    table = evalkit.count(read(plain, tmp_path_factory))
    assert set(table["relation"]) == {"exact"}
    found = {}
    for row in table.astype(object).to_dict("records"):
        key = (row["model"], number(row["iou"]), row["image_id"], row["class"])
        assert row["task"] == ("classification" if key[1] is None else "localisation")
        assert key not in found
        found[key] = tuple(row[outcome] for outcome in OUTCOMES)
    expected = {
        (model, level, image, label): counts
        for model in plain.answers
        for level in (None, 0.3, 0.4, 0.5)
        for image in plain.gold
        for label, counts in image_counts(plain, model, image, level).items()
    }
    assert found == expected


# -- sums


@given(benchmarks())
@settings(max_examples=20, deadline=None)
def test_tp_and_fn_are_the_gold_boxes_and_tp_and_fp_the_predicted_ones(tmp_path_factory, plain):
    benchmark = read(plain, tmp_path_factory)
    counts = evalkit.count(benchmark)
    cells = ["image_id", "class"]
    gold = benchmark.gold.groupby(cells, observed=True).size().to_dict()
    for model in plain.answers:
        boxes = benchmark.predictions[benchmark.predictions["model"] == model].groupby(cells, observed=True).size().to_dict()
        for level in (0.3, 0.4, 0.5):
            rows = counts[(counts["model"] == model) & (counts["iou"] == level)].set_index(cells)
            assert set(rows.index) == gold.keys() | boxes.keys()
            for cell, row in rows.iterrows():
                assert row["tp"] + row["fn"] == gold.get(cell, 0)
                assert row["tp"] + row["fp"] == boxes.get(cell, 0)
        rows = counts[(counts["model"] == model) & (counts["task"] == "classification")].set_index(cells)
        for cell, row in rows.iterrows():
            assert row["tp"] + row["fn"] == (cell in gold)
            assert row["tp"] + row["fp"] == (cell in boxes)


@given(benchmarks())
@settings(max_examples=20, deadline=None)
def test_parts_add_up_to_overall(tmp_path_factory, plain):
    """Domains, classes without one, and outside; or classes and outside: both are all there is."""
    scores = score_rows(read(plain, tmp_path_factory))
    for key, row in scores.items():
        if key[4:6] != ("overall", "micro") or not row["n_images"]:
            continue
        block = {other[4:]: numbers for other, numbers in scores.items() if other[:4] == key[:4]}
        parts = [["class", "outside"], ["domain", "outside"]]
        for levels in parts:
            lonely = [("class", "", "graffiti")] if levels[0] == "domain" else []  # the class that has no domain
            members = [numbers for where, numbers in block.items() if where[0] in levels or where in lonely]
            for column in (*OUTCOMES, "n_gold"):
                assert sum(numbers[column] for numbers in members) == row[column], (key, levels, column)


@given(benchmarks())
@settings(max_examples=16, deadline=None)
def test_more_is_demanded_at_a_higher_threshold(tmp_path_factory, plain):
    scores = score_rows(read(plain, tmp_path_factory))
    compared = 0
    for key, row in scores.items():
        if key[3] in (0.4, 0.5) and row["n_images"] and row["tp"] is not None:
            looser = scores[(*key[:3], {0.4: 0.3, 0.5: 0.4}[key[3]], *key[4:])]
            assert row["tp"] <= looser["tp"]
            assert row["f2"] <= looser["f2"]
            compared += 1
    assert compared or not any(row["n_images"] for row in scores.values())


# -- what changes nothing


def shuffled(plain, chance):
    """Every order changed: images in gold, images in each answer, boxes."""

    def mixed(rows):
        rows = {image: boxes if boxes == "invalid" else chance.sample(boxes, len(boxes)) for image, boxes in rows.items()}
        return {image: rows[image] for image in chance.sample(list(rows), len(rows))}

    return replace(plain, gold=mixed(plain.gold), answers={model: mixed(said) for model, said in plain.answers.items()})


def with_boxes(plain, change):
    """A copy in which ``change(class, box)`` stands for every box."""

    def changed(rows):
        return {image: boxes if boxes == "invalid" else [change(*one) for one in boxes] for image, boxes in rows.items()}

    return replace(plain, gold=changed(plain.gold), answers={model: changed(said) for model, said in plain.answers.items()})


@pytest.mark.parametrize("group", ["scores", "coverage"])
@given(plain=benchmarks(), chance=st.randoms())
@settings(max_examples=15, deadline=None)
def test_the_order_of_rows_changes_no_metric(tmp_path_factory, group, plain, chance):
    first, second = both(plain, tmp_path_factory), both(shuffled(plain, chance), tmp_path_factory)
    for metric in (one for one, (table, *_) in REGISTRY.items() if table == group):
        assert measured(metric, *first) == measured(metric, *second), metric


@given(plain=benchmarks(), factor=st.sampled_from([0.001, 0.1, 1 / 3, 0.7, 3.7, 100, 1e6]))
@settings(max_examples=16, deadline=None)
def test_scaling_all_coordinates_changes_no_metric(tmp_path_factory, plain, factor):
    scaled = with_boxes(plain, lambda label, one: (label, [value * factor for value in one]))
    first, second = both(plain, tmp_path_factory), both(scaled, tmp_path_factory)
    for metric in REGISTRY:
        assert measured(metric, *first) == measured(metric, *second), metric


@given(plain=benchmarks(), order=st.permutations(list(CLASSES)))
@settings(max_examples=16, deadline=None)
def test_new_names_for_the_classes_change_no_metric(tmp_path_factory, plain, order):
    """Each class is given another one's name; the domains move with the classes."""
    new = dict(zip(CLASSES, order, strict=True))
    renamed = with_boxes(plain, lambda label, one: (new.get(label, label), one))
    renamed.classes = {new[label]: domain for label, domain in CLASSES.items()}
    first, second = both(plain, tmp_path_factory), both(renamed, tmp_path_factory)
    for metric in REGISTRY:
        expected = {
            (*key[:-1], new.get(key[-1], key[-1])) if len(key) == 7 and key[4] == "class" else key: value
            for key, value in measured(metric, *first).items()
        }
        assert same(measured(metric, *second), expected), metric


@given(plain=benchmarks())
@settings(max_examples=16, deadline=None)
def test_every_image_twice_doubles_the_counts_and_leaves_every_metric(tmp_path_factory, plain):
    def doubled(rows):
        return {**rows, **{image + "-again": boxes for image, boxes in rows.items()}}

    twice = replace(plain, gold=doubled(plain.gold), answers={model: doubled(said) for model, said in plain.answers.items()})
    first, second = both(plain, tmp_path_factory), both(twice, tmp_path_factory)
    for metric in REGISTRY:
        assert same(measured(metric, *first), measured(metric, *second)), metric
    for before, after, columns in (
        (first[0], second[0], [*OUTCOMES, "n_gold", "n_images"]),
        (first[1], second[1], ["images", "valid", "invalid", "missing", "negative_images", "negative_with_boxes"]),
    ):
        for key, row in before.items():
            for column in columns:
                assert after[key][column] == (None if row[column] is None else 2 * row[column]), (key, column)


@given(plain=benchmarks())
@settings(max_examples=16, deadline=None)
def test_a_correct_negative_changes_only_the_numbers_of_images(tmp_path_factory, plain):
    """An image without gold for which every model says so: no score moves, the negative-image rate has one more below."""
    gold = {**plain.gold, "clean": []}
    more = replace(plain, gold=gold, answers={model: {**said, "clean": []} for model, said in plain.answers.items()})
    first, second = both(plain, tmp_path_factory), both(more, tmp_path_factory)
    for key, row in first[0].items():
        after = second[0][key]
        assert after["n_images"] == row["n_images"] + 1
        if row["n_images"]:
            assert {**after, "n_images": row["n_images"]} == row
        else:
            assert after["tp"] in (0, None)  # the scope is no longer empty, and still holds no box
    for key, row in first[1].items():
        after = second[1][key]
        assert after["images"] == row["images"] + 1
        assert after["valid"] == row["valid"] + 1
        assert (after["invalid"], after["missing"]) == (row["invalid"], row["missing"])
        assert after["coverage"] == (row["valid"] + 1) / (row["images"] + 1)
        assert after["negative_images"] == row["negative_images"] + 1
        assert after["negative_with_boxes"] == row["negative_with_boxes"]
        if key[1] == "all":
            assert math.isnan(after["negative_fpr"])
        else:
            assert after["negative_fpr"] == row["negative_with_boxes"] / (row["negative_images"] + 1)


@given(plain=benchmarks())
@settings(max_examples=20, deadline=None)
def test_a_model_alone_has_the_same_valid_scores_as_beside_others(tmp_path_factory, plain):
    everything = both(plain, tmp_path_factory)
    for model in plain.answers:
        alone = both(replace(plain, answers={model: plain.answers[model]}), tmp_path_factory)
        for metric in REGISTRY:
            own = {key: value for key, value in measured(metric, *alone).items() if key[1] != "common"}
            assert same({key: measured(metric, *everything)[key] for key in own}, own), metric


# -- the division, and values that books agree on


def test_values_worked_out_by_hand():
    tp, fp, fn = 6, 2, 4
    assert precision(tp, fp) == 6 / (6 + 2)
    assert recall(tp, fn) == 6 / (6 + 4)
    assert fbeta(tp, fp, fn, beta=1) == 2 * 6 / (2 * 6 + 2 + 4)
    assert fbeta(tp, fp, fn) == fbeta(tp, fp, fn, beta=2) == 5 * 6 / (5 * 6 + 2 + 4 * 4)
    assert fbeta(tp, fp, fn, beta=0.5) == pytest.approx(1.25 * 6 / (1.25 * 6 + 2 + 0.25 * 4), rel=1e-15)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([0.25, 0.5, 1, 2, 3]))
@settings(deadline=None)
def test_fbeta_is_the_weighted_harmonic_mean(tp, fp, fn, beta):
    value = float(fbeta(tp, fp, fn, beta=beta))
    assert 0 <= value <= 1
    if tp:
        p, r = tp / (tp + fp), tp / (tp + fn)
        assert value == pytest.approx((1 + beta**2) * p * r / (beta**2 * p + r), rel=1e-12)
    else:
        assert value == 0
    assert {key: float(one) for key, one in evalkit_ratios(tp, fp, fn).items()} == pytest.approx(ratios(tp, fp, fn), rel=1e-15)


def evalkit_ratios(tp, fp, fn):
    return {"precision": precision(tp, fp), "recall": recall(tp, fn), "f1": fbeta(tp, fp, fn, beta=1), "f2": fbeta(tp, fp, fn)}


def test_one_undefined_class_leaves_the_others_alone():
    tp, fp, fn = np.array([[3, 1, 0], [0, 0, 0], [0, 2, 5]]).T
    assert precision(tp, fp).tolist() == [3 / 4, 0.0, 0.0]
    assert recall(tp, fn).tolist() == [3 / 3, 0.0, 0 / 5]
    assert [number(value) for value in precision(tp, fp, zero_division=np.nan)] == [3 / 4, None, 0 / 2]
    assert [number(value) for value in fbeta(tp, fp, fn, zero_division=np.nan)] == [15 / 16, None, 0.0]


def test_division_broadcasts_and_does_not_change_its_input():
    above, below = np.array([[1], [2]]), np.array([2, 0])
    assert divide(above, below).tolist() == [[1 / 2, 0.0], [2 / 2, 0.0]]
    assert divide(above, below, zero_division=-1).tolist() == [[1 / 2, -1], [2 / 2, -1]]
    assert above.tolist() == [[1], [2]]
    assert below.tolist() == [2, 0]


@pytest.mark.parametrize("beta", [0, -1, float("nan")])
def test_beta_must_be_above_zero(beta):
    with pytest.raises(evalkit.EvalkitError, match="beta must be above 0"):
        fbeta(1, 1, 1, beta=beta)


@pytest.mark.parametrize("level", [0, -0.5, 1.01, float("nan"), float("inf")])
def test_a_threshold_must_lie_in_the_range_of_iou(tmp_path_factory, level):
    benchmark = read(Plain(gold={"a": []}, answers={"m": {"a": []}}), tmp_path_factory)
    for command in (evalkit.count, evalkit.match):
        with pytest.raises(evalkit.EvalkitError, match="iou must be above 0 and at most 1, not "):
            command(benchmark, iou=[0.5, level])
        with pytest.raises(evalkit.EvalkitError, match="at least one threshold"):
            command(benchmark, iou=[])


def test_a_benchmark_without_any_box_has_a_full_table_of_scores(tmp_path_factory):
    """Two clean images, two models that say so: nothing to divide, every row there, with its reason."""
    plain = Plain(CLASSES, {"a": [], "b": []}, {model: {"a": [], "b": []} for model in ("m", "n")})
    scores = score_rows(read(plain, tmp_path_factory))
    assert scores.keys() == plain_scores(plain).keys()
    assert len(scores) == len(plain.answers) * len(SCOPES) * 4 * (3 + 2 + len(CLASSES) + 1)
    for key, row in scores.items():
        assert row["reason"] == ("no class represented" if key[5].startswith("macro") else "no gold, no predictions")
        assert [row[column] for column in RATIOS] == [0.0] * 4
        assert (row["n_images"], row["n_gold"]) == (2, 0)


def test_a_benchmark_where_no_response_is_valid_is_not_defined_and_says_why(tmp_path_factory):
    scores = score_rows(read(Plain(CLASSES, {"a": []}, {"m": {"a": "invalid"}}), tmp_path_factory))
    for scope in ("valid", "common"):
        rows = [row for key, row in scores.items() if key[1] == scope]
        assert rows
        for row in rows:
            assert [row[column] for column in RATIOS] == [None] * 4
            assert row["reason"] == "empty scope: no image with a valid response"


def test_undefined_as_nan_touches_only_what_is_undefined(tmp_path_factory):
    """litter: 1 TP; pothole: 1 FN (no prediction); crack, graffiti: nothing. Macro is over the two that are represented."""
    plain = Plain(
        CLASSES, {"i": [("litter", [0, 0, 2, 2]), ("pothole", [5, 5, 7, 7])]}, {"m": {"i": [("litter", [0, 0, 2, 2])]}}
    )
    benchmark = read(plain, tmp_path_factory)
    as_zero, as_nan = score_rows(benchmark), score_rows(benchmark, zero_division=np.nan)
    assert as_zero.keys() == as_nan.keys()
    for key, row in as_nan.items():
        if key[5] in ("macro", "macro_gold"):
            assert row["recall"] == (1 + 0) / 2
            assert row["f2"] == (1 + 0) / 2
            continue
        tp, fp, fn = (row[column] for column in OUTCOMES)
        assert [row[column] for column in RATIOS] == list(ratios(tp, fp, fn, undefined=None).values())
        assert [as_zero[key][column] for column in RATIOS] == list(ratios(tp, fp, fn).values())
        assert row["reason"] == as_zero[key]["reason"]
