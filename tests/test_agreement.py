"""Agreement of annotators: every statistic against a slow reference, the intervals, the rules and the cases."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from agreement_references import masi_distance, plain_agreement
from helpers import rule
from hypothesis import given, settings
from hypothesis import strategies as st
from references import Plain, image_counts

import evalkit
from evalkit import agreement as module
from evalkit.agreement import (
    AGREEMENT_COLUMNS,
    FEW,
    NO_VARIATION,
    NOBODY,
    NOT_TWO,
    PAIR_COLUMNS,
    STATISTICS,
    UNEQUAL,
    agree,
    agree_by_pair,
    disagreements,
    score_annotators,
)
from evalkit.coefficients import fleiss_kappa, krippendorff_alpha, rating_counts
from evalkit.first_pass import FirstPass, blocks, first_pass_tables
from evalkit.intervals import DEGENERATE, NOT_ESTIMABLE
from evalkit.metrics import SCORE_COLUMNS
from evalkit.tables import BOX_COLUMNS, Annotations, EvalkitError

BOX, ELSEWHERE = [0, 0, 10, 10], [50, 50, 60, 60]
CLASSES = {"a": "x", "b": "x", "c": "y"}


def first_pass(ratings, classes=CLASSES, groups=None) -> FirstPass:
    """``{image: {annotator: [(class, box), …]}}`` as a first pass; a class alone stands for a box at one place."""
    names, rows = list(classes), [(image, who, said) for image, marks in ratings.items() for who, said in marks.items()]
    boxes = [(row, one, BOX) if isinstance(one, str) else (row, *one) for row, (*_, said) in enumerate(rows) for one in said]
    said = Annotations(
        file="first_pass.jsonl",
        image_id=[image for image, *_ in rows],
        box_image=np.array([row for row, *_ in boxes], int),
        class_code=np.array([names.index(name) for _, name, _ in boxes], int),
        class_names=names,
        boxes=np.array([box for *_, box in boxes], float).reshape(-1, 4),
        place=lambda row: f"line {row + 1}",
        box_place=lambda box: f"box {box}",
    )
    table = pd.DataFrame(
        {"class_id": [*map(str, range(len(names)))], "class_name": names, "domain": [*classes.values()]}, dtype=str
    )
    given_groups = [groups and groups.get(image) for image, *_ in rows]
    return first_pass_tables(said, [who for _, who, _ in rows], given_groups, [None] * len(rows), table)


def as_boxes(ratings):
    return {
        image: {who: [(one, BOX) if isinstance(one, str) else one for one in said] for who, said in marks.items()}
        for image, marks in ratings.items()
    }


def of(table, statistic, *, level="overall", label="overall", column="estimate", **where):
    rows = table[(table["level"] == level) & (table["label"] == label)]
    rows = rows[rows["statistic"] == statistic] if statistic else rows
    for name, value in ({"group": "pooled"} | where if "group" in table else where).items():
        rows = rows[rows[name] == value]
    assert len(rows) == 1
    return rows.iloc[0][column]


def values_of(table):
    """``{(level, label, statistic): estimate}`` of one group, None where undefined."""
    rows = table[["level", "label", "statistic", "estimate"]].itertuples(index=False)
    return {tuple(row[:3]): None if np.isnan(row[3]) else row[3] for row in rows}


def random_ratings(seed, *, images=9, people="ABC", alone=0.2):
    """Boxes of few classes that lie on a small grid, so that they compete; some images are seen by some annotators only."""
    rng = np.random.default_rng(seed)
    ratings = {}
    for image in range(images):
        who = [one for one in people if rng.random() > alone] or [people[0]]
        truth = [(str(rng.choice(list(CLASSES))), rng.integers(0, 3, 2) * 4) for _ in range(rng.integers(0, 4))]
        ratings[f"i{image:02d}"] = {}
        for one in who:
            boxes = []
            for name, corner in truth:
                if rng.random() < 0.8:
                    at = corner + rng.integers(-2, 3, 2)
                    label = name if rng.random() < 0.8 else str(rng.choice(list(CLASSES)))
                    boxes.append((label, [*at.tolist(), *(at + rng.integers(6, 12, 2)).tolist()]))
            ratings[f"i{image:02d}"][one] = boxes
    return ratings


def check_against_reference(table, ratings, classes=CLASSES):
    expected = plain_agreement(ratings, classes)
    found = values_of(table)
    assert found.keys() - {key for key in found if key[2] == "cohen_kappa"} == expected.keys() - {
        key for key in expected if key[2] == "cohen_kappa"
    }
    for key, value in expected.items():
        assert (found[key] is None) == (value is None), (key, found[key], value)
        if value is not None:
            assert found[key] == pytest.approx(float(value), abs=1e-12), key


# Every statistic by its definition


@pytest.mark.parametrize("seed", range(30))
def test_every_statistic_is_that_of_the_definitions(seed):
    ratings = random_ratings(seed)
    table = agree(first_pass(ratings), replicates=None)
    check_against_reference(table[table["group"] == "pooled"], ratings)
    people = {image: frozenset(marks) for image, marks in ratings.items()}
    for who in set(people.values()):
        mine = {image: marks for image, marks in ratings.items() if people[image] == who}
        check_against_reference(table[table["group"] == " + ".join(sorted(who))], mine)


@pytest.mark.parametrize("seed", range(8))
def test_every_pair_is_that_of_the_definitions(seed):
    ratings = random_ratings(seed, people="ABCD")
    table = agree_by_pair(first_pass(ratings), replicates=None)
    assert list(table.columns) == PAIR_COLUMNS
    for (one, other), rows in table.groupby(["annotator_a", "annotator_b"]):
        mine = {
            image: {who: marks[who] for who in (one, other)} for image, marks in ratings.items() if {one, other} <= marks.keys()
        }
        check_against_reference(rows, mine)
        assert (rows["images"] == len(mine)).all()


def test_the_table_has_every_statistic_where_it_belongs():
    table = agree(first_pass(random_ratings(1)), replicates=100)
    assert list(table.columns) == AGREEMENT_COLUMNS
    one = table[table["group"] == "pooled"]
    assert set(one["statistic"]) == set(STATISTICS)
    assert (one["task"] == one["statistic"].map(STATISTICS)).all()
    assert set(one.loc[one["level"] == "class", "statistic"]) == {*module.CLASS_STATISTICS, *module.BOX_STATISTICS}
    assert (one[one["level"] == "overall"]["statistic"].tolist()) == list(STATISTICS)


# Intervals


@rule("agreement-intervals")
@pytest.mark.parametrize(("seed", "people", "alone"), [(2, "ABC", 0.2), (7, "ABC", 0.2), (3, "AB", 0.0)])
def test_every_statistic_of_a_replicate_is_that_of_the_resampled_images(seed, people, alone):
    ratings = random_ratings(seed, images=8, people=people, alone=alone)
    first = first_pass(ratings)
    marks = module.mark(first)
    rows = np.ones(len(first.seen), bool)
    sums = module.sums_of(marks, rows, np.arange(len(first.images)))
    found = module._replicates(sums, marks.pools, 100, seed)
    ids = sorted(ratings)
    names = [key for key in values_of(agree(first, replicates=None).query("group == 'pooled'"))]
    order = [(*marks.rows.iloc[row], name) for name in STATISTICS for row in range(width(name, marks))]
    for replicate, drawn in enumerate(np.random.default_rng(seed).integers(0, len(ids), size=(100, len(ids)))[:25]):
        again = {f"{number}": ratings[ids[one]] for number, one in enumerate(drawn)}
        expected = plain_agreement(again, CLASSES, ratings)
        for key, value in zip(order, found[replicate], strict=True):
            if key[2] == "cohen_kappa" and not sums.two:
                assert np.isnan(value)
                continue
            assert np.isnan(value) == (expected[key] is None), (key, value, expected[key])
            if expected[key] is not None:
                assert value == pytest.approx(float(expected[key]), abs=1e-12), key
    assert len(names) == len(order)


def width(statistic, marks):
    levels, every = len(marks.sets), len(marks.pools)
    return {"box_alpha": 1, **dict.fromkeys(module.SET_STATISTICS, levels)}.get(statistic, every)


def test_jobs_and_order_of_rows_change_no_digit():
    ratings = random_ratings(3, images=30)
    one = agree(first_pass(ratings), replicates=150)
    many = agree(first_pass(ratings), replicates=150, jobs=3)
    pd.testing.assert_frame_equal(one, many, check_exact=True)
    shuffled = {
        image: {who: boxes[::-1] for who, boxes in reversed(marks.items())} for image, marks in reversed(ratings.items())
    }
    again = agree(first_pass(shuffled), replicates=150)
    keys = ["group", "level", "label", "statistic"]
    left, right = (table.sort_values(keys, ignore_index=True) for table in (one, again))
    pd.testing.assert_frame_equal(left, right, rtol=0, atol=1e-12)


@rule("blocks")
def test_blocks_are_drawn_whole():
    """Frames of three videos; a replicate holds each video as a whole, so alpha takes few values."""
    ratings = {
        f"v{video}_{frame}": {"A": ["a"] if video else [], "B": ["a"] if video == 1 else []}
        for video in range(3)
        for frame in range(5)
    }
    first = first_pass(ratings)
    block = blocks(first, r"^(v\d)_")
    assert block.tolist() == [name[:2] for name in ratings]
    table = agree(first, replicates=200, block=block, seed=4)
    drawn = np.random.default_rng(4).integers(0, 3, size=(200, 3))
    share = np.array([(row != 2).mean() for row in drawn])
    low, high = np.quantile(share, [0.025, 0.975])
    assert of(table, "exact_match", column="low") == pytest.approx(low, abs=1e-12)
    assert of(table, "exact_match", column="high") == pytest.approx(high, abs=1e-12)
    alone = agree(first, replicates=200, seed=4)
    assert of(alone, "exact_match", column="low") > of(table, "exact_match", column="low")
    assert of(alone, "exact_match") == of(table, "exact_match") == 10 / 15


def test_blocks_of_scores_against_gold():
    """Two videos, one found by A and one not: drawn whole, A may find nothing; frame by frame, hardly ever."""
    ratings = {f"v{video}_{frame}": {"A": ["a"] if video else []} for video in range(2) for frame in range(6)}
    first = with_gold(first_pass(ratings), {image: [("a", BOX)] for image in ratings})
    options = {"replicates": 400, "seed": 1}
    whole, alone = (score_annotators(first, block=one, **options) for one in (blocks(first, r"^(v\d)"), None))
    where = {"annotator": "A", "task": "classification", "average": "micro"}
    assert of(whole, None, column="f2_low", **where) == 0.0
    assert of(alone, None, column="f2_low", **where) > 0.0


# Annotators against gold


def with_gold(first, gold):
    rows = [(image, name, *box) for image, boxes in gold.items() for name, box in boxes]
    table = pd.DataFrame(rows, columns=["image_id", "class", *BOX_COLUMNS]).astype(dict.fromkeys(BOX_COLUMNS, float))
    dtypes = {"image_id": first.images["image_id"].dtype, "class": first.boxes["class"].dtype}
    return dataclasses.replace(first, gold=table.astype(dtypes))


def rows_of(boxes):
    return [[*box, name] for name, box in boxes]


@rule("against-gold")
@pytest.mark.parametrize("seed", range(4))
def test_annotators_against_gold_are_scored_as_models(seed, make_benchmark):
    ratings = as_boxes(random_ratings(seed, images=12))
    truth = {image: next(iter(marks.values()))[:2] for image, marks in ratings.items()}
    table = score_annotators(with_gold(first_pass(ratings), truth), replicates=100)
    assert list(table.columns) == ["annotator", *SCORE_COLUMNS[1:]]
    models = {who: {image: rows_of(marks[who]) for image, marks in ratings.items() if who in marks} for who in "ABC"}
    benchmark = make_benchmark({image: rows_of(boxes) for image, boxes in truth.items()}, models, classes=CLASSES)
    counts = evalkit.count(benchmark)
    expected = evalkit.add_intervals(evalkit.scores(benchmark, counts), evalkit.bootstrap(benchmark, counts, replicates=100))
    expected = expected[expected["scope"] == "valid"].rename(columns={"model": "annotator"})
    single = table[table["annotator"].isin(list("ABC"))]
    tables = [one.astype({"annotator": str, "scope": str}).reset_index(drop=True) for one in (single, expected)]
    pd.testing.assert_frame_equal(*tables)


@rule("against-gold")
@pytest.mark.parametrize("seed", range(4))
def test_a_pair_against_gold_adds_the_counts_of_both_where_both_saw_the_image(seed):
    ratings = as_boxes(random_ratings(seed, images=12))
    truth = {image: next(iter(marks.values()))[:2] for image, marks in ratings.items()}
    table = score_annotators(with_gold(first_pass(ratings), truth), replicates=None)
    for pair in (("A", "B"), ("A", "C"), ("B", "C")):
        both = [image for image, marks in ratings.items() if set(pair) <= marks.keys()]
        answers = {who: {image: ratings[image][who] for image in both} for who in pair}
        plain = Plain(gold=truth, answers=answers, classes=CLASSES)
        for task, iou in (("classification", None), ("localisation", 0.5)):
            every = [image_counts(plain, who, image, iou).values() for who in pair for image in both]
            expected = [sum(counts[at] for one in every for counts in one) for at in range(3)]
            rows = table[table["iou"].isna() if iou is None else table["iou"] == iou]
            where = {"annotator": " + ".join(pair), "task": task, "average": "micro"}
            assert [of(rows, None, column=name, **where) for name in ("tp", "fp", "fn")] == expected
            assert of(rows, None, column="n_images", **where) == len(both)


def test_without_gold_there_is_nothing_to_compare_with():
    with pytest.raises(EvalkitError, match="annotators cannot be compared with gold: there is none"):
        score_annotators(first_pass({"i1": {"A": ["a"]}}))


def test_the_images_with_most_disagreement_come_first():
    ratings = {
        "same": {"A": ["a"], "B": ["a"]},
        "class": {"A": ["a"], "B": ["b"]},
        "missed": {"A": [("a", BOX), ("b", ELSEWHERE)], "B": []},
        "alone": {"A": ["a"]},
    }
    first = first_pass(ratings)
    table = disagreements(first, module.mark(first))
    assert table["image_id"].tolist() == ["missed", "class", "same"]
    assert table[["units", "unlike", "share"]].to_numpy().tolist() == [[2, 2, 1], [1, 1, 1], [1, 0, 0]]


# The rules


@rule("annotators")
def test_rule_the_image_is_the_unit_and_a_class_is_present_or_absent():
    """Three boxes of one class are present once; two annotators on four images, by hand."""
    ratings = {
        "i1": {"A": ["a", "a", "a"], "B": ["a"]},
        "i2": {"A": ["a"], "B": []},
        "i3": {"A": [], "B": []},
        "i4": {"A": [], "B": []},
    }
    table = agree(first_pass(ratings), replicates=None)
    row = {"level": "class", "label": "a"}
    assert of(table, "observed_agreement", **row) == 3 / 4
    by_chance = 1 / 2 * 1 / 4 + 1 / 2 * 3 / 4
    assert of(table, "cohen_kappa", **row) == pytest.approx((3 / 4 - by_chance) / (1 - by_chance), abs=1e-15)
    share = 3 / 8
    assert of(table, "fleiss_kappa", **row) == pytest.approx(1 - (1 / 4) / (2 * share * (1 - share)), abs=1e-15)
    assert of(table, "gwet_ac1", **row) == pytest.approx((3 / 4 - 30 / 64) / (1 - 30 / 64), abs=1e-15)
    assert of(table, "krippendorff_alpha", **row) == pytest.approx(1 - (2 / 8) / (2 * 3 * 5 / (8 * 7)), abs=1e-15)
    assert of(table, "positive_agreement", **row) == 2 * 1 / (2 * 1 + 1)
    assert of(table, "krippendorff_alpha", column="prevalence", **row) == 3 / 8


@rule("groups")
def test_rule_a_group_has_the_same_annotators_and_pooled_has_all_images():
    ratings = {"i1": {"A": ["a"], "B": ["a"]}, "i2": {"A": [], "B": ["a"]}, "i3": {"B": ["a"], "C": ["a"]}}
    table = agree(first_pass(ratings), replicates=None)
    assert table["group"].drop_duplicates().tolist() == ["A + B", "B + C", "pooled"]
    assert [of(table, "exact_match", group=one, column="images") for one in ("A + B", "B + C", "pooled")] == [2, 1, 3]
    assert of(table, "exact_match") == 2 / 3
    given_groups = {"i1": "pilot", "i2": "main", "i3": "main"}
    table = agree(first_pass(ratings, groups=given_groups), replicates=None)
    assert table["group"].drop_duplicates().tolist() == ["pilot", "main", "pooled"]


@rule("ratio-of-sums")
def test_rule_overall_is_a_ratio_of_sums_over_the_classes_that_were_marked():
    """Class a varies, class b is marked by all, class c by nobody: it stays out."""
    ratings = {"i1": {"A": ["a", "b"], "B": ["b"]}, "i2": {"A": ["a", "b"], "B": ["a", "b"]}}
    table = agree(first_pass(ratings), replicates=None)
    assert of(table, "observed_agreement") == (1 / 2 + 1) / 2
    assert of(table, "observed_agreement", level="domain", label="x") == (1 / 2 + 1) / 2
    disagreement, expected = 2 / 4, 2 * 3 * 1 / (4 * 3)
    assert of(table, "krippendorff_alpha") == pytest.approx(1 - (disagreement + 0) / (expected + 0), abs=1e-15)
    chance_a, chance_b = 2 * 3 / 4 * 1 / 4, 0
    numerator = 1 / 2 - chance_a + 1 - chance_b
    assert of(table, "gwet_ac1") == pytest.approx(numerator / (1 - chance_a + 1 - chance_b), abs=1e-15)
    assert of(table, "observed_agreement", column="prevalence") == (3 + 4) / (4 + 4)


@rule("cohen")
def test_rule_cohen_needs_the_same_two_annotators_on_every_image():
    ratings = {"i1": {"A": ["a"], "B": []}, "i2": {"A": ["a"], "B": ["a"]}, "i3": {"A": ["a"], "B": ["b"], "C": []}}
    table = agree(first_pass(ratings), replicates=None)
    assert not np.isnan(of(table, "cohen_kappa", group="A + B"))
    for group in ("A + B + C", "pooled"):
        assert of(table, "cohen_kappa", group=group, column="reason") == NOT_TWO


@rule("unequal-numbers")
def test_rule_unequal_numbers_of_annotators_are_labelled():
    ratings = {"i1": {"A": ["a"], "B": ["a"], "C": []}, "i2": {"A": ["a"], "B": []}, "i3": {"A": []}}
    table = agree(first_pass(ratings), replicates=None)
    for statistic in ("fleiss_kappa", "gwet_ac1"):
        assert of(table, statistic, column="reason") == UNEQUAL
        assert of(table, statistic, group="A + B + C", column="reason") != UNEQUAL
    assert of(table, "krippendorff_alpha", column="reason") == ""
    share = (2 / 3 + 1 / 2 + 0) / 3  # over all three images, i3 with its one annotator too
    observed = (1 / 3 + 0) / 2  # over the two that have a pair
    chance = share**2 + (1 - share) ** 2
    found = of(table, "fleiss_kappa", level="class", label="a")
    assert found == pytest.approx((observed - chance) / (1 - chance), abs=1e-15)


@rule("set-agreement")
def test_rule_sets_are_compared_pair_by_pair():
    ratings = {"i1": {"A": ["a", "b"], "B": ["a"]}, "i2": {"A": [], "B": []}, "i3": {"A": ["a"], "B": ["c"]}}
    table = agree(first_pass(ratings), replicates=None)
    assert of(table, "exact_match") == 1 / 3
    assert of(table, "mean_jaccard") == pytest.approx((1 / 2 + 1 + 0) / 3, abs=1e-15)
    sets = [frozenset(one) for one in ("ab", "a", "", "", "a", "c")]
    expected = sum(float(masi_distance(one, other)) for one in sets for other in sets) / (6 * 5)
    observed = 2 * (1 - 1 / 2 * 2 / 3 + 0 + 1) / 6
    assert of(table, "masi_alpha") == pytest.approx(1 - observed / expected, abs=1e-15)


@rule("box-agreement")
def test_rule_boxes_are_matched_within_the_class():
    half, third = [0, 0, 10, 5], [0, 0, 10, 3.4]
    ratings = {
        "i1": {"A": [("a", BOX), ("a", ELSEWHERE)], "B": [("a", half), ("b", ELSEWHERE)]},
        "i2": {"A": [("a", BOX)], "B": [("a", third)]},
    }
    table = agree(first_pass(ratings), replicates=None)
    assert of(table, "pairwise_f1") == 2 * 1 / (3 + 3)
    assert of(table, "mean_iou") == 1 / 2
    assert of(table, "pairwise_f1", level="class", label="b") == 0


@rule("box-alpha")
def test_rule_box_alpha_pairs_whatever_the_class_and_gives_a_single_box_a_unit():
    """B's box could pair with either box of A and pairs with its like: units (b, b), (a, nothing), and (a, b) of i2."""
    ratings = {"i1": {"A": [("a", BOX), ("b", [0, 0, 10, 8])], "B": [("b", [0, 0, 10, 9])]}, "i2": {"A": ["a"], "B": ["b"]}}
    table = agree(first_pass(ratings), replicates=None)
    expected = (6**2 - 2**2 - 3**2 - 1**2) / (6 * 5)  # values: a twice, b three times, nothing once
    assert of(table, "box_alpha") == pytest.approx(1 - (2 / 3) / expected, abs=1e-15)


