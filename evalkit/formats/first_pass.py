"""First-pass annotations from files: JSON lines, COCO with an annotator on each image entry, long tables.

"Saw it, marked nothing" is an explicit row (a line with an empty list, an image entry, a row with blank box columns) or stands
in a list of assignments; an image that an annotator has no row for was not seen. A long table that has neither is refused.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd

from evalkit.formats import coco, jsonl, long
from evalkit.formats.decoding import box_array, decode_document, decode_lines, factorise, one_finding, positions, read_bytes
from evalkit.formats.options import Context, FileOptions
from evalkit.tables import BOX_COLUMNS, Annotations, DataError, EvalkitError, Finding, image_ids

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
    group: str | None = None
    block: str | None = None
    width: float | None = None
    height: float | None = None
    file_name: str | None = None


class Entry(msgspec.Struct, gc=False):
    annotator: str | int | None = None
    group: str | None = None
    block: str | None = None
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
    return Said(annotations, [str(row.annotator) for row in rows], *([getattr(row, name) for row in rows] for name in EXTRA))


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
    if findings:
        raise DataError(findings)
    annotations = replace(annotations, image_id=image_ids([one.file_name for one in entries]), score=None)
    extra = ([getattr(one, name) for one in entries] for name in EXTRA)
    return Said(annotations, [str(one.annotator) for one in entries], *extra)


def _long(path: Path, options: FileOptions, context: Context) -> Said:
    table = long.text_rows(path, options)
    if "annotator" not in table:
        raise one_finding(path.name, "first_pass.annotator", f"the header lacks annotator, so {NO_ANNOTATORS}")
    annotations = long.annotations(table, path, context, key=("annotator",))
    rows = table.drop_duplicates(["image_id", "annotator"])  # in the order of the rows of annotations
    if options.assignments is None:
        if not (table[BOX_COLUMNS] == "").all(axis=1).any():
            text = (
                "no row has blank box columns, so an image without boxes cannot be told from one that was not seen; "
                "list who saw what in a file and name it with `assignments`"
            )
            raise one_finding(path.name, "first_pass.assignments", text)
        return Said(annotations, list(rows["annotator"]), *_extra(rows))
    listed = _assignments(context.path(options.assignments), options)
    return _assigned(annotations, rows, listed, Path(options.assignments).name)


def _assignments(path: Path, options: FileOptions) -> pd.DataFrame:
    """Who saw what; ``columns`` and ``where`` apply to the columns that this file has."""
    table = long.read_text_table(path)
    renamed = options.columns if isinstance(options.columns, dict) else {}
    table = table.rename(columns={theirs: ours for ours, theirs in renamed.items() if theirs in table})
    lacking = [name for name in ("image_id", "annotator") if name not in table]
    if lacking:
        text = f"the header lacks {', '.join(lacking)}; it has {', '.join(table.columns)}"
        raise one_finding(path.name, "columns", text, place="line 1")
    for name, value in (options.where or {}).items():
        table = table[table[name] == value] if name in table else table
    return table.assign(image_id=image_ids(table["image_id"]))


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
        place=lambda row: f"{file}, line {lines[row]}",
        **spread,
    )
    return Said(moved, list(listed["annotator"]), *_extra(listed))


def _extra(rows: pd.DataFrame) -> Iterable[list[str | None]]:
    return (list(rows[name]) if name in rows else [None] * len(rows) for name in EXTRA)
