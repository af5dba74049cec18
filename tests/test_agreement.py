"""Agreement of annotators: every statistic against a slow reference, the intervals, the rules and the cases."""

import numpy as np
import pandas as pd
import pytest
from agreement_references import plain_agreement

from evalkit import agreement as module
from evalkit.agreement import (
    AGREEMENT_COLUMNS,
    PAIR_COLUMNS,
    STATISTICS,
    agree,
    agree_by_pair,
)
from evalkit.first_pass import FirstPass, blocks, first_pass_tables
from evalkit.tables import Annotations

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
    rows = table[(table["statistic"] == statistic) & (table["level"] == level) & (table["label"] == label)]
    for name, value in {"group": "pooled", **where}.items():
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


@pytest.mark.parametrize("seed", range(60))
def test_every_statistic_is_that_of_the_definitions(seed):
    ratings = random_ratings(seed)
    table = agree(first_pass(ratings), replicates=None)
    check_against_reference(table[table["group"] == "pooled"], ratings)
    people = {image: frozenset(marks) for image, marks in ratings.items()}
    for who in set(people.values()):
        mine = {image: marks for image, marks in ratings.items() if people[image] == who}
        check_against_reference(table[table["group"] == " + ".join(sorted(who))], mine)


@pytest.mark.parametrize("seed", range(20))
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


@pytest.mark.parametrize("seed", [2, 7])
def test_every_statistic_of_a_replicate_is_that_of_the_resampled_images(seed):
    ratings = random_ratings(seed, images=8)
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
        expected = plain_agreement(again, CLASSES)
        for key, value in zip(order, found[replicate], strict=True):
            if key[2] == "cohen_kappa":
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