@rule("box-alpha")
def test_rule_box_alpha_takes_the_largest_number_of_pairs_before_equal_classes():
    """A's a reaches B's a and b, A's c only B's a (6.5/7): two unlike pairs are more than one of equal class."""
    boxes = {"A": [("a", [0, 0, 10, 10]), ("c", [0, 0, 10, 7])], "B": [("a", [0, 0, 10, 6.5]), ("b", [0, 0, 10, 14.5])]}
    table = agree(first_pass({"i1": boxes}), replicates=None)
    expected = (4**2 - 2**2 - 1 - 1) / (4 * 3)  # values: a twice, b and c once
    assert of(table, "box_alpha") == pytest.approx(1 - 1 / expected, abs=1e-15)


@rule("no-variation")
def test_rule_no_variation_is_undefined_with_observed_agreement_beside_it():
    table = agree(first_pass({f"i{k}": {"A": ["a"], "B": ["a"]} for k in range(5)}), replicates=100)
    for row in ({}, {"level": "class", "label": "a"}, {"level": "class", "label": "b"}):
        for statistic in ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1"):
            assert np.isnan(of(table, statistic, **row))
            assert of(table, statistic, column="reason", **row).startswith("no variation")
        assert of(table, "observed_agreement", **row) == 1.0
    assert of(table, "pairwise_f1") == 1.0
    assert of(table, "box_alpha", column="reason") == NO_VARIATION


