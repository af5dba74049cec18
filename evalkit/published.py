"""Published values against ours: which rows are reproduced, which differ, and which were not there to compare."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit.formats.decoding import one_finding, read_text
from evalkit.formats.long import as_numbers, read_text_table
from evalkit.formats.options import PublishedOptions
from evalkit.metrics import SCORE_KEY
from evalkit.tables import CheckFailed, DataError, EvalkitError, Finding, printable

TOLERANCE = 1e-9  # of ratios and estimates, where the published file does not give fewer digits
MOST_DIGITS = 9
RESULTS = ["equal", "differs", "missing", "not published"]
FAILED = ["differs", "missing"]


class Columns(NamedTuple):
    """The columns of a kind of table: its key, numbers that must be equal, ratios and estimates, ends of intervals."""

    key: list[str]
    counts: list[str]
    values: list[str]
    intervals: list[str]


TABLES = {
    "scores": Columns(
        key=SCORE_KEY,
        counts=["tp", "fp", "fn", "n_images", "n_gold"],
        values=["precision", "recall", "f1", "f2"],
        intervals=["f2_low", "f2_high"],
    ),
    "agreement": Columns(
        key=["group", "task", "level", "label", "statistic"],
        counts=["images", "annotators"],
        values=["estimate", "prevalence"],
        intervals=["low", "high"],
    ),
    "points": Columns(
        key=["model", "benchmark", "subset"],
        counts=["samples", "strict_tp", "strict_fp", "strict_fn", "hits", "predicted"],
        values=[
            *("strict_precision", "strict_recall", "strict_f1", "non_strict_precision", "non_strict_recall", "non_strict_f1"),
            *("strict_macro_f1", "non_strict_macro_f1", "overall_strict", "overall_non_strict"),
        ],
        intervals=["low", "high"],
    ),
}


def check_file(computed: pd.DataFrame, folder: Path, options: PublishedOptions, *, table: str) -> pd.DataFrame:
    """Read a published table, its path relative to ``folder``, and check ours against it: see :func:`check_published`."""
    path = folder / options.path
    tolerance = TOLERANCE
    if options.interval_tolerance:
        tolerance = as_numbers(pd.Series([options.interval_tolerance]))[0]
        if not (np.isfinite(tolerance) and tolerance >= 0):
            rule = "must be a number from 0 on"
            raise EvalkitError(f"published, {table}: interval_tolerance {rule}, not {options.interval_tolerance!r}")
    published = read_published(path, options, table=table)
    return check_published(computed, published, table=table, file=path.name, interval_tolerance=tolerance)


def read_published(path: Path, options: PublishedOptions, *, table: str) -> pd.DataFrame:
    """Read a published table as text cells with our names; blank is a value that was not published.

    Raises DataError for a file that is not there or broken, and for a key column that it lacks or has nothing of ours in it.
    """
    said = _json_rows(path, options) if path.suffix == ".json" else read_text_table(path)
    for ours, theirs in options.columns.items():
        if theirs not in said:
            text = f"`columns` names {theirs!r} for {ours}; the file has {', '.join(said.columns)}"
            raise one_finding(path.name, "published.columns", text)
    kept = said.drop(columns=[name for name in options.columns if name in said and name not in options.columns.values()])
    said = kept.rename(columns={theirs: ours for ours, theirs in options.columns.items()}).assign(**options.fill)
    known = TABLES[table]
    lacking = [name for name in known.key if name not in said]
    if lacking:
        text = f"it lacks the key column{'s' * (len(lacking) > 1)} {', '.join(lacking)} (`columns` renames, `fill` adds)"
        raise one_finding(path.name, "published.columns", text)
    if not set(said) & {*known.counts, *known.values, *known.intervals}:
        raise one_finding(
            path.name, "published.columns", f"none of its columns is a value of {table}: {', '.join(said.columns)}"
        )
    if said.empty:
        raise one_finding(path.name, "published.empty", "there is no row in it")
    return said


def check_published(
    computed: pd.DataFrame,
    published: pd.DataFrame,
    *,
    table: str,
    file: str = "published",
    interval_tolerance: float = TOLERANCE,
) -> pd.DataFrame:
    """Join published rows with ours on the key and compare every published cell.

    Counts must be equal. Ratios and estimates may differ by 1e-9, or, where the file gives fewer than nine decimals, by half a
    unit of the last one (the most decimals of any ratio in the file count). A number that is undefined in ours differs.

    Parameters
    ----------
    computed : our table
    published : table of :func:`read_published`

    Returns
    -------
    DataFrame with the key columns, ``result`` (``equal``, ``differs``, ``missing`` from ours, or ``not published``),
    ``compared`` (how many cells were) and ``differences`` in words. Published rows come first, in the order of their file.

    Raises DataError for a published key twice and a cell that is no number.
    """
    known = TABLES[table]
    ours, theirs = _keys(computed, known.key), _keys(published, known.key)
    if theirs.has_duplicates:
        twice = published.index[theirs.duplicated()]
        raise DataError(Finding(file, _place(line), "", "published.twice", "a row with this key was there") for line in twice)
    at = ours.get_indexer(theirs)
    found = at >= 0
    compared, differences = np.zeros(len(published), int), np.full(len(published), "", object)
    digits = _digits(published[[name for name in known.values if name in published]])
    half = TOLERANCE + (0.5 * 10.0**-digits if digits < MOST_DIGITS else 0.0)
    groups = [(known.counts, 0.0), (known.values, half), (known.intervals, max(half, interval_tolerance))]
    for name, tolerance in ((name, tolerance) for names, tolerance in groups for name in names if name in published):
        said = _numbers(published[name], name, file)
        mine = np.full(len(published), np.nan)
        mine[found] = computed[name].to_numpy(float, na_value=np.nan)[at[found]]
        told = found & ~np.isnan(said)
        compared += told
        wrong = told & ~(np.abs(mine - said) <= tolerance)
        for row in np.flatnonzero(wrong):
            text = f"{name} {published[name].iloc[row]} published, {_shown(mine[row])} computed"
            differences[row] = f"{differences[row]}; {text}" if differences[row] else text
    result = np.where(~found, "missing", np.where(differences != "", "differs", "equal"))
    rows = published[known.key].assign(result=result, compared=compared, differences=differences)
    extra = computed.loc[~np.isin(np.arange(len(computed)), at), known.key]
    return pd.concat([rows, extra.astype(object).assign(result="not published", compared=0, differences="")], ignore_index=True)


def failed(check: pd.DataFrame) -> int:
    """How many published rows are not reproduced: they differ, or are missing from ours."""
    return int(check["result"].isin(FAILED).sum())


def require_reproduced(checks: Mapping[str, pd.DataFrame]) -> None:
    """Raise CheckFailed if a published row of any table is not reproduced; the message names the first five."""
    wrong = [
        f"  {', '.join(str(cell) for cell in row[: len(TABLES[table].key)] if str(cell))}: {row.differences or row.result}"
        for table, check in checks.items()
        for row in check[check["result"].isin(FAILED)].itertuples(index=False)
    ]
    if wrong:
        rest = [f"  ... and {len(wrong) - 5:,} more"] if len(wrong) > 5 else []
        told = [summary(check, table=table) for table, check in checks.items()]
        raise CheckFailed("\n".join(["published values are not reproduced;", *told, *map(printable, wrong[:5]), *rest]))


def summary(check: pd.DataFrame, *, table: str) -> str:
    """A check in one line, such as ``scores: 960 of 960 published rows equal; 4 computed rows are not published``."""
    number = check["result"].value_counts().reindex(RESULTS, fill_value=0)
    total = len(check) - number["not published"]
    parts = [f"{table}: {number['equal']:,} of {total:,} published rows equal"]
    parts += [f"{number['differs']:,} differ"] if number["differs"] else []
    parts += [f"{number['missing']:,} missing from ours"] if number["missing"] else []
    parts += [f"{number['not published']:,} computed rows are not published"] if number["not published"] else []
    return "; ".join(parts)


def _keys(table: pd.DataFrame, key: list[str]) -> pd.Index:
    """One text for each row; thresholds are written alike, so that 0.50 is 0.5."""
    texts = [table[name].astype(object).where(table[name].notna(), "").map(str) for name in key]
    alike = [[_plain(cell) for cell in text] if name == "iou" else text for name, text in zip(key, texts, strict=True)]
    return pd.Index(["\x1f".join(parts) for parts in zip(*alike, strict=True)], dtype=object)


def _plain(cell: str) -> str:
    try:
        return f"{float(cell):.9g}"
    except ValueError:
        return cell


def _numbers(cells: pd.Series, name: str, file: str) -> np.ndarray:
    """Published cells as numbers, NaN for a blank one."""
    values = as_numbers(cells)
    wrong = ~np.isfinite(values) & (cells.str.strip() != "").to_numpy()
    if wrong.any():
        raise DataError(
            Finding(file, _place(line), "", "published.number", f"{name} must be a number, not {cell!r}")
            for line, cell in cells[wrong].items()
        )
    return values


def _place(line: Any) -> str:
    return f"line {line}" if isinstance(line, int) else str(line)


def _digits(cells: pd.DataFrame) -> int:
    """The most decimals of any cell; a power of ten moves the point."""
    most = 0
    for cell in cells.to_numpy(object).ravel():
        found = re.fullmatch(r"\s*[+-]?\d*\.?(\d*)(?:[eE]([+-]?\d+))?\s*", cell)
        most = max(most, len(found[1]) - int(found[2] or 0)) if found else most
    return most


def _shown(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.12g}"


def _json_rows(path: Path, options: PublishedOptions) -> pd.DataFrame:
    """The rows of a JSON file as text cells; numbers keep their digits. Nested values are left out."""
    try:
        rows = json.loads(read_text(path), parse_float=str, parse_int=str)
    except (ValueError, RecursionError) as error:
        raise one_finding(path.name, "json.malformed", f"this is not JSON: {error}") from None
    for step in filter(None, options.records.split(".")):
        if not isinstance(rows, dict) or step not in rows:
            raise one_finding(path.name, "published.records", f"`records` {options.records!r}: there is no {step!r}")
        rows = rows[step]
    if isinstance(rows, dict) and options.index:
        rows = [{options.index: name, **row} for name, row in rows.items() if isinstance(row, dict)]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        text = "its rows must be a list of objects, or an object of objects with `index`; `records` is the path to them"
        raise one_finding(path.name, "published.records", text)
    cells = [{name: _cell(value) for name, value in row.items() if not isinstance(value, dict | list)} for row in rows]
    return pd.DataFrame(cells, index=[f"row {row}" for row in range(1, len(cells) + 1)], dtype=object).fillna("").astype(str)


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
