"""First-pass annotations from files: JSON lines, COCO with an annotator on each image entry, long tables.

"Saw it, marked nothing" is an explicit row (a line with an empty list, an image entry, a row with blank box columns) or stands
in a list of assignments; an image that an annotator has no row for was not seen. A long table that has neither is refused.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd

from evalkit.formats import coco, jsonl, long
from evalkit.formats.decoding import box_array, decode_document, decode_lines, factorise, one_finding, positions, read_bytes
from evalkit.formats.options import Context, FileOptions
from evalkit.tables import BOX_COLUMNS, Annotations, DataError, EvalkitError, Finding, class_name, image_ids

NO_ANNOTATORS = "nothing in it names an annotator: this looks like gold or predictions, not like a first pass"
EXTRA = ("group", "block")
OPTIONS = {"jsonl": (), "coco": ("crowd",), "csv": ("columns", "where", "assignments")}
OPTIONS["parquet"] = OPTIONS["csv"]


class Said(NamedTuple):
    """What a file says: a row of ``annotations`` for each image and annotator, and of each row who, which group and block."""

    annotations: Annotations
    annotator: list[str]
    group: list[str | None]
    block: list[str | None]


class Row(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    image_id: str | int
    annotator: str | int
    boxes: list[jsonl.BoxRow]
    group: str | int | None = None
    block: str | int | None = None
    width: float | None = None
    height: float | None = None
    file_name: str | None = None


class Entry(msgspec.Struct, gc=False):
    id: str | int
    annotator: str | int | None = None
    group: str | int | None = None
    block: str | int | None = None
    file_name: str | None = None


class Entries(msgspec.Struct):
    images: list[Entry]


def read(path: Path, kind: str, options: FileOptions, context: Context) -> Said:
    """Read a first pass of a format.

    Raises
    ------
    DataError
        For a file that breaks its format, or in which nobody is named; for a long table that cannot tell an image without
        boxes from one that was not seen; for a box on an image that its annotator was not assigned.
    EvalkitError
        For an option that the format does not have.
    """
    if kind not in OPTIONS:
        raise EvalkitError(f"{options.path}: a first pass is read from {', '.join(OPTIONS)}, not from {kind}")
    given = {name for name, value in msgspec.structs.asdict(options).items() if value not in (None, "invalid")}
    if wrong := sorted(given - {"path", "format", *OPTIONS[kind]}):
        raise EvalkitError(f"{options.path}: `{wrong[0]}` is no option of a first pass in the format {kind}")
    return {"jsonl": _lines, "coco": _coco}.get(kind, _long)(path, options, context)


def _lines(path: Path, options: FileOptions, context: Context) -> Said:
    try:
        rows, place = decode_lines(path, Row, lenient_boxes=False)
    except DataError as error:
        if all("required field `annotator`" in finding.message for finding in error.findings):
            raise one_finding(path.name, "first_pass.annotator", NO_ANNOTATORS, place=error.findings[0].place) from None
        raise
    ids = image_ids([row.image_id for row in rows])
    sizes = np.fromiter((len(row.boxes) for row in rows), np.int64, len(rows))
    boxes = list(itertools.chain.from_iterable(row.boxes for row in rows))
    box_image = np.repeat(np.arange(len(rows)), sizes)
    first = np.cumsum(sizes) - sizes

    def box_place(box: int) -> str:
        row = int(box_image[box])
        return f"{place(row)}, boxes[{box - first[row]}]"

    findings = [
        Finding(path.name, box_place(box), ids[box_image[box]], "box.class", text)
        for box, row in enumerate(boxes)
        if (text := jsonl.class_fault(row, context))
    ]
    if findings:
        raise DataError(findings)
    codes, names = factorise([row.class_name if row.class_id is None else context.class_of(row.class_id) for row in boxes])
    annotations = Annotations(
        file=path.name,
        image_id=ids,
        box_image=box_image,
        class_code=codes,
        class_names=names,
        boxes=box_array([row.box for row in boxes]),
        place=place,
        box_place=box_place,
        width=np.array([row.width for row in rows], dtype=float),
        height=np.array([row.height for row in rows], dtype=float),
        file_name=[row.file_name for row in rows],
    )
    return Said(annotations, [str(row.annotator) for row in rows], *_extra(rows))


def _coco(path: Path, options: FileOptions, context: Context) -> Said:
    """Each annotator's copy of an image is an entry of its own; entries of one image have one ``file_name``."""
    data = read_bytes(path)
    if re.match(rb"\s*\[", data):
        raise one_finding(path.name, "first_pass.annotator", NO_ANNOTATORS)
    annotations = coco.read(path, options, context)
    entries = decode_document(path, data, Entries, lenient_boxes=True).images
    if all(one.annotator is None for one in entries):
        raise one_finding(path.name, "first_pass.annotator", NO_ANNOTATORS)
    findings = [
        Finding(path.name, f"images[{row}]", annotations.image_id[row], "first_pass.entry", f"the entry lacks `{name}`")
        for row, one in enumerate(entries)
        for name in ("annotator", "file_name")
        if getattr(one, name) in (None, "")
    ]
    entry_of: dict[str, int] = {}
    for row, image_id in enumerate(annotations.image_id):
        if (first := entry_of.setdefault(image_id, row)) != row:
            text = f"the entry has the id of images[{first}], so a box does not tell whose it is"
            findings.append(Finding(path.name, f"images[{row}]", image_id, "first_pass.entry", text))
    if findings:
        raise DataError(findings)
    annotations = replace(annotations, image_id=image_ids([one.file_name for one in entries]), score=None)
    return Said(annotations, [str(one.annotator) for one in entries], *_extra(entries))