@rule("few-annotators")
def test_rule_a_group_without_two_annotators_is_listed():
    table = agree(first_pass({"i1": {"A": ["a"]}, "i2": {"A": ["a"], "B": ["b"]}}), replicates=100)
    alone = table[table["group"] == "A"]
    assert set(alone["reason"]) == {FEW}
    assert alone["estimate"].isna().all()
    assert of(table, "observed_agreement", group="A + B") == 0.0


@rule("agreement-intervals")
def test_rule_an_interval_that_cannot_be_estimated_says_so():
    """Class c is on one of ten images: in a third of the replicates nobody marks it, and alpha is 0/0."""
    ratings = {f"i{k}": {"A": ["a", "c"] if k == 3 else ["a"], "B": ["a"] if k % 2 else []} for k in range(10)}
    table = agree(first_pass(ratings), replicates=500)
    row = {"level": "class", "label": "c"}
    assert of(table, "krippendorff_alpha", column="reason", **row) == NOT_ESTIMABLE
    assert np.isnan(of(table, "krippendorff_alpha", column="low", **row))
    share = 0.9**10
    undefined = of(table, "krippendorff_alpha", column="undefined", **row)
    assert abs(undefined / 500 - share) < 4 * np.sqrt(share * (1 - share) / 500)
    assert of(table, "observed_agreement", column="low", **row) < of(table, "observed_agreement", **row)


