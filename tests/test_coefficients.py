"""Coefficients of agreement against published answers and against other people's implementations."""

import csv
import doctest
import json
import warnings
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

import evalkit.coefficients
from evalkit.coefficients import (
    cohen_kappa,
    expected_set_distance,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    observed_agreement,
    rating_counts,
    set_similarity,
)
from evalkit.tables import EvalkitError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import krippendorff

FUNCTIONS = {
    "percent_agreement": observed_agreement,
    "krippendorff_alpha_nominal": krippendorff_alpha,
    "gwet_ac1": gwet_ac1,
    "fleiss_kappa": fleiss_kappa,
}
CONTINGENCY = {"cont3x3abstractors.csv", "cont4x4diagnosis.csv", "sas_kappa_3x3.csv"}


def test_the_examples_of_the_docstrings():
    assert doctest.testmod(evalkit.coefficients).failed == 0


# Published answers


def cells(path):
    """The numbers or labels of a table, without the columns that name units and groups or hold an answer."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [
        name for name in rows[0] if name not in {"Units", "Unit", "Subject", "subject", "Group", "Type", "Diagnosis", "P_i"}
    ]
    return [[row[name] for name in names] for row in rows]


def counts_of(name, table):
    if "raw" in name or name in {"fleiss1971_diagnoses_30x6.csv", "irr_anxiety_20x3.csv"}:
        return rating_counts(table)[0]
    return np.array(table, float)


def published(shared):
    answers = json.loads((shared / "real/agreement-tables/expected.json").read_text(encoding="utf-8"))
    for one in answers:
        table = cells(shared / "real/agreement-tables" / one["file"])
        for key, value in one.items():
            if (key in FUNCTIONS or key.startswith("cohen_kappa")) and not key.endswith(("linear", "quadratic")):
                yield one["file"], key, table, value, one.get("digits")


def test_published_coefficients_to_the_digits_given(shared):
    checked = Counter()
    for name, key, table, value, digits in published(shared):
        if key.startswith("cohen_kappa"):
            found = cohen_kappa(contingency(name, table))
        elif name in CONTINGENCY:  # two ratings a unit
            square = np.array(table, float).astype(int)
            pairs = [(a, b) for a in range(len(square)) for b in range(len(square)) for _ in range(square[a, b])]
            found = FUNCTIONS[key](rating_counts(pairs, categories=range(len(square)))[0])
        else:
            found = FUNCTIONS[key](counts_of(name, table))
        assert round(found, digits or decimals(value)) == value, (name, key)
        checked[key.removesuffix("_rater2_rater3")] += 1
    assert checked == {
        "percent_agreement": 3, "krippendorff_alpha_nominal": 3, "gwet_ac1": 5, "fleiss_kappa": 4, "cohen_kappa": 4,
    }  # fmt: skip


def decimals(value):
    return len(f"{value!r}".partition(".")[2])


def contingency(name, table):
    if name in CONTINGENCY:
        return np.array(table, float)
    second, third = ([row[at] for row in table] for at in (1, 2))  # irr_anxiety: raters 2 and 3
    values = sorted({*second, *third})
    square = np.zeros((len(values), len(values)))
    for one, other in zip(second, third, strict=True):
        square[values.index(one), values.index(other)] += 1
    return square


def test_the_worked_alphas_of_matrices_with_unmatched_boxes(shared):
    """An annotator without a box in a unit has the value "*" there, which is a value of the scale."""
    worked = json.loads((shared / "real/kalphacv-examples/worked_answers.json").read_text(encoding="utf-8"))
    expected = ["1 - 2 * 3 / 5", "1 - 2 / (12 / 5)", "1 - 3 / (37 / 9)", "1 - 6 / (164 / 19)", None]
    assert [one["alpha"] for one in worked["nominal_alpha"]] == expected
    values = [1 - 2 * 3 / 5, 1 - 2 / (12 / 5), 1 - 3 / (37 / 9), 1 - 6 / (164 / 19)]
    for one, value in zip(worked["nominal_alpha"], values, strict=False):
        counts, _ = rating_counts(list(zip(one["A"].split(), one["B"].split(), strict=True)))
        assert krippendorff_alpha(counts) == pytest.approx(value, abs=1e-12)


# The contentious extracts


@pytest.fixture(scope="module")
def concon(shared):
    folder = shared / "real/concon"
    answers = pd.read_csv(folder / "annotations.csv", dtype=str, keep_default_na=False)
    batches = json.loads((folder / "batches.json").read_text(encoding="utf-8"))
    return folder, answers, batches


TWO = ["contentious", "not_contentious"]


def batch_counts(answers, people, options):
    """Counts of the extracts that somebody of ``people`` answered with one of the ``options``."""
    mine = answers[answers["annotator"].isin(people) & answers["response"].isin(options)]
    wide = mine.pivot(index="extract", columns="annotator", values="response")
    return rating_counts(wide.to_numpy(), categories=options)[0]


def as_printed(value):
    return None if np.isnan(value) else round(value, 3)


def printed(text):
    try:
        return float(text)
    except ValueError:
        return None  # "zero division", or an empty cell


def numbers(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_all_pairwise_alphas_of_concon(concon):
    folder, answers, _ = concon
    options = list(answers["response"].unique())
    wide = answers.pivot(index="extract", columns="annotator", values="response")
    place, wide = {name: at for at, name in enumerate(wide)}, wide.to_numpy(object)
    given = ~pd.isna(wide)
    rows = numbers(folder / "pub_pairwise_alpha.csv")
    assert len(rows) == 1435
    for row in rows:
        pair = [place[row[f"annotator_{one}"]] for one in (1, 2)]
        counts, _ = rating_counts(wide[given[:, pair].any(axis=1)][:, pair], categories=options)
        assert as_printed(krippendorff_alpha(counts)) == printed(row["alpha"]), row


def test_all_batches_of_concon(concon):
    folder, answers, batches = concon
    options = list(answers["response"].unique())
    means = {
        row["anonymised_participant_id"]: printed(row["mean_alpha"])
        for row in numbers(folder / "pub_mean_alpha_per_annotator.csv")
    }
    truth = {"c0": TWO[0], "c1": TWO[0], "c3": TWO[0], "c2": TWO[1], "c4": TWO[1]}
    wrong = answers[answers["extract"].isin(truth) & (answers["response"] != answers["extract"].map(truth))]
    failed = set(wrong["annotator"].value_counts().loc[lambda n: n >= 3].index)
    kept = {
        "4_options": (options, lambda name: True),
        "2_options": (TWO, lambda name: True),
        "2_options_filtered_alpha": (TWO, lambda name: means.get(name) is None or means[name] >= 0.2),
        "2_options_filtered_controls": (TWO, lambda name: name not in failed),
    }
    for kind, (wanted, keep) in kept.items():
        rows = numbers(folder / f"pub_k_alpha_per_batch_{kind}.csv")
        assert len(rows) == 60
        for row in rows:
            people = [name for name in batches[row["batch"]] if keep(name)]
            counts = batch_counts(answers, people, wanted)
            assert as_printed(krippendorff_alpha(counts)) == printed(row[f"k_alpha_{kind[0]}"]), (kind, row)


def test_all_percentages_of_concon(concon):
    """The share of an extract's answers that give its most frequent answer; extracts are named word_extract there."""
    folder, answers, _ = concon
    wide = answers.pivot(index="extract", columns="annotator", values="response")
    counts, values = rating_counts(wide.to_numpy())
    of_extract = dict(zip(wide.index, counts, strict=True))
    dutch = {"contentious": "omstreden", "not_contentious": "niet_omstreden", "dont_know": "weet_ik_niet", "bad_ocr": "bad_ocr"}
    rows = numbers(folder / "pub_perc_agreement.csv")
    assert len(rows) == 2720
    for row in rows:
        found = of_extract[row["extract_id"].rpartition("_")[2]]
        assert found.tolist() == [int(row[dutch[value]]) for value in values]
        assert round(100 * found.max() / found.sum()) == int(row["%_agree"]), row


