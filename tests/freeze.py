"""Freezes the published tables of Toytown: what the code computes today, to be compared with what it computes tomorrow.

    python tests/freeze.py

They are regression values and prove nothing but that nothing moved. Run it only after a change that is meant to move them, and
say why in CHANGELOG.md.
"""

import tempfile
from pathlib import Path

import pandas as pd

import evalkit
from evalkit.point_runs import every_point_sample
from evalkit.published import TABLES
from evalkit.sample import PUBLISHED, write_sample

DIGITS = "%.6f"


def freeze(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = write_sample(Path(scratch) / "toytown")
        for table, compute in {"scores": scores, "agreement": agreement, "points": points}.items():
            known = TABLES[table]
            columns = [*known.key, *known.counts, *known.values, *known.intervals]
            folder.mkdir(exist_ok=True)
            compute(path)[columns].to_csv(folder / f"{table}.csv", index=False, float_format=DIGITS, lineterminator="\n")


def scores(path: Path) -> pd.DataFrame:
    """Both scopes, exact rows of every level and semantic ones overall; intervals of the overall rows."""
    data = evalkit.read_benchmark(path)
    counts = evalkit.count(data)
    counts = pd.concat([counts, evalkit.relaxed_counts(counts, evalkit.accepted_pairs(data))], ignore_index=True)
    table = evalkit.add_intervals(evalkit.scores(data, counts), evalkit.bootstrap(data, counts))
    table = table[(table["scope"] != "all") & (table["level"].eq("overall") | table["relation"].eq("exact"))].copy()
    table["iou"] = table["iou"].map("{:.2f}".format).where(table["iou"].notna(), "")
    table.loc[table["level"] != "overall", ["f2_low", "f2_high"]] = float("nan")
    return table


def agreement(path: Path) -> pd.DataFrame:
    return evalkit.agree(evalkit.read_first_pass(path))


def points(path: Path) -> pd.DataFrame:
    samples, _ = every_point_sample(evalkit.read_point_runs(path))
    return evalkit.point_scores(samples, evalkit.point_intervals(samples))


if __name__ == "__main__":
    freeze(PUBLISHED)