# Invariances


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_names_of_annotators_and_the_scale_of_pictures_do_not_matter(seed):
    ratings = as_boxes(random_ratings(seed, images=5))
    renamed = {image: {"CAB"["ABC".index(who)]: boxes for who, boxes in marks.items()} for image, marks in ratings.items()}
    scaled = {
        image: {who: [(name, [8 * value + 64 for value in box]) for name, box in boxes] for who, boxes in marks.items()}
        for image, marks in ratings.items()
    }
    one, *others = (agree(first_pass(each), replicates=None).query("group == 'pooled'") for each in (ratings, renamed, scaled))
    for other in others:
        np.testing.assert_allclose(one["estimate"], other["estimate"], rtol=0, atol=1e-12)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_copies_of_all_images_move_only_the_alphas(seed):
    """Alpha divides by n - 1; means, kappas, AC1 and F1 do not know how often an image is there."""
    ratings = as_boxes(random_ratings(seed, images=5))
    doubled = {f"{image}{copy}": marks for image, marks in ratings.items() for copy in "xy"}
    tables = (agree(first_pass(each), replicates=None).query("group == 'pooled'") for each in (ratings, doubled))
    one, other = (table[~table["statistic"].str.endswith("alpha")] for table in tables)
    np.testing.assert_allclose(one["estimate"], other["estimate"], rtol=0, atol=1e-12)


