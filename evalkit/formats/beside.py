"""Tables that stand beside gold and predictions: the semantic relation, and the attributes of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evalkit.formats.decoding import one_finding
from evalkit.formats.long import as_numbers, read_text_table
from evalkit.tables import DataError, EvalkitError, Finding, Relation, class_name, close_ids, hint, image_ids


def read_cutoff(text: str, *, where: str) -> float:
    """A cut-off from 0 to 1 from its text. Raises EvalkitError for anything else."""
    value = as_numbers(pd.Series([text]))[0]
    if not 0 <= value <= 1:
        raise EvalkitError(f"{where}: the cut-off must be a number from 0 to 1, not {text!r}")
    return float(value)


def read_relation(path: Path, classes: pd.DataFrame, *, cutoff: float) -> Relation:
    """Read which predicted class is accepted for which gold class, and put it in the order of the class list.

    The header holds the predicted classes, each row is a gold class, cells are numbers from 0 to 1. Where the first name of the
    header is no class, the first cell of each row names its gold class; else the rows stand in the order of the header.

    Raises DataError unless rows and columns are the class list, each class once, and for a cell that is no number from 0 to 1.
    """
    table = read_text_table(path)
    lines = table.index.to_numpy()
    listed = list(classes["class_name"])
    names = [class_name(name) for name in table.columns]
    if names[0] in listed:
        columns, rows = names, names
    else:
        columns, rows = names[1:], [class_name(name) for name in table.iloc[:, 0]]
        table = table.iloc[:, 1:]
    if len(table) != len(columns):
        text = f"the matrix has {len(table)} rows and {len(columns)} columns of classes; it must be square"
        raise one_finding(path.name, "relation.square", text)
    table = table.set_axis(rows, axis=0).set_axis(columns, axis=1)
    places = ["line 1"] * len(columns), [f"line {line}" for line in lines]
    return relation_from(table, classes, cutoff=cutoff, file=path.name, places=places)


def relation_from(
    cells: pd.DataFrame,
    classes: pd.DataFrame,
    *,
    cutoff: float,
    file: str = "relation",
    places: tuple[Sequence[str], Sequence[str]] | None = None,
) -> Relation:
    """A relation from a square table with the gold classes as index and the predicted classes as columns, in any order.

    ``places`` says where each column and each row stands. Raises DataError as :func:`read_relation`.
    """
    listed, cells = list(classes["class_name"]), cells.astype(str)
    columns, rows = ([class_name(str(name)) for name in names] for names in (cells.columns, cells.index))
    places = ([""] * len(columns), [""] * len(rows)) if places is None else places
    findings = [*_names_wrong(file, columns, places[0], listed), *_names_wrong(file, rows, places[1], listed)]
    values = np.column_stack([as_numbers(cells.iloc[:, at]) for at in range(len(columns))])
    for row, column in np.argwhere(~((values >= 0) & (values <= 1))):
        text = f"{rows[row]!r} by {columns[column]!r} must be a number from 0 to 1, not {cells.iat[row, column]!r}"
        findings.append(Finding(file, places[1][row], "", "relation.value", text))
    if findings:
        raise DataError(list(dict.fromkeys(findings)))
    return Relation(pd.DataFrame(values, index=rows, columns=columns).loc[listed, listed], cutoff)


def _names_wrong(file: str, names: list[str], places: list[str], listed: list[str]) -> list[Finding]:
    """Findings for names that the class list lacks or that stand twice, and for classes without a name there."""
    near = close_ids(set(names) - set(listed), listed)
    findings, seen = [], set()
    for name, place in zip(names, places, strict=True):
        if name not in listed:
            more = f" ({hint(name, near[name])})" if name in near else ""
            findings.append(Finding(file, place, "", "relation.class", f"class {name!r} is not in the class list{more}"))
        elif name in seen:
            findings.append(Finding(file, place, "", "relation.class", f"class {name!r} stands there twice"))
        seen.add(name)
    absent = [name for name in listed if name not in seen]
    return findings + [
        Finding(file, "", "", "relation.class", f"class {name!r} of the class list is missing") for name in absent
    ]


def read_slices(path: Path, images: pd.DataFrame) -> pd.DataFrame:
    """Read ``image_id,attribute,value``: what is known of images, such as the time of day.

    Returns
    -------
    DataFrame ``image_id, attribute, value`` in the order of the file; the ids are a categorical of gold's images. An image may
    lack an attribute, and have several values of it.

    Raises DataError for a missing column, an id that gold lacks, an empty attribute or value, and a row twice.
    """
    return slices_from(read_text_table(path), images, file=path.name, place="line {}".format, header="line 1")


def slices_from(
    table: pd.DataFrame, images: pd.DataFrame, *, file: str, place: Callable[[Any], str], header: str = ""
) -> pd.DataFrame:
    """The table of :func:`read_slices` from one of text cells; ``place`` says where a row of its index stands."""
    columns = ["image_id", "attribute", "value"]
    if lacking := [name for name in columns if name not in table]:
        text = f"the header lacks {', '.join(lacking)}; it has {', '.join(table.columns)}"
        raise one_finding(file, "columns", text, place=header)
    said = pd.DataFrame(
        {
            "image_id": image_ids(table["image_id"]),
            **{name: [class_name(value) for value in table[name]] for name in columns[1:]},
        },
        index=table.index,
    )
    known = images["image_id"].cat.categories
    unknown = ~said["image_id"].isin(known)
    near = close_ids(said.loc[unknown, "image_id"].unique(), known) if unknown.any() else {}
    findings = []
    for line, row in said[unknown].iterrows():
        more = f" ({hint(row['image_id'], near[row['image_id']])})" if row["image_id"] in near else ""
        findings.append(Finding(file, place(line), row["image_id"], "image.unknown", f"gold has no such image{more}"))
    for name in columns[1:]:
        for line, row in said[said[name] == ""].iterrows():
            findings.append(Finding(file, place(line), row["image_id"], "slice.blank", f"{name} is empty"))
    for line, row in said[said.duplicated()].iterrows():
        text = f"{row['attribute']!r} {row['value']!r} stands there twice"
        findings.append(Finding(file, place(line), row["image_id"], "slice.twice", text))
    if findings:
        raise DataError(findings)
    said["image_id"] = pd.Categorical(said["image_id"], dtype=images["image_id"].dtype)
    return said.reset_index(drop=True)