# Other people's implementations


def random_ratings(seed, *, gaps):
    rng = np.random.default_rng(seed)
    units, raters, values = rng.integers(3, 40), rng.integers(2, 7), rng.integers(2, 6)
    truth = rng.integers(0, values, units)[:, None]
    table = np.where(rng.random((units, raters)) < rng.random(), truth, rng.integers(0, values, (units, raters)))
    if gaps:
        table = np.where(rng.random(table.shape) < 0.25, -1, table)
    return np.where(table < 0, None, table.astype(object))


@pytest.mark.parametrize("seed", range(200))
def test_alpha_is_that_of_krippendorff(seed):
    ratings = random_ratings(seed, gaps=True)
    counts, values = rating_counts(ratings)
    data = np.array([[np.nan if value is None else value for value in row] for row in ratings.T], float)
    pairable = counts[counts.sum(axis=1) > 1]
    if np.count_nonzero(pairable.sum(axis=0)) < 2:
        assert np.isnan(krippendorff_alpha(counts))
        return
    expected = krippendorff.alpha(reliability_data=data, level_of_measurement="nominal", value_domain=values)
    assert krippendorff_alpha(counts) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(200))
def test_fleiss_kappa_is_that_of_statsmodels(seed):
    counts, values = rating_counts(random_ratings(seed, gaps=False))
    if len(values) < 2:
        assert np.isnan(fleiss_kappa(counts))
        return
    assert fleiss_kappa(counts) == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-12)