# The shared cases


def ratings_of(rows):
    found = {}
    for row in rows:
        found.setdefault(row["image"], {})[row["rater"]] = row["labels"]
    return found


@rule("no-variation")
def test_agr_01_no_variation(case):
    raters = zip(case.given["rater1"], case.given["rater2"], strict=True)
    ratings = {f"i{k}": {"A": [a], "B": [b]} for k, (a, b) in enumerate(raters)}
    table = agree(first_pass(ratings, {"n": "", "y": ""}), replicates=100)
    row = {"level": "class", "label": "n"}
    assert case.expected["alpha"] is case.expected["kappa"] is None
    for statistic in ("krippendorff_alpha", "cohen_kappa"):
        assert np.isnan(of(table, statistic, **row))
        assert of(table, statistic, column="reason", **row) == NO_VARIATION
    assert of(table, "observed_agreement", **row) == case.expected["observed"]
    assert of(table, "observed_agreement", level="class", label="y") == 1.0


def test_agr_03_a_unit_with_one_rating_is_in_neither_part(case):
    units = case.given["units"]
    counts, _ = rating_counts([[unit.get(who) for who in "AB"] for unit in units.values()])
    assert krippendorff_alpha(counts) == case.expected["alpha"]
    ratings = {unit: {who: ["a"] if value == "x" else [] for who, value in said.items()} for unit, said in units.items()}
    table = agree(first_pass(ratings), replicates=None)
    assert of(table, "krippendorff_alpha", level="class", label="a") == case.expected["alpha"]


