"""COCO: a gold object, a results list, or an object with ``score`` in its annotations."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd

from evalkit.formats.decoding import box_array, decode_document, factorise, one_finding, positions, read_bytes
from evalkit.formats.options import Context, FileOptions, outside_id
from evalkit.formats.regular import regular_columns
from evalkit.tables import Annotations, DataError, Finding, Note, broken, image_ids

Box = tuple[float, float, float, float]


class Image(msgspec.Struct, gc=False):
    id: str | int
    width: float | None = None
    height: float | None = None
    file_name: str | None = None


class Category(msgspec.Struct, gc=False):
    id: str | int
    name: str
    supercategory: str | None = None


class Annotation(msgspec.Struct, gc=False):
    image_id: str | int
    category_id: str | int
    bbox: Box
    score: float | None = None
    iscrowd: int = 0
    ignore: int = 0


class Document(msgspec.Struct):
    images: list[Image]
    annotations: list[Annotation]
    categories: list[Category] = []


KINDS = {"image_id": int, "category_id": int, "bbox": float, "score": float, "iscrowd": int, "ignore": int}


class Columns(NamedTuple):
    """Annotations as columns of n rows; boxes have the shape (n, 4), and a score that is not there is NaN."""

    image_id: Sequence[str | int] | np.ndarray
    category_id: Sequence[str | int] | np.ndarray
    bbox: np.ndarray
    score: np.ndarray
    iscrowd: np.ndarray
    ignore: np.ndarray


def read(path: Path, options: FileOptions, context: Context) -> Annotations:
    """Read a COCO file; ``bbox`` is ``[x, y, width, height]`` in pixels.

    A results list has no images: an image that it does not name is empty unless ``absent`` says otherwise. Crowd boxes are
    refused unless ``crowd: drop``.

    Raises DataError for broken JSON, wrong types, a reference to an image or category that is not there, and a crowd box.
    """
    data = read_bytes(path)
    document = None
    if re.match(rb"\s*\[", data):
        if context.is_gold:
            raise one_finding(path.name, "coco.gold", "COCO gold is an object with images, annotations and categories")
        columns = _regular(data)
        if columns is None:
            columns = _columns(decode_document(path, data, list[Annotation], lenient_boxes=True), context)
    else:
        document = decode_document(path, data, Document, lenient_boxes=not context.is_gold)
        columns = _columns(document.annotations, context)
    entry = "annotations[{}]" if document else "entry [{}]"
    position = np.arange(len(columns.bbox))
    notes: list[Note] = []
    if columns.iscrowd.any():
        crowd = np.flatnonzero(columns.iscrowd)
        if options.crowd != "drop":
            text = "a crowd box (iscrowd: 1) is neither one object nor none; set `crowd: drop` to leave such boxes out"
            raise DataError(
                Finding(path.name, entry.format(row), str(columns.image_id[row]), "box.crowd", text) for row in crowd
            )
        notes.append(("crowd_dropped", len(crowd), _images_of(columns, crowd)))
        position = np.flatnonzero(~columns.iscrowd)
        columns = Columns(*(_taken(column, position) for column in columns))
    if columns.ignore.any():
        ignored = np.flatnonzero(columns.ignore)
        notes.append(("ignore_flag_not_used", len(ignored), _images_of(columns, ignored)))

    image_code, said_ids = factorise(columns.image_id)
    names = dict(context.categories)
    if document:
        ids = image_ids([image.id for image in document.images])
        names = {str(category.id): category.name for category in document.categories} or names
        row_of_code = positions(said_ids, {image.id: row for row, image in enumerate(document.images)})
        if (row_of_code < 0).any():  # ids may be numbers here and text there
            row_of_code = positions(image_ids(said_ids), dict(zip(ids, range(len(ids)), strict=True)))
    else:
        ids = image_ids(said_ids)
        row_of_code = np.arange(len(ids))
        if not isinstance(columns.image_id, np.ndarray) and len(set(ids)) < len(ids):  # 12 and "12" are one image
            row_of_code, ids = factorise(ids)
    box_image = row_of_code[image_code] if said_ids else image_code
    category_code, category_ids = factorise(columns.category_id)

    @functools.cache
    def first() -> np.ndarray:
        """The first entry of each image of a results list."""
        return np.unique(box_image, return_index=True)[1]

    def box_place(box: int) -> str:
        return entry.format(position[box])

    findings = [
        Finding(path.name, box_place(box), image_id, "coco.image", f"`images` has no id {image_id!r}")
        for box in np.flatnonzero(box_image < 0)
        for image_id in [str(said_ids[image_code[box]])]
    ]
    for row, category in enumerate(document.categories if document else ()):
        if broken(category.name):
            findings.append(Finding(path.name, f"categories[{row}]", "", "text", "the name holds half a character"))
    if document and (context.is_gold or document.categories):
        for code, category_id in enumerate(category_ids):
            if str(category_id) not in names:
                findings += [
                    Finding(path.name, box_place(box), str(said_ids[image_code[box]]), "coco.category", text)
                    for text in [f"`categories` has no id {category_id!r}"]
                    for box in np.flatnonzero(category_code == code)
                ]
    if findings:
        raise DataError(findings)
    boxes = columns.bbox
    with np.errstate(over="ignore"):  # an infinite corner is a fault of the box, found by its rule
        boxes[:, 2:] += boxes[:, :2]
    images = document.images if document else []
    file_names = [image.file_name for image in images]
    return Annotations(
        file=path.name,
        image_id=ids,
        box_image=box_image,
        class_code=category_code,
        class_names=[names.get(str(category_id), outside_id(category_id)) for category_id in category_ids],
        boxes=boxes,
        score=None if context.is_gold else columns.score,
        place=lambda row: f"images[{row}]" if document else entry.format(position[first()[row]]),
        box_place=box_place,
        width=np.array([image.width for image in images], dtype=float) if document else None,
        height=np.array([image.height for image in images], dtype=float) if document else None,
        file_name=file_names if document else None,
        categories=_categories(document.categories) if document and document.categories else None,
        several_rows=document is None,
        join_on_file_name=document is not None and all(file_names),
        absent="missing" if document else "empty",
        notes=notes,
    )


def _regular(data: bytes) -> Columns | None:
    """The columns of a results list, where it is written regularly and every entry has finite numbers of the right kind."""
    found = regular_columns(data, KINDS)
    if found is None or not {"image_id", "category_id", "bbox"} <= found.keys():
        return None
    rows = len(found["image_id"])
    unsaid = {"score": np.full(rows, np.nan), "iscrowd": np.zeros(rows, int), "ignore": np.zeros(rows, int)}
    columns = Columns(*((unsaid | found)[name] for name in Columns._fields))
    if any(column.shape != ((rows, 4) if name == "bbox" else (rows,)) for name, column in columns._asdict().items()):
        return None
    if not np.isfinite(columns.bbox).all() or np.isinf(columns.score).any():
        return None
    return columns._replace(iscrowd=columns.iscrowd != 0, ignore=columns.ignore != 0)


def _columns(annotations: list[Annotation], context: Context) -> Columns:
    """The same of decoded annotations; scores of gold are not looked at."""
    score = [math.nan] * len(annotations) if context.is_gold else [one.score for one in annotations]
    return Columns(
        image_id=[one.image_id for one in annotations],
        category_id=[one.category_id for one in annotations],
        bbox=box_array([one.bbox for one in annotations]),
        score=np.array(score, dtype=float),  # None becomes NaN
        iscrowd=_flags([one.iscrowd for one in annotations]),
        ignore=_flags([one.ignore for one in annotations]),
    )


def _flags(values: list[int]) -> np.ndarray:
    return np.array(values) != 0 if any(values) else np.zeros(len(values), bool)


def _taken(column: Sequence | np.ndarray, rows: np.ndarray) -> Sequence | np.ndarray:
    return column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]


def _images_of(columns: Columns, rows: np.ndarray) -> str:
    return ", ".join(dict.fromkeys(str(columns.image_id[row]) for row in rows[:3]))


def _categories(categories: list[Category]) -> pd.DataFrame:
    """Categories as a class list; a supercategory is the domain, and ``none`` is none."""
    domains = ["" if one.supercategory in (None, "none") else one.supercategory for one in categories]
    return pd.DataFrame(
        {
            "class_id": [str(one.id) for one in categories],
            "class_name": [one.name for one in categories],
            "domain": domains,
        },
        dtype=str,
    )