@pytest.mark.parametrize("seed", range(200))
def test_cohen_kappa_is_that_of_scikit_learn(seed):
    ratings = random_ratings(seed, gaps=False)[:, :2].astype(int)
    table = np.zeros((6, 6))
    np.add.at(table, tuple(ratings.T), 1)
    if len({*ratings.ravel()}) < 2:
        assert np.isnan(cohen_kappa(table))
        return
    assert cohen_kappa(table) == pytest.approx(cohen_kappa_score(*ratings.T), abs=1e-12)


@pytest.mark.parametrize("seed", range(50))
def test_every_coefficient_by_its_definition_with_gaps(seed):
    """Pair by pair and rating by rating, on units with any number of ratings."""
    counts, values = rating_counts(random_ratings(seed, gaps=True))
    units = [[value for value, k in enumerate(row) for _ in range(k)] for row in counts]
    shares = [
        sum(a == b for a, b in combinations(unit, 2)) / (len(unit) * (len(unit) - 1) / 2) for unit in units if len(unit) > 1
    ]
    observed = sum(shares) / len(shares)
    rated = [unit for unit in units if unit]
    share = [sum(unit.count(value) / len(unit) for unit in rated) / len(rated) for value in range(len(values))]
    chance = sum(one**2 for one in share)
    chance_ac1 = sum(one * (1 - one) for one in share) / (len(values) - 1)
    assert observed_agreement(counts) == pytest.approx(observed, abs=1e-12)
    assert fleiss_kappa(counts) == pytest.approx((observed - chance) / (1 - chance), abs=1e-12)
    assert gwet_ac1(counts) == pytest.approx((observed - chance_ac1) / (1 - chance_ac1), abs=1e-12)


# Sets


def test_masi_by_hand():
    """Passonneau's M: 1, 2/3, 1/3, 0 for equal sets, one inside the other, overlap, nothing shared."""
    pairs = {
        (frozenset("ab"), frozenset("ab")): (1, 1),
        (frozenset("a"), frozenset("ab")): (1 / 2, 1 / 2 * 2 / 3),
        (frozenset("ab"), frozenset("bc")): (1 / 3, 1 / 3 * 1 / 3),
        (frozenset("a"), frozenset("b")): (0, 0),
        (frozenset(), frozenset("b")): (0, 0),
        (frozenset(), frozenset()): (1, 1),
    }
    for (one, other), expected in pairs.items():
        found = set_similarity(np.array(len(one & other)), np.array(len(one)), np.array(len(other)))
        assert [float(part) for part in found] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("tile", [1, 2, 3, 512])
def test_expected_set_distance_by_all_pairs(tile, monkeypatch):
    monkeypatch.setattr(evalkit.coefficients, "TILE", tile)
    rng = np.random.default_rng(tile)
    sets = np.unique(rng.integers(0, 2, (9, 4)).astype(bool), axis=0)
    sets = sets[sets.any(axis=1)]
    numbers = rng.integers(0, 5, (3, len(sets))).astype(float)
    n = numbers.sum(axis=1) + rng.integers(1, 4, 3)
    for replicate in range(3):
        drawn = [frozenset(np.flatnonzero(sets[one])) for one in range(len(sets)) for _ in range(int(numbers[replicate, one]))]
        drawn += [frozenset()] * int(n[replicate] - len(drawn))
        expected = sum(distance(a, b) for a in drawn for b in drawn) / (len(drawn) - 1)
        assert expected_set_distance(numbers, sets, n)[replicate] == pytest.approx(expected, abs=1e-9)


def distance(one, other):
    if one == other:
        return 0.0
    shared = len(one & other)
    rank = 2 / 3 if one <= other or other <= one else 1 / 3 if shared else 0
    return 1 - shared / len(one | other) * rank


def test_a_rating_that_is_no_category_is_refused():
    with pytest.raises(EvalkitError, match="'c' is not one of the categories"):
        rating_counts([["a", "c"]], categories=["a", "b"])


def test_ratings_are_left_alone():
    given = [["x", None], ["y", "y"]]
    rating_counts(given)
    assert given == [["x", None], ["y", "y"]]