@rule("unequal-numbers")
def test_agr_04_unequal_numbers_of_raters(case):
    counts = np.array(case.given["counts_a_b"])
    assert krippendorff_alpha(counts) == pytest.approx(case.expected["alpha"], abs=1e-15)
    share = np.array([1 + 0 + 1 / 2, 0 + 1 + 1 / 2]) / 3
    chance = (share**2).sum()
    assert fleiss_kappa(counts) == pytest.approx(((1 + 1 + 0) / 3 - chance) / (1 - chance), abs=1e-15)
    ratings = {f"i{k}": {f"r{at}": ["a"] * (at < a) for at in range(a + b)} for k, (a, b) in enumerate(counts.tolist())}
    table = agree(first_pass(ratings), replicates=None)
    row = {"level": "class", "label": "a"}
    assert of(table, "fleiss_kappa", **row) == pytest.approx(fleiss_kappa(counts), abs=1e-15)
    assert of(table, "fleiss_kappa", column="reason", **row) == UNEQUAL


@rule("seen")
def test_agr_06_marked_nothing_is_not_the_same_as_not_seen(case):
    missing, classes = ratings_of(case.given["rows"]), {"x": ""}
    explicit = {**missing, "i2": {**missing["i2"], "B": []}}
    for ratings, key in ((missing, "pairs_if_missing"), (explicit, "pairs_if_empty_row")):
        assert len(module.mark(first_pass(ratings, classes)).a) == case.expected[key]
    assert of(agree(first_pass(missing, classes), replicates=None), "exact_match") == 1.0
    assert of(agree(first_pass(explicit, classes), replicates=None), "exact_match") == 1 / 2


