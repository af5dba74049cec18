"""Slices: scores of the images that have an attribute, from the same counts."""

import json

import numpy as np
import pandas as pd
import pytest
import small
from click.testing import CliRunner
from helpers import rule

import evalkit
from evalkit.cli import main
from evalkit.sample import write_sample
from evalkit.slices import SLICE_COLUMNS, slice_masks, slice_scores

COUNTS = ["tp", "fp", "fn", "n_gold"]
KEYS = ["model", "scope", "task", "iou", "relation", "level", "average", "label"]


@pytest.fixture(scope="module")
def toytown(tmp_path_factory):
    return evalkit.read_benchmark(write_sample(tmp_path_factory.mktemp("slices") / "toytown", images=80))


@rule("slices")
def test_counts_of_slices_that_divide_the_images_add_up(toytown):
    counts = evalkit.count(toytown)
    whole, table = (found.fillna({"iou": 0}) for found in (evalkit.scores(toytown, counts), slice_scores(toytown, counts)))
    assert set(table["attribute"]) == {"shape", "objects"}
    for attribute in ("shape", "objects"):
        masks = [mask for name, _, mask in slice_masks(toytown) if name == attribute]
        assert (np.sum(masks, axis=0) == 1).all()
        sums = table[table["attribute"] == attribute].groupby(KEYS, observed=True, dropna=False)[[*COUNTS, "n_images"]].sum()
        expected = whole.set_index(KEYS)[[*COUNTS, "n_images"]].loc[sums.index]
        micro = sums.index.get_level_values("average") != "macro"
        micro &= sums.index.get_level_values("average") != "macro_gold"
        pd.testing.assert_frame_equal(sums[micro].astype(int), expected[micro].astype(int))


BIN, FAR = [0, 0, 10, 10, "bin"], [50, 50, 60, 60, "bin"]
GOLD = {"a": [BIN], "b": [BIN, FAR], "00012": [], "d": [BIN], "e": [FAR], "f": [BIN]}
SAID = {
    "m": {"a": [BIN], "b": [BIN], "00012": [FAR], "d": [], "e": [FAR, BIN], "f": None},
    "n": {"a": [], "b": [BIN, FAR], "00012": [], "d": [BIN], "e": None, "f": [FAR]},
}
TIMES = {"a": "day", "b": "day", "00012": "night", "d": "day", "e": "day", "f": "night"}


def with_slices(path, lines):
    """Give a benchmark a table of slices."""
    (path.parent / "slices.csv").write_text("\n".join(["image_id,attribute,value", *lines]) + "\n", encoding="utf-8")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"slices": "slices.csv"}))
    return path


@rule("slices")
def test_a_slice_is_scored_as_a_benchmark_of_its_images_would_be(write_benchmark):
    path = with_slices(write_benchmark(GOLD, SAID), [f"{name},time,{value}" for name, value in TIMES.items()])
    benchmark = evalkit.read_benchmark(path)
    found = slice_scores(benchmark, evalkit.count(benchmark), resampling={"replicates": 100})
    for value in ("day", "night"):
        kept = [name for name in GOLD if TIMES[name] == value]
        small_one = write_benchmark(
            {name: GOLD[name] for name in kept},
            {model: {name: said[name] for name in kept} for model, said in SAID.items()},
            classes=["bin"],
        )
        alone = evalkit.read_benchmark(small_one)
        counts = evalkit.count(alone)
        expected = evalkit.add_intervals(evalkit.scores(alone, counts), evalkit.bootstrap(alone, counts, replicates=100))
        rows = found[found["value"] == value].drop(columns=["attribute", "value"]).reset_index(drop=True)
        pd.testing.assert_frame_equal(rows, expected)


def test_an_image_may_lack_an_attribute_or_have_two_values(write_benchmark):
    path = with_slices(write_benchmark(GOLD, SAID), ["a,tag,x", "a,tag,y", "b,tag,y", "00012,place,z"])
    masks = {(attribute, value): mask for attribute, value, mask in slice_masks(evalkit.read_benchmark(path))}
    names = list(GOLD)
    assert {key: [names[at] for at in np.flatnonzero(mask)] for key, mask in masks.items()} == {
        ("tag", "x"): ["a"],
        ("tag", "y"): ["a", "b"],
        ("place", "z"): ["00012"],
    }


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["12,time,day"],
            "slices.csv, line 2, image 12: gold has no such image ('12' differs only by leading zeros from '00012')",
        ),
        (["a,,day"], "slices.csv, line 2, image a: attribute is empty"),
        (["a,time, "], "slices.csv, line 2, image a: value is empty"),
        (["a,time,day", "b,time,day", "a,time,day"], "slices.csv, line 4, image a: 'time' 'day' stands there twice"),
        (["a,time"], "slices.csv, line 2: 2 cells under a header of 3"),
    ],
)
def test_a_broken_table_is_refused(write_benchmark, lines, message):
    done = CliRunner().invoke(main, ["check", "--benchmark", str(with_slices(write_benchmark(GOLD, SAID), lines))])
    assert done.exit_code == 2
    assert message in done.output


def test_score_writes_the_slices(write_benchmark, tmp_path):
    path = with_slices(write_benchmark(GOLD, SAID), ["a,time,day"])
    done = CliRunner().invoke(main, ["score", "--benchmark", str(path), "--out", str(tmp_path / "out"), "--replicates", "100"])
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "out" / "slices.csv")
    assert list(table.columns) == SLICE_COLUMNS
    row = small.headline(table, model="m")
    assert (row["value"], row["n_images"], row["tp"], row["f2"], row["f2_low"]) == ("day", 1, 1, 1.0, 1.0)