def _extra(rows: Sequence[Row | Entry]) -> Iterator[list[str | None]]:
    return ([None if (value := getattr(row, name)) is None else str(value) for row in rows] for name in EXTRA)


def _long(path: Path, options: FileOptions, context: Context) -> Said:
    table = long.text_rows(path, options)
    if "annotator" not in table:
        raise one_finding(path.name, "first_pass.annotator", f"the header lacks annotator, so {NO_ANNOTATORS}")
    table = _comparable(table) if "image_id" in table else table
    annotations = long.annotations(table, path, context, key=("annotator",))
    rows = _one_each(table, path)
    if options.assignments is None:
        if not (table[BOX_COLUMNS] == "").all(axis=1).any():
            text = (
                "no row has blank box columns, so an image without boxes cannot be told from one that was not seen; "
                "list who saw what in a file and name it with `assignments`"
            )
            raise one_finding(path.name, "first_pass.assignments", text)
        return Said(annotations, list(rows["annotator"]), *(list(rows[name]) for name in EXTRA))
    listed = _assignments(context.path(options.assignments), options)
    return _assigned(annotations, rows, listed, Path(options.assignments).name)


def _assignments(path: Path, options: FileOptions) -> pd.DataFrame:
    """Who saw what; ``columns`` applies to the columns that this file has, and it needs those of ``where``."""
    table = long.read_text_table(path)
    renamed = options.columns if isinstance(options.columns, dict) else {}
    table = table.rename(columns={theirs: ours for ours, theirs in renamed.items() if theirs in table})
    where = options.where or {}
    lacking = [name for name in ("image_id", "annotator", *where) if name not in table]
    if lacking:
        text = f"the header lacks {', '.join(lacking)}; it has {', '.join(table.columns)}"
        raise one_finding(path.name, "columns", text, place="line 1")
    for name, value in where.items():
        table = long.keep(table, name, value, path)
    return _comparable(table)


def _comparable(table: pd.DataFrame) -> pd.DataFrame:
    """With image ids and annotators as they are compared."""
    return table.assign(image_id=image_ids(table["image_id"]), annotator=[class_name(name) for name in table["annotator"]])


def _assigned(annotations: Annotations, rows: pd.DataFrame, listed: pd.DataFrame, file: str) -> Said:
    """The assignments as rows, with the boxes of the long table on them."""
    pairs = list(zip(listed["image_id"], listed["annotator"], strict=True))
    said = list(zip(annotations.image_id, rows["annotator"], strict=True))
    at = positions(said, {pair: row for row, pair in reversed(list(enumerate(pairs)))})
    findings = [
        Finding(annotations.file, annotations.place(row), said[row][0], "first_pass.assignments", text)
        for row in np.flatnonzero(at < 0)
        for text in [f"annotator {said[row][1]!r} is not assigned this image in {file}"]
    ]
    if findings:
        raise DataError(findings)
    spread: dict[str, Sequence | np.ndarray | None] = {}
    for name, empty in (("width", np.nan), ("height", np.nan), ("file_name", None)):
        values = getattr(annotations, name)
        if values is not None:
            column = np.full(len(pairs), empty, dtype=object if empty is None else float)
            column[at] = values
            spread[name] = column if name != "file_name" else list(column)
    lines = listed.index.to_numpy()
    moved = replace(
        annotations,
        image_id=[image_id for image_id, _ in pairs],
        box_image=at[annotations.box_image],
        place=lambda row: f"line {lines[row]} of {file}",
        **spread,
    )
    extra = []
    for name in EXTRA:
        values = np.array(listed[name] if name in listed else [""] * len(listed), dtype=object)
        marked = rows[name].to_numpy(object)
        for row in np.flatnonzero((marked != "") & (values[at] != "") & (values[at] != marked)):
            text = f"the {name} {marked[row]!r} contradicts {values[at[row]]!r} in {file}"
            findings.append(Finding(annotations.file, annotations.place(row), said[row][0], f"first_pass.{name}", text))
        values[at] = np.where(marked == "", values[at], marked)
        extra.append(list(values))
    if findings:
        raise DataError(findings)
    return Said(moved, list(listed["annotator"]), *extra)


def _one_each(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """A row for each image and annotator, in the order of the rows of ``annotations``: ``annotator, group, block``."""
    keys = ["image_id", "annotator"]
    rows = table.reindex(columns=[*keys, *EXTRA], fill_value="").astype(object)
    findings = []
    for name in EXTRA:
        told = rows[name].where(rows[name] != "")
        rows[name] = told.groupby([rows[key] for key in keys], sort=False).transform("first").fillna("")
        for line in rows.index[told.notna() & (told != rows[name])]:
            text = f"the {name} {told[line]!r} contradicts {rows.at[line, name]!r}, said before of this image and annotator"
            findings.append(Finding(path.name, f"line {line}", rows.at[line, "image_id"], f"first_pass.{name}", text))
    if findings:
        raise DataError(findings)
    return rows.drop_duplicates(keys)
