"""The figures of agreement: what they show, and what they do without an estimate, a picture or gold."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import evalkit
from evalkit import agreement_figures as figures
from evalkit.sample import write_sample


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def toytown(tmp_path_factory):
    return evalkit.read_first_pass(write_sample(tmp_path_factory.mktemp("sample") / "toytown", images=24))


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_forest_has_a_row_a_group_and_a_panel_a_statistic(toytown):
    table = evalkit.agree(toytown, replicates=100)
    rows = table[table["level"] == "overall"]
    grid = figures.forest(rows, by="group", panels={"krippendorff_alpha": "alpha", "cohen_kappa": "kappa", "pairwise_f1": "F1"})
    assert [axes.get_xlabel() for axes in grid.flat] == ["alpha", "kappa", "F1", ""]
    assert [label.get_text() for label in grid[0, 0].get_yticklabels()] == [*toytown.groups, "pooled"]
    assert texts(grid[0, 1]).count("not defined") == rows.query("statistic == 'cohen_kappa'")["estimate"].isna().sum() == 2
    markers = [line.get_xdata()[0] for line in grid[0, 0].lines if line.get_marker() in ("o", "D")]
    assert markers == rows.query("statistic == 'krippendorff_alpha'")["estimate"].tolist()


def pairs_of(names):
    rows = [(a, b, 0.5, 0.4, 0.6) for at, a in enumerate(names) for b in names[at + 1 :]]
    return pd.DataFrame(rows, columns=["annotator_a", "annotator_b", "estimate", "low", "high"])


def test_a_matrix_of_pairs_is_symmetric():
    pairs = pairs_of(["A", "B", "C"])
    pairs.loc[2, ["estimate", "low", "high"]] = np.nan
    axes = figures.pair_matrix(pairs, names=["A", "B", "C"], label="F1")
    shade = axes.images[0].get_array().filled(np.nan)
    np.testing.assert_array_equal(shade, shade.T)
    assert sorted(texts(axes)) == ["0.50\n0.40–0.60"] * 4 + ["–"] * 2


def test_a_matrix_of_many_has_no_words():
    names = [f"A{k}" for k in range(20)]
    assert texts(figures.pair_matrix(pairs_of(names), names=names, label="F1")) == []


def test_side_by_side_has_a_panel_for_gold_and_for_each_annotator(toytown):
    pilot, other = (toytown.seen.loc[toytown.seen["group"] == group, "image_id"].iloc[0] for group in ("pilot", "north"))
    grid = figures.side_by_side(toytown, [pilot, other])
    titles = [[axes.get_title().removesuffix(" (nothing)") for axes in line] for line in grid]
    assert titles == [
        [f"{pilot} · gold", f"{pilot} · Ada", f"{pilot} · Ben"],
        [f"{pilot} · Cleo", "", ""],
        [f"{other} · gold", f"{other} · Ada", f"{other} · Ben"],
    ]
    assert all(axes.images for line in grid for axes in line if axes.get_title())
    with pytest.raises(evalkit.EvalkitError, match="there is no image 'x'"):
        figures.side_by_side(toytown, ["x"])