@rule("few-annotators")
def test_agr_07_one_annotator_only(case):
    ratings = ratings_of(case.given["rows"]) | {"j1": {"A": ["x"], "B": ["x"]}}
    table = agree(first_pass(ratings, {"x": "", "y": ""}), replicates=100)
    assert case.expected["alpha"] is None
    assert np.isnan(of(table, "krippendorff_alpha", group="A"))
    assert of(table, "krippendorff_alpha", group="A", column="reason") == "fewer than two annotators for any image"
    assert of(table, "exact_match", group="A + B") == 1.0


@rule("agreement-intervals")
def test_the_classes_of_a_replicate_are_those_of_the_group():
    """One class of ten images is marked on one of them by one of two: AC1 of a replicate without it counts its agreement."""
    ratings = {f"i{k}": {"A": ["a"], "B": ["a"]} for k in range(10)}
    ratings["i0"] = {"A": ["a", "b"], "B": ["a"]}
    table = agree(first_pass(ratings), replicates=500, seed=1)
    drawn = (np.random.default_rng(1).integers(0, 10, size=(500, 10)) == 0).mean(axis=1)
    expected = np.quantile(1 - drawn / 2, [0.025, 0.975])  # b agrees on all images but i0, a on all
    got = [of(table, "observed_agreement", column=end) for end in ("low", "high")]
    assert got == pytest.approx(expected.tolist(), abs=1e-12)


