"""Long tables, one box a row: CSV and Parquet, read by their header."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet

from evalkit.formats.decoding import factorise, one_finding, read_text
from evalkit.formats.options import Context, FileOptions
from evalkit.tables import BOX_COLUMNS, Annotations, DataError, EvalkitError, Finding, image_ids

OPTIONAL = ["score", "width", "height", "file_name"]


def read(path: Path, options: FileOptions, context: Context) -> Annotations:
    """Read ``image_id, class, x_min, y_min, x_max, y_max[, score, width, height, file_name]`` by header.

    ``class_id`` may stand instead of ``class``. Blank box columns mean that the image was seen and is empty. ``columns``
    maps our names to the file's; ``where`` keeps the rows whose column has a value.

    Raises DataError for a missing or doubled column, a number that is none, a blank class, and sizes that contradict.
    """
    return annotations(text_rows(path, options), path, context)


def text_rows(path: Path, options: FileOptions) -> pd.DataFrame:
    """The rows that ``where`` keeps, as text cells under our names, indexed by line number."""
    table = read_text_table(path) if path.suffix != ".parquet" else _parquet(path, options)
    table = _renamed(table, path, options)
    for name, value in (options.where or {}).items():
        if name not in table:
            raise EvalkitError(f"{path.name}: `where` names the column {name!r}; the file has {', '.join(table.columns)}")
        table = keep(table, name, value, path)
    return table


def keep(table: pd.DataFrame, name: str, value: str, path: Path) -> pd.DataFrame:
    """The rows that have this value. Raises EvalkitError where no row has."""
    kept = table[table[name] == value]
    if len(table) and kept.empty:
        known = list(dict.fromkeys(table[name]))
        more = f" and {len(known) - 5} more" if len(known) > 5 else ""
        raise EvalkitError(f"{path.name}: `where` keeps no row: {name} is never {value!r}, but {', '.join(known[:5])}{more}")
    return kept


def annotations(table: pd.DataFrame, path: Path, context: Context, *, key: tuple[str, ...] = ()) -> Annotations:
    """What the rows of a long table say; rows of one image, and of one value of the columns ``key``, belong together."""
    needed = ["image_id", *key, *BOX_COLUMNS]
    lacking = [name for name in needed if name not in table]
    if lacking or not {"class", "class_id"} & set(table.columns):
        lacking += [] if {"class", "class_id"} & set(table.columns) else ["class"]
        text = f"the header lacks {', '.join(lacking)}; it has {', '.join(table.columns)}"
        raise one_finding(path.name, "columns", text)
    lines = table.index.to_numpy()
    findings: list[Finding] = []

    def number(name: str) -> np.ndarray:
        text = table[name]
        values = as_numbers(text)
        wrong = np.isnan(values) & ~text.str.strip().str.lower().isin(["", "nan"]).to_numpy()
        for row in np.flatnonzero(wrong):
            said = f"{name} must be a number, not {text.iloc[row]!r}"
            findings.append(Finding(path.name, f"line {lines[row]}", table["image_id"].iloc[row], "number", said))
        return values

    boxes = np.column_stack([number(name) for name in BOX_COLUMNS])
    extra = {name: number(name) for name in ("score", "width", "height") if name in table}
    blank = (table[BOX_COLUMNS] == "").all(axis=1).to_numpy()
    label = "class" if "class" in table else "class_id"
    for row in np.flatnonzero(~blank & (table[label] == "").to_numpy()):
        text = "a box needs a class"
        findings.append(Finding(path.name, f"line {lines[row]}", table["image_id"].iloc[row], "box.class", text))
    for row in np.flatnonzero(blank & (table[label] != "").to_numpy()):
        text = f"a class and no box: {table[label].iloc[row]!r}; blank box columns mean that there is nothing on the image"
        findings.append(Finding(path.name, f"line {lines[row]}", table["image_id"].iloc[row], "box.class", text))
    ids = image_ids(table["image_id"])
    image_code, ids = factorise(list(zip(ids, *(table[name] for name in key), strict=True)) if key else ids)
    ids = [one[0] for one in ids] if key else ids
    first = np.unique(image_code, return_index=True)[1]
    for name in {"width", "height"} & extra.keys():
        known = extra[name][first][image_code]
        for row in np.flatnonzero((known != extra[name]) & ~(np.isnan(known) & np.isnan(extra[name]))):
            text = f"{name} {extra[name][row]:g} contradicts {known[row]:g} in line {lines[first[image_code[row]]]}"
            findings.append(Finding(path.name, f"line {lines[row]}", ids[image_code[row]], "image.size", text))
    if findings:
        raise DataError(findings)
    boxed = np.flatnonzero(~blank)
    codes, names = factorise(table[label].to_numpy()[boxed])
    if label == "class_id":
        names = [context.class_of(name) for name in names]
    return Annotations(
        file=path.name,
        image_id=ids,
        box_image=image_code[boxed],
        class_code=codes,
        class_names=list(names),
        boxes=boxes[boxed],
        score=extra["score"][boxed] if "score" in extra else None,
        width=extra["width"][first] if "width" in extra else None,
        height=extra["height"][first] if "height" in extra else None,
        file_name=[table["file_name"].iloc[row] or None for row in first] if "file_name" in table else None,
        place=lambda row: f"line {lines[first[row]]}",
        box_place=lambda box: f"line {lines[boxed[box]]}",
        several_rows=True,
    )


def _renamed(table: pd.DataFrame, path: Path, options: FileOptions) -> pd.DataFrame:
    if options.columns is None:
        return table
    if not isinstance(options.columns, dict):
        raise EvalkitError(f"{path.name}: `columns` of a long table maps our names to the file's")
    for theirs in options.columns.values():
        if theirs not in table:
            raise EvalkitError(f"{path.name}: `columns` names {theirs!r}; the file has {', '.join(table.columns)}")
    kept = table.drop(columns=[name for name in options.columns if name in table and name not in options.columns.values()])
    return kept.rename(columns={theirs: ours for ours, theirs in options.columns.items()})


def read_text_table(path: Path) -> pd.DataFrame:
    """A CSV with a header as text cells, indexed by line number. Nothing is taken for a missing value.

    Raises DataError for a header that names a column twice and a row with another number of cells.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    rows, lines = [], []
    try:
        header = [name.strip() for name in next(reader)]
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise one_finding(path.name, "csv", f"this is not CSV: {error}", place=f"line {reader.line_num}") from None
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise one_finding(path.name, "columns", f"the header names {twice!r} twice", place="line 1")
    wrong = [
        Finding(path.name, f"line {line}", "", "csv", f"{len(row)} cells under a header of {len(header)}")
        for row, line in zip(rows, lines, strict=True)
        if len(row) != len(header)
    ]
    if wrong:
        raise DataError(wrong)
    return pd.DataFrame(rows, columns=header, index=lines, dtype=str)


def as_numbers(text: pd.Series) -> np.ndarray:
    """Cells as floats, each the nearest to its decimals (pandas' own reading is not, before 3.0); NaN where there is none."""
    numeric = pd.to_numeric(text, errors="coerce").notna()
    return text.where(numeric, "nan").astype(float).to_numpy()


def _parquet(path: Path, options: FileOptions) -> pd.DataFrame:
    """A Parquet table as text cells; numbers keep every digit."""
    if not path.is_file():
        raise one_finding(path.name, "file.absent", f"there is no file {str(path)!r}")
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise one_finding(path.name, "file.unreadable", f"this is not Parquet: {error}") from None
    renamed = options.columns if isinstance(options.columns, dict) else {}
    for name in (renamed.get(ours, ours) for ours in ("image_id", "class_id", "annotator")):
        if name in table.column_names and pyarrow.types.is_floating(table.schema.field(name).type):
            raise one_finding(path.name, "image.id", f"{name} is a column of floats; ids are text or integers")
    columns = {
        name: ["" if value is None else str(value) for value in table.column(name).to_pylist()] for name in table.column_names
    }
    return pd.DataFrame(columns, index=np.arange(1, table.num_rows + 1), dtype=str)