def test_reasons_tell_apart_nobody_and_nobody_to_compare_with():
    ratings = {"i1": {"A": ["a"], "B": ["a"]}, "i2": {"A": ["a"], "B": []}, "i3": {"C": ["b"]}}
    table = agree(first_pass(ratings, {"a": "", "b": "", "c": ""}), replicates=None)
    for statistic in ("krippendorff_alpha", "positive_agreement", "pairwise_f1", "mean_iou"):
        assert of(table, statistic, level="class", label="b", column="reason") == module.ALONE
        assert of(table, statistic, level="class", label="c", column="reason") == NOBODY


def test_boxes_that_nobody_matched_have_no_mean_iou():
    table = agree(first_pass({"i1": {"A": [("a", BOX)], "B": [("a", ELSEWHERE)]}}), replicates=None)
    assert of(table, "mean_iou", column="reason") == module.NO_MATCH
    assert of(table, "pairwise_f1") == 0


def test_images_are_ordered_by_what_two_annotators_differ_in():
    """Three annotators of whom one differs are two pairs of three that differ; on the other image it is one of one."""
    ratings = {"three": {"A": ["a"], "B": ["a"], "C": []}, "two": {"A": ["a"], "B": []}}
    first = first_pass(ratings)
    table = disagreements(first, module.mark(first))
    assert table[["image_id", "unlike"]].to_numpy().tolist() == [["two", 1], ["three", 2]]


@pytest.mark.parametrize("block", [["x"], [["x", "y"]]])
def test_blocks_must_be_one_an_image(block):
    first = first_pass({"i1": {"A": [], "B": []}, "i2": {"A": [], "B": []}})
    with pytest.raises(EvalkitError, match="block must hold the block of each of 2 images, not shape"):
        agree(first, block=np.array(block))


def test_equal_values_that_rounding_parts_are_degenerate():
    boxes = {"A": [("a", [0, 0, 10, 10])], "B": [("a", [0, 0, 10, 7])]}
    twice = {who: [*marks, *((name, [100, *box[1:2], 110, box[3]]) for name, box in marks)] for who, marks in boxes.items()}
    table = agree(first_pass({f"i{k}": twice if k % 2 else boxes for k in range(7)}), replicates=200)
    found = [of(table, "mean_iou", column=name) for name in ("estimate", "low", "high", "reason")]
    assert found == [found[0]] * 3 + [DEGENERATE]


@rule("ratio-of-sums")
def test_agr_09_a_class_that_nobody_used(case):
    lists = case.given["class_list_1"], case.given["class_list_2"]
    for classes, key in zip(lists, ("alpha_1", "alpha_2"), strict=True):
        counts, _ = rating_counts(case.given["ratings"], categories=classes)
        assert krippendorff_alpha(counts) == pytest.approx(case.expected[key], abs=1e-7)
    ratings = {f"i{k}": {"A": [a], "B": [b]} for k, (a, b) in enumerate(case.given["ratings"])}
    tables = [agree(first_pass(ratings, dict.fromkeys(classes, "")), replicates=None) for classes in lists]
    one, other = (table.query("group == 'pooled' and level == 'overall'")["estimate"] for table in tables)
    np.testing.assert_array_equal(one, other)
    assert of(tables[1], "krippendorff_alpha", level="class", label="c", column="reason") == NOBODY
    assert np.isnan(of(tables[1], "krippendorff_alpha", level="class", label="c"))


@rule("box-agreement")
def test_agr_10_box_agreement_has_no_direction(case):
    boxes = {who: [(name, box) for *box, name in case.given[who]] for who in "AB"}
    for first, second in ("AB", "BA"):
        table = agree_by_pair(first_pass({"i1": {"P": boxes[first], "Q": boxes[second]}}), replicates=None)
        assert of(table, "pairwise_f1") == case.expected["f1"]


def test_every_shared_case_of_agreement_is_a_test(cases):
    tested = {f"AGR-{name[9:11]}" for name in globals() if re.match(r"test_agr_\d\d_", name)}
    assert tested == {identity for identity, one in cases.items() if one["area"] == "agreement"}
